/*
 * bithash_cast.c
 *		Casts between bithash and core's bit, bit varying and bytea.
 *
 * bit and bit varying have one layout, VarBit, and so share these functions.
 */
#include "postgres.h"

#include "utils/varbit.h"

#include "../compat.h"
#include "bithash.h"

PG_FUNCTION_INFO_V1(bithash_from_bit);
Datum
bithash_from_bit(PG_FUNCTION_ARGS)
{
	VarBit	   *bit = PG_GETARG_VARBIT_P(0);
	const int32 typmod = PG_GETARG_INT32(1);
	BitHash	   *code;

	bithash_check_length(VARBITLEN(bit), ERRCODE_STRING_DATA_LENGTH_MISMATCH, NULL);
	bithash_check_typmod(VARBITLEN(bit), typmod, NULL);

	code = bithash_make(VARBITLEN(bit));
	memcpy(code->bits, VARBITS(bit), VARBITBYTES(bit));
	PG_RETURN_POINTER(code);
}

PG_FUNCTION_INFO_V1(bithash_to_bit);
Datum
bithash_to_bit(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);
	const int		  size = VARBITTOTALLEN(code.nbits);
	VarBit			 *bit = palloc(size);

	SET_VARSIZE(bit, size);
	VARBITLEN(bit) = code.nbits;
	memcpy(VARBITS(bit), code.bits, BITHASH_BYTES(code.nbits));
	PG_RETURN_VARBIT_P(bit);
}

/*
 * Bytes say nothing of a length that is not a multiple of eight: bithash(n) in the
 * cast does, and then the bytes must be as many as n bits take, zero behind the end.
 */
PG_FUNCTION_INFO_V1(bithash_from_bytea);
Datum
bithash_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	const int32 typmod = PG_GETARG_INT32(1);
	const int64 nbytes = VARSIZE_ANY_EXHDR(bytes);
	const int64 nbits =
		typmod >= 0 && nbytes == BITHASH_BYTES(typmod) ? (int64) typmod : nbytes * 8;
	BitHash *code;

	bithash_check_length(nbits, ERRCODE_STRING_DATA_LENGTH_MISMATCH, NULL);
	bithash_check_typmod((int) nbits, typmod, NULL);

	code = bithash_make((int) nbits);
	memcpy(code->bits, VARDATA_ANY(bytes), nbytes);
	if (!bithash_padding_is_zero((int) nbits, code->bits))
		ereport(ERROR, errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
				errmsg("bytes for a code of %d bits have bits set behind its end", (int) nbits));
	PG_RETURN_POINTER(code);
}

PG_FUNCTION_INFO_V1(bithash_to_bytea);
Datum
bithash_to_bytea(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);
	const int		  size = VARHDRSZ + BITHASH_BYTES(code.nbits);
	bytea			 *bytes = palloc(size);

	SET_VARSIZE(bytes, size);
	memcpy(VARDATA(bytes), code.bits, BITHASH_BYTES(code.nbits));
	PG_RETURN_BYTEA_P(bytes);
}

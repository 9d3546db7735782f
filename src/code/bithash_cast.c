/*
 * bithash_cast.c
 *		Casts between bithash and core's bit, bit varying, bytea and bigint.
 *
 * bit and bit varying have one layout, VarBit, and so share these functions.
 */
#include "postgres.h"

#include "../compat.h"
#include "code_type.h"

PG_FUNCTION_INFO_V1(bithash_from_bit);
Datum
bithash_from_bit(PG_FUNCTION_ARGS)
{
	const BitHashView bit = code_view(CODE_BIT, PG_GETARG_DATUM(0));

	bithash_check_length(bit.nbits, ERRCODE_STRING_DATA_LENGTH_MISMATCH, NULL);
	bithash_check_typmod(bit.nbits, PG_GETARG_INT32(1), NULL);
	PG_RETURN_DATUM(code_datum(CODE_BITHASH, bit));
}

PG_FUNCTION_INFO_V1(bithash_to_bit);
Datum
bithash_to_bit(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(code_datum(CODE_BIT, PG_GETARG_BITHASH_VIEW(0)));
}

/*
 * Bytes alone are a code of eight bits each.  With bithash(n) there must be as many bytes as
 * n bits take, and zeros after the last bit.
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
				errmsg("bytes for a code of %d bits have bits set beyond its end", (int) nbits));
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

/* A number is 64 bits, the highest first, as in core's cast to bit(64). */
PG_FUNCTION_INFO_V1(bithash_from_int8);
Datum
bithash_from_int8(PG_FUNCTION_ARGS)
{
	const BitHashView code = code_view(CODE_INT8, PG_GETARG_DATUM(0));

	bithash_check_typmod(code.nbits, PG_GETARG_INT32(1), NULL);
	PG_RETURN_DATUM(code_datum(CODE_BITHASH, code));
}

PG_FUNCTION_INFO_V1(bithash_to_int8);
Datum
bithash_to_int8(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);

	if (code.nbits != INT8_BITS)
		ereport(ERROR, errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
				errmsg("code of %d bits does not match type bigint", code.nbits),
				errdetail("A bigint has %d bits.", INT8_BITS));
	PG_RETURN_DATUM(code_datum(CODE_INT8, code));
}

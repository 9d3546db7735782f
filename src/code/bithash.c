/*
 * bithash.c
 *		The bithash type: its text and binary forms, its type modifier, and what
 *		it tells about one code.
 *
 * The text forms are those of core's bit: binary digits, or hexadecimal ones after
 * an x.  The binary form is core's bit's, byte for byte.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "port/pg_bitutils.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "../compat.h"
#include "bithash.h"

/* A code of nbits zeros, in the current memory context. */
BitHash *
bithash_make(int nbits)
{
	BitHash *code = palloc0(BITHASH_SIZE(nbits));

	Assert(nbits >= 1 && nbits <= BITHASH_MAX_BITS);
	SET_VARSIZE(code, BITHASH_SIZE(nbits));
	code->nbits = (uint16) nbits;
	return code;
}

/* The code of count numbers: a bit is set where one is not negative. */
BitHash *
bithash_of_signs(const float *numbers, int count)
{
	BitHash *code = bithash_make(count);

	for (int i = 0; i < count; i++)
		code->bits[i / 8] |= (uint8) ((numbers[i] >= 0.0F) << (7 - i % 8));
	return code;
}

/* May a code have this length?  too_short_code is the SQLSTATE if it has no bits. */
bool
bithash_check_length(int64 nbits, int too_short_code, struct Node *escontext)
{
	if (nbits < 1)
		ereturn(escontext, false, errcode(too_short_code),
				errmsg("bithash cannot have %lld bits", (long long) nbits),
				errdetail("A code has 1 to %d bits.", BITHASH_MAX_BITS));
	if (nbits > BITHASH_MAX_BITS)
		ereturn(escontext, false, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				errmsg("bithash cannot have %lld bits", (long long) nbits),
				errdetail("A code has 1 to %d bits.", BITHASH_MAX_BITS));
	return true;
}

/* Does a code of this length belong in a column of this type modifier? */
bool
bithash_check_typmod(int nbits, int32 typmod, struct Node *escontext)
{
	if (typmod >= 0 && nbits != typmod)
		ereturn(escontext, false, errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
				errmsg("code of %d bits does not match type bithash(%d)", nbits, (int) typmod));
	return true;
}

bool
bithash_padding_is_zero(int nbits, const uint8 *bits)
{
	return (bits[BITHASH_BYTES(nbits) - 1] & BITHASH_PADDING(nbits)) == 0;
}

static int
digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return 16;
}

/* Text: 0101..., b0101... or xDEADBEEF. */
PG_FUNCTION_INFO_V1(bithash_in);
Datum
bithash_in(PG_FUNCTION_ARGS)
{
	const char	*text = PG_GETARG_CSTRING(0);
	const int32	 typmod = PG_GETARG_INT32(2);
	struct Node *escontext = (struct Node *) fcinfo->context;
	int			 bits_per_digit = 1;
	const char	*digits = text;
	int64		 nbits;
	BitHash		*code;

	if (*text == 'x' || *text == 'X')
	{
		bits_per_digit = 4;
		digits++;
	}
	else if (*text == 'b' || *text == 'B')
		digits++;

	nbits = (int64) strlen(digits) * bits_per_digit;
	if (!bithash_check_length(nbits, ERRCODE_INVALID_TEXT_REPRESENTATION, escontext) ||
		!bithash_check_typmod((int) nbits, typmod, escontext))
		PG_RETURN_NULL();

	code = bithash_make((int) nbits);
	for (int i = 0; digits[i] != '\0'; i++)
	{
		const int value = digit_value(digits[i]);
		const int bit = i * bits_per_digit;

		if (value >= 1 << bits_per_digit)
			ereturn(escontext, (Datum) 0, errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("\"%.*s\" is not a valid %s digit", pg_mblen(digits + i), digits + i,
						   bits_per_digit == 1 ? "binary" : "hexadecimal"),
					errdetail("It is character %d of the code.", (int) (digits - text) + i + 1));
		code->bits[bit / 8] |= (uint8) (value << (8 - bits_per_digit - bit % 8));
	}
	PG_RETURN_POINTER(code);
}

PG_FUNCTION_INFO_V1(bithash_out);
Datum
bithash_out(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);
	char			 *text = palloc(code.nbits + 1);

	for (int i = 0; i < code.nbits; i++)
		text[i] = (code.bits[i / 8] >> (7 - i % 8)) & 1 ? '1' : '0';
	text[code.nbits] = '\0';
	PG_RETURN_CSTRING(text);
}

/* Binary: int32 number of bits, then the bytes, with zero padding. */
PG_FUNCTION_INFO_V1(bithash_recv);
Datum
bithash_recv(PG_FUNCTION_ARGS)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	const int32 typmod = PG_GETARG_INT32(2);
	const int32 nbits = (int32) pq_getmsgint(message, sizeof(int32));
	const int	rest = message->len - message->cursor;
	BitHash	   *code;

	bithash_check_length(nbits, ERRCODE_INVALID_BINARY_REPRESENTATION, NULL);
	if (rest != BITHASH_BYTES(nbits))
		ereport(ERROR, errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				errmsg("binary form of a code of %d bits has %d bytes of bits instead of %d",
					   (int) nbits, rest, (int) BITHASH_BYTES(nbits)));
	bithash_check_typmod(nbits, typmod, NULL);

	code = bithash_make(nbits);
	pq_copymsgbytes(message, (char *) code->bits, BITHASH_BYTES(nbits));
	if (!bithash_padding_is_zero(nbits, code->bits))
		ereport(ERROR, errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				errmsg("binary form of a code of %d bits has bits set beyond its end",
					   (int) nbits));
	PG_RETURN_POINTER(code);
}

PG_FUNCTION_INFO_V1(bithash_send);
Datum
bithash_send(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);
	StringInfoData	  message;

	pq_begintypsend(&message);
	pq_sendint32(&message, (uint32) code.nbits);
	pq_sendbytes(&message, (const char *) code.bits, BITHASH_BYTES(code.nbits));
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

PG_FUNCTION_INFO_V1(bithash_typmod_in);
Datum
bithash_typmod_in(PG_FUNCTION_ARGS)
{
	int	   nmodifiers;
	int32 *modifiers = ArrayGetIntegerTypmods(PG_GETARG_ARRAYTYPE_P(0), &nmodifiers);

	if (nmodifiers != 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("type bithash takes one type modifier, not %d", nmodifiers),
				errdetail("It is the number of bits."));
	if (modifiers[0] < 1 || modifiers[0] > BITHASH_MAX_BITS)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("length of type bithash cannot be %d", (int) modifiers[0]),
				errdetail("A code has 1 to %d bits.", BITHASH_MAX_BITS));
	PG_RETURN_INT32(modifiers[0]);
}

PG_FUNCTION_INFO_V1(bithash_typmod_out);
Datum
bithash_typmod_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(psprintf("(%d)", (int) PG_GETARG_INT32(0)));
}

/*
 * The cast that enforces a type modifier, also if it is explicit.  Core's bit would be cut
 * or padded; the distances of such codes have no meaning.
 */
PG_FUNCTION_INFO_V1(bithash_enforce_typmod);
Datum
bithash_enforce_typmod(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);

	bithash_check_typmod(code.nbits, PG_GETARG_INT32(1), NULL);
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

PG_FUNCTION_INFO_V1(bithash_length);
Datum
bithash_length(PG_FUNCTION_ARGS)
{
	/* the length comes first: fetch no more of a toasted code */
	struct varlena *front = PG_DETOAST_DATUM_SLICE(PG_GETARG_DATUM(0), 0, sizeof(uint16));
	uint16			nbits;

	memcpy(&nbits, VARDATA_ANY(front), sizeof(nbits));
	PG_RETURN_INT32(nbits);
}

PG_FUNCTION_INFO_V1(bithash_bit_count);
Datum
bithash_bit_count(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);

	PG_RETURN_INT64((int64) pg_popcount((const char *) code.bits, BITHASH_BYTES(code.nbits)));
}

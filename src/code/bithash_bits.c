/*
 * bithash_bits.c
 *		Core's functions for bit strings, for codes: logic, concatenation, substrings, digits.
 *
 * Results are codes, too: none is empty, or longer than a code may be.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "../compat.h"
#include "bithash.h"
#include "distance.h"

static BitHash *
combine(FunctionCallInfo fcinfo, char operation)
{
	const BitHashView a = PG_GETARG_BITHASH_VIEW(0);
	const BitHashView b = PG_GETARG_BITHASH_VIEW(1);
	BitHash			 *code = bithash_make(a.nbits);

	hamming_check_lengths(a.nbits, b.nbits);
	for (int i = 0; i < BITHASH_BYTES(a.nbits); i++)
		code->bits[i] = operation == '&'   ? a.bits[i] & b.bits[i]
						: operation == '|' ? a.bits[i] | b.bits[i]
										   : a.bits[i] ^ b.bits[i];
	return code;
}

PG_FUNCTION_INFO_V1(bithash_and);
Datum
bithash_and(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(combine(fcinfo, '&'));
}

PG_FUNCTION_INFO_V1(bithash_or);
Datum
bithash_or(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(combine(fcinfo, '|'));
}

PG_FUNCTION_INFO_V1(bithash_xor);
Datum
bithash_xor(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(combine(fcinfo, '#'));
}

PG_FUNCTION_INFO_V1(bithash_not);
Datum
bithash_not(PG_FUNCTION_ARGS)
{
	const BitHashView a = PG_GETARG_BITHASH_VIEW(0);
	BitHash			 *code = bithash_make(a.nbits);
	const int		  last = BITHASH_BYTES(a.nbits) - 1;

	for (int i = 0; i <= last; i++)
		code->bits[i] = (uint8) ~a.bits[i];
	code->bits[last] &= (uint8) ~BITHASH_PADDING(a.nbits);
	PG_RETURN_POINTER(code);
}

static inline int
get_bit(BitHashView code, int i)
{
	return (code.bits[i / 8] >> (7 - i % 8)) & 1;
}

/* Copies bits into a code whose bits there are zero. */
static void
copy_bits(BitHash *code, int at, BitHashView from, int first, int count)
{
	for (int i = 0; i < count; i++)
		code->bits[(at + i) / 8] |= (uint8) (get_bit(from, first + i) << (7 - (at + i) % 8));
}

PG_FUNCTION_INFO_V1(bithash_concat);
Datum
bithash_concat(PG_FUNCTION_ARGS)
{
	const BitHashView a = PG_GETARG_BITHASH_VIEW(0);
	const BitHashView b = PG_GETARG_BITHASH_VIEW(1);
	BitHash			 *code;

	bithash_check_length((int64) a.nbits + b.nbits, ERRCODE_STRING_DATA_LENGTH_MISMATCH, NULL);
	code = bithash_make(a.nbits + b.nbits);
	memcpy(code->bits, a.bits, BITHASH_BYTES(a.nbits));
	copy_bits(code, a.nbits, b, 0, b.nbits);
	PG_RETURN_POINTER(code);
}

/* The bits from one, counted from 1, to before another; as for core's bit, both may lie outside. */
static BitHash *
cut(BitHashView code, int64 from, int64 end)
{
	const int64 first = Max(from, 1);
	const int64 count = Min(end, code.nbits + 1) - first;
	BitHash	   *part;

	bithash_check_length(Max(count, 0), ERRCODE_STRING_DATA_LENGTH_MISMATCH, NULL);
	part = bithash_make((int) count);
	copy_bits(part, 0, code, (int) first - 1, (int) count);
	return part;
}

PG_FUNCTION_INFO_V1(bithash_substring);
Datum
bithash_substring(PG_FUNCTION_ARGS)
{
	const int64 from = PG_GETARG_INT32(1);
	const int64 count = PG_GETARG_INT32(2);

	if (count < 0)
		ereport(ERROR, errcode(ERRCODE_SUBSTRING_ERROR),
				errmsg("negative substring length not allowed"));
	PG_RETURN_POINTER(cut(PG_GETARG_BITHASH_VIEW(0), from, from + count));
}

PG_FUNCTION_INFO_V1(bithash_substring_from);
Datum
bithash_substring_from(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(cut(PG_GETARG_BITHASH_VIEW(0), PG_GETARG_INT32(1), PG_INT32_MAX));
}

/* An error if a code has no such bit. */
static void
check_index(int nbits, int32 i)
{
	if (i < 0 || i >= nbits)
		ereport(ERROR, errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				errmsg("bit index %d out of valid range (0..%d)", (int) i, nbits - 1));
}

PG_FUNCTION_INFO_V1(bithash_get_bit);
Datum
bithash_get_bit(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);
	const int32		  i = PG_GETARG_INT32(1);

	check_index(code.nbits, i);
	PG_RETURN_INT32(get_bit(code, i));
}

PG_FUNCTION_INFO_V1(bithash_set_bit);
Datum
bithash_set_bit(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);
	const int32		  i = PG_GETARG_INT32(1);
	const int32		  bit = PG_GETARG_INT32(2);
	const uint8		  mask = (uint8) (1 << (7 - (i & 7)));
	BitHash			 *changed;

	check_index(code.nbits, i);
	if (bit != 0 && bit != 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("new bit must be 0 or 1"));
	changed = bithash_make(code.nbits);
	memcpy(changed->bits, code.bits, BITHASH_BYTES(code.nbits));
	changed->bits[i / 8] =
		(uint8) (bit == 1 ? changed->bits[i / 8] | mask : changed->bits[i / 8] & ~mask);
	PG_RETURN_POINTER(changed);
}

/* Hexadecimal digits; after the last bits the last digit has zeros. */
PG_FUNCTION_INFO_V1(bithash_to_hex);
Datum
bithash_to_hex(PG_FUNCTION_ARGS)
{
	const BitHashView code = PG_GETARG_BITHASH_VIEW(0);
	const int		  ndigits = (code.nbits + 3) / 4;
	char			 *digits = palloc(ndigits);

	for (int i = 0; i < ndigits; i++)
		digits[i] = "0123456789abcdef"[(code.bits[i / 2] >> (i % 2 == 0 ? 4 : 0)) & 0xF];
	PG_RETURN_TEXT_P(cstring_to_text_with_len(digits, ndigits));
}

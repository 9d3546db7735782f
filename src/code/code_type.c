/*
 * code_type.c
 *		Codes in columns of other types: bit, bit varying and bigint.
 *
 * Distances, hamming_within and the operators of their index read these as they are stored.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "utils/varbit.h"

#include "../compat.h"
#include "ball.h"
#include "code_type.h"
#include "distance.h"

CodeType
code_type_of(Oid type)
{
	switch (type)
	{
		case BITOID:
		case VARBITOID:
			return CODE_BIT;
		case INT8OID:
			return CODE_INT8;
		default:
			return CODE_BITHASH;
	}
}

/* The length of all codes of a column of this type, or 0 if they may have several. */
int
code_type_bits(Oid type, int32 typmod)
{
	if (type == INT8OID)
		return INT8_BITS;
	return type == VARBITOID ? 0 : Max(typmod, 0);
}

static BitHashView
bit_view(struct varlena *packed)
{
	const char *data = VARDATA_ANY(packed);
	int32		nbits;
	BitHashView view;

	/* a short header leaves it at any address */
	memcpy(&nbits, data, sizeof(nbits));
	view.nbits = nbits;
	view.bits = (const uint8 *) data + sizeof(nbits);
	return view;
}

BitHashView
code_view(CodeType type, Datum value)
{
	BitHashView view = {.nbits = INT8_BITS};
	uint64	   *word;

	switch (type)
	{
		case CODE_BIT:
			return bit_view(PG_DETOAST_DATUM_PACKED(value));
		case CODE_INT8:
			word = palloc(sizeof(*word));
			*word = pg_hton64((uint64) DatumGetInt64(value));
			view.bits = (const uint8 *) word;
			return view;
		default:
			return DatumGetBitHashView(value);
	}
}

Datum
code_datum(CodeType type, BitHashView code)
{
	const Size size = BITHASH_BYTES(code.nbits);
	BitHash	  *hash;
	VarBit	  *bit;
	uint64	   word;

	switch (type)
	{
		case CODE_BIT:
			bit = palloc(VARBITTOTALLEN(code.nbits));
			SET_VARSIZE(bit, VARBITTOTALLEN(code.nbits));
			VARBITLEN(bit) = code.nbits;
			memcpy(VARBITS(bit), code.bits, size);
			return VarBitPGetDatum(bit);
		case CODE_INT8:
			Assert(code.nbits == INT8_BITS);
			memcpy(&word, code.bits, sizeof(word));
			return Int64GetDatum((int64) pg_ntoh64(word));
		default:
			hash = bithash_make(code.nbits);
			memcpy(hash->bits, code.bits, size);
			return PointerGetDatum(hash);
	}
}

#define GETARG_BIT_VIEW(n) code_view(CODE_BIT, PG_GETARG_DATUM(n))

static int32
int8_distance(int64 a, int64 b)
{
	return pg_popcount64((uint64) (a ^ b));
}

/* bit <~> bithash */
PG_FUNCTION_INFO_V1(bit_hamming_distance);
Datum
bit_hamming_distance(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(hamming_distance_views(GETARG_BIT_VIEW(0), PG_GETARG_BITHASH_VIEW(1)));
}

/*
 * hamming_distance of two bit strings, with pgvector's type, lengths and error: two literals are
 * taken as bit varying if that is possible, and with pgvector alone they work.
 */
PG_FUNCTION_INFO_V1(varbit_hamming_distance);
Datum
varbit_hamming_distance(PG_FUNCTION_ARGS)
{
	VarBit *a = PG_GETARG_VARBIT_P(0);
	VarBit *b = PG_GETARG_VARBIT_P(1);

	if (VARBITLEN(a) != VARBITLEN(b))
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("different bit lengths %d and %d", (int) VARBITLEN(a), (int) VARBITLEN(b)));
	PG_RETURN_FLOAT8((float8) hamming_kernel->distance(VARBITS(a), VARBITS(b), VARBITBYTES(a)));
}

PG_FUNCTION_INFO_V1(int8_hamming_distance);
Datum
int8_hamming_distance(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(int8_distance(PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
}

PG_FUNCTION_INFO_V1(hamming_within_bit);
Datum
hamming_within_bit(PG_FUNCTION_ARGS)
{
	const int32 distance = hamming_distance_views(GETARG_BIT_VIEW(0), GETARG_BIT_VIEW(1));

	PG_RETURN_BOOL(distance <= PG_GETARG_INT32(2));
}

PG_FUNCTION_INFO_V1(hamming_within_bit_code);
Datum
hamming_within_bit_code(PG_FUNCTION_ARGS)
{
	const int32 distance = hamming_distance_views(GETARG_BIT_VIEW(0), PG_GETARG_BITHASH_VIEW(1));

	PG_RETURN_BOOL(distance <= PG_GETARG_INT32(2));
}

PG_FUNCTION_INFO_V1(hamming_within_int8);
Datum
hamming_within_int8(PG_FUNCTION_ARGS)
{
	const int32 distance = int8_distance(PG_GETARG_INT64(0), PG_GETARG_INT64(1));

	PG_RETURN_BOOL(distance <= PG_GETARG_INT64(2));
}

PG_FUNCTION_INFO_V1(hamming_ball_bit);
Datum
hamming_ball_bit(PG_FUNCTION_ARGS)
{
	const BitHashView center = GETARG_BIT_VIEW(0);

	bithash_check_length(center.nbits, ERRCODE_STRING_DATA_LENGTH_MISMATCH, NULL);
	PG_RETURN_POINTER(make_ball(center, PG_GETARG_INT32(1)));
}

PG_FUNCTION_INFO_V1(hamming_ball_int8);
Datum
hamming_ball_int8(PG_FUNCTION_ARGS)
{
	const int64 radius = PG_GETARG_INT64(1);

	PG_RETURN_POINTER(make_ball(code_view(CODE_INT8, PG_GETARG_DATUM(0)),
								(int32) Max(Min(radius, INT8_BITS), -1)));
}

PG_FUNCTION_INFO_V1(hamming_in_ball_bit);
Datum
hamming_in_ball_bit(PG_FUNCTION_ARGS)
{
	const HammingBall *ball = DatumGetHammingBall(PG_GETARG_DATUM(1));

	PG_RETURN_BOOL(hamming_distance_views(GETARG_BIT_VIEW(0), ball_center(ball)) <= ball->radius);
}

PG_FUNCTION_INFO_V1(hamming_in_ball_int8);
Datum
hamming_in_ball_int8(PG_FUNCTION_ARGS)
{
	const HammingBall *ball = DatumGetHammingBall(PG_GETARG_DATUM(1));
	const BitHashView  code = code_view(CODE_INT8, PG_GETARG_DATUM(0));

	PG_RETURN_BOOL(hamming_distance_views(code, ball_center(ball)) <= ball->radius);
}

/*
 * bithash_compare.c
 *		Order, equality and hashing of codes, for the btree and hash operator
 *		classes: sorting, grouping, joining, deduplicating.
 *
 * The order is that of the text forms: bit by bit, and a code before all longer ones
 * that start with it.  These functions run in contexts that live as long as a sort or
 * an index build: what detoasting copied is freed at once.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/pg_bswap.h"
#include "utils/sortsupport.h"

#include "../compat.h"
#include "bithash.h"

static void
free_if_copy(struct varlena *packed, Datum original)
{
	if ((Pointer) packed != DatumGetPointer(original))
		pfree(packed);
}

static int
compare_views(BitHashView a, BitHashView b)
{
	const int order = memcmp(a.bits, b.bits, BITHASH_BYTES(Min(a.nbits, b.nbits)));

	return order != 0 ? order : a.nbits - b.nbits;
}

static int
compare(Datum a, Datum b)
{
	struct varlena *packed_a = PG_DETOAST_DATUM_PACKED(a);
	struct varlena *packed_b = PG_DETOAST_DATUM_PACKED(b);
	const int		order = compare_views(bithash_view(packed_a), bithash_view(packed_b));

	free_if_copy(packed_a, a);
	free_if_copy(packed_b, b);
	return order;
}

PG_FUNCTION_INFO_V1(bithash_lt);
Datum
bithash_lt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) < 0);
}

PG_FUNCTION_INFO_V1(bithash_le);
Datum
bithash_le(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) <= 0);
}

PG_FUNCTION_INFO_V1(bithash_eq);
Datum
bithash_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) == 0);
}

PG_FUNCTION_INFO_V1(bithash_ne);
Datum
bithash_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) != 0);
}

PG_FUNCTION_INFO_V1(bithash_ge);
Datum
bithash_ge(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) >= 0);
}

PG_FUNCTION_INFO_V1(bithash_gt);
Datum
bithash_gt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) > 0);
}

PG_FUNCTION_INFO_V1(bithash_cmp);
Datum
bithash_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

PG_FUNCTION_INFO_V1(bithash_smaller);
Datum
bithash_smaller(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) <= 0 ? 0 : 1));
}

PG_FUNCTION_INFO_V1(bithash_larger);
Datum
bithash_larger(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) >= 0 ? 0 : 1));
}

static int
sort_compare(Datum a, Datum b, SortSupport ssup pg_attribute_unused())
{
	return compare(a, b);
}

/*
 * The abbreviated key is the code's first bytes as one unsigned number, which decides nearly
 * all comparisons.
 */
static Datum
abbreviate(Datum original, SortSupport ssup pg_attribute_unused())
{
	struct varlena	 *packed = PG_DETOAST_DATUM_PACKED(original);
	const BitHashView code = bithash_view(packed);
	Datum			  key = 0;

	memcpy(&key, code.bits, Min(sizeof(key), (size_t) BITHASH_BYTES(code.nbits)));
	free_if_copy(packed, original);
	return DatumBigEndianToNative(key);
}

/* Keys cost next to nothing, so abbreviation never gives up. */
static bool
abbreviate_abort(int memtupcount pg_attribute_unused(), SortSupport ssup pg_attribute_unused())
{
	return false;
}

PG_FUNCTION_INFO_V1(bithash_sortsupport);
Datum
bithash_sortsupport(PG_FUNCTION_ARGS)
{
	SortSupport ssup = (SortSupport) PG_GETARG_POINTER(0);

	ssup->comparator = sort_compare;
	if (ssup->abbreviate)
	{
		ssup->comparator = ssup_datum_unsigned_cmp;
		ssup->abbrev_converter = abbreviate;
		ssup->abbrev_abort = abbreviate_abort;
		ssup->abbrev_full_comparator = sort_compare;
	}
	PG_RETURN_VOID();
}

/* What is hashed is all that follows the varlena header: the length and the bits. */
PG_FUNCTION_INFO_V1(bithash_hash);
Datum
bithash_hash(PG_FUNCTION_ARGS)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	const Datum		hash =
		hash_any((const unsigned char *) VARDATA_ANY(packed), (int) VARSIZE_ANY_EXHDR(packed));

	free_if_copy(packed, PG_GETARG_DATUM(0));
	return hash;
}

PG_FUNCTION_INFO_V1(bithash_hash_extended);
Datum
bithash_hash_extended(PG_FUNCTION_ARGS)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	const Datum		hash = hash_any_extended((const unsigned char *) VARDATA_ANY(packed),
											 (int) VARSIZE_ANY_EXHDR(packed), PG_GETARG_INT64(1));

	free_if_copy(packed, PG_GETARG_DATUM(0));
	return hash;
}

/*
 * hamming_scan.c
 *		Scans of a hamming index: the executor's keys become a search.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "catalog/pg_type.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "flat_scan.h"
#include "hamming_index_only.h"
#include "prefetch.h"

typedef struct HammingScan
{
	MemoryContext  context; /* of the keys' values */
	HammingSearch *search;
	bool		   nothing; /* a condition is NULL */
	bool		   floats;	/* the distance is double precision, as pgvector's is */
	int			   first;	/* the distance that decides: those before are from NULL */
	Prefetch	   prefetch;

	HammingIndexOnly *index_only; /* NULL if rows are fetched from the table */
} HammingScan;

IndexScanDesc
hamming_begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = flat_begin_scan(index, nkeys, norderbys);
	HammingScan	 *state = palloc(sizeof(HammingScan));

	state->context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming scan keys", ALLOCSET_SMALL_SIZES);
	state->search = hamming_search_create(index);
	state->nothing = true;
	state->index_only = NULL;
	scan->opaque = state;
	return scan;
}

/* The first distance that is not from NULL, since by those all rows are equal; or else the first. */
static int
first_distance(IndexScanDesc scan)
{
	for (int i = 0; i < scan->numberOfOrderBys; i++)
	{
		if ((scan->orderByData[i].sk_flags & SK_ISNULL) == 0)
			return i;
	}
	return 0;
}

/* Reads what the keys ask for; false if one is NULL, which no row fulfils. */
static bool
read_query(IndexScanDesc scan, int first, HammingQuery *query)
{
	HammingBall **balls = palloc(sizeof(HammingBall *) * Max(scan->numberOfKeys, 1));

	memset(query, 0, sizeof(*query));
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		ScanKey key = &scan->keyData[i];

		Assert(key->sk_strategy == HAMMING_BALL_STRATEGY);
		if ((key->sk_flags & SK_ISNULL) != 0)
			return false;
		balls[i] = DatumGetHammingBall(key->sk_argument);
	}
	query->table = scan->xs_want_itup ? scan->heapRelation : NULL;
	query->balls = balls;
	query->nballs = scan->numberOfKeys;
	query->ordered = scan->numberOfOrderBys > 0;
	if (query->ordered)
	{
		ScanKey key = &scan->orderByData[first];

		Assert(key->sk_strategy == HAMMING_DISTANCE_STRATEGY);
		query->code_is_null = (key->sk_flags & SK_ISNULL) != 0;
		if (!query->code_is_null)
			query->code = code_view(code_type_of(key->sk_subtype), key->sk_argument);
	}
	return true;
}

void
hamming_rescan(IndexScanDesc scan, ScanKey keys, int nkeys pg_attribute_unused(), ScanKey orderbys,
			   int norderbys pg_attribute_unused())
{
	HammingScan	 *state = scan->opaque;
	HammingQuery  query;
	MemoryContext caller;

	flat_take_keys(scan, keys, orderbys);
	MemoryContextReset(state->context);
	caller = MemoryContextSwitchTo(state->context);
	state->first = first_distance(scan);
	state->nothing = !read_query(scan, state->first, &query);
	MemoryContextSwitchTo(caller);
	state->floats =
		query.ordered && get_func_rettype(scan->orderByData[0].sk_func.fn_oid) == FLOAT8OID;
	if (scan->xs_want_itup)
	{
		/* the executor says so between beginning the scan and this */
		if (state->index_only == NULL)
			state->index_only = index_only_create(scan);
		index_only_start(state->index_only);
	}
	if (!state->nothing)
	{
		hamming_search_start(state->search, &query);
		/* the scan of a bitmap has no table */
		if (scan->heapRelation != NULL)
			prefetch_start(&state->prefetch, scan->heapRelation);
		count_index_scan(scan);
	}
}

/* The next row that is to be returned. */
static bool
next_row(IndexScanDesc scan, HammingScan *state, uint64 *key)
{
	const uint64 *keys;
	int			  known;

	if (state->nothing)
		return false;
	if (scan->xs_want_itup)
		return index_only_next(state->index_only, scan, state->search, key);
	if (!hamming_search_next(state->search, key))
		return false;
	keys = hamming_search_peek(state->search, &known);
	prefetch_rows(&state->prefetch, scan->heapRelation, keys, known);
	return true;
}

bool
hamming_get_tuple(IndexScanDesc scan, ScanDirection direction pg_attribute_unused())
{
	HammingScan *state = scan->opaque;
	uint64		 key;

	Assert(ScanDirectionIsForward(direction));
	flat_check_snapshot(scan);
	if (!next_row(scan, state, &key))
		return false;
	scan->xs_heaptid = flat_row_of_key(scan, key);
	scan->xs_recheck = false;
	if (scan->numberOfOrderBys > 0)
	{
		const int32 distance = (int32) KEY_DISTANCE(key);

		scan->xs_orderbynulls[0] = state->first > 0 || distance == NULL_DISTANCE;
		scan->xs_orderbyvals[0] =
			state->floats ? Float8GetDatum(distance) : Int32GetDatum(distance);
		/* by further distances, from 0, the executor sorts, unless it has only what we return */
		scan->xs_recheckorderby = scan->numberOfOrderBys > 1 && !scan->xs_want_itup;
	}
	return true;
}

int64
hamming_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	HammingScan *state = scan->opaque;
	int64		 count = 0;
	uint64		 key;

	flat_check_snapshot(scan);
	while (!state->nothing && hamming_search_next(state->search, &key))
	{
		ItemPointerData tid = flat_row_of_key(scan, key);

		tbm_add_tuples(bitmap, &tid, 1, false);
		count++;
	}
	return count;
}

void
hamming_end_scan(IndexScanDesc scan)
{
	HammingScan *state = scan->opaque;

	if (state->index_only != NULL)
		index_only_end(state->index_only);
	MemoryContextDelete(state->context);
}

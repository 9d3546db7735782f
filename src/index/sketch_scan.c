/*
 * sketch_scan.c
 *		Scans of a sketch index: rows in the order of their true distances.
 *
 * The search tells which rows may be near.  These are fetched, their distances computed by the
 * operator itself, and a row is returned as soon as none that is left should be nearer.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "pgstat.h"
#include "utils/float.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "flat_scan.h"
#include "prefetch.h"
#include "sketch_queue.h"
#include "sketch_rows.h"
#include "sketch_search.h"

typedef struct SketchScan
{
	MemoryContext context;		/* of the scan */
	MemoryContext keys_context; /* of the keys' values */
	MemoryContext row_context;
	SketchSearch *search;
	SketchReader  reader;
	SketchQueue	  queue;
	Prefetch	  prefetch;
	SketchRows	  rows;
	bool		  has_rows;
	HeapTuple	  nulls; /* what an index-only scan gets, which asks for no column */

	/* the distances by which rows are ordered; of NULL queries all are equal */
	ScanKeyData *distances;
	int			 ndistances;
	double		*others; /* of a row, all but the first distance */
} SketchScan;

IndexScanDesc
sketch_begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = flat_begin_scan(index, nkeys, norderbys);
	SketchScan	 *state = palloc0(sizeof(SketchScan));
	MemoryContext caller;

	state->context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch scan", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(state->context);
	state->keys_context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch scan keys", ALLOCSET_SMALL_SIZES);
	state->row_context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch scan row", ALLOCSET_DEFAULT_SIZES);
	state->search = sketch_search_create(index);
	sketch_reader_init(&state->reader, index);
	sketch_queue_init(&state->queue, Max(norderbys - 1, 0));
	state->distances = palloc(sizeof(ScanKeyData) * Max(norderbys, 1));
	state->others = palloc0(sizeof(double) * Max(norderbys, 1));
	MemoryContextSwitchTo(caller);
	scan->opaque = state;
	return scan;
}

/* Finds out which distances decide; queries are detoasted once instead of for each row. */
static void
read_queries(IndexScanDesc scan, SketchScan *state)
{
	state->ndistances = 0;
	for (int i = 0; i < scan->numberOfOrderBys; i++)
	{
		ScanKeyData key = scan->orderByData[i];

		if ((key.sk_flags & SK_ISNULL) != 0)
			continue;
		key.sk_argument = PointerGetDatum(PG_DETOAST_DATUM(key.sk_argument));
		state->distances[state->ndistances++] = key;
	}
	state->queue.others = Max(state->ndistances - 1, 0);
}

void
sketch_rescan(IndexScanDesc scan, ScanKey keys, int nkeys pg_attribute_unused(), ScanKey orderbys,
			  int norderbys pg_attribute_unused())
{
	SketchScan	 *state = scan->opaque;
	MemoryContext caller;

	flat_take_keys(scan, keys, orderbys);
	MemoryContextReset(state->keys_context);
	sketch_queue_reset(&state->queue);
	caller = MemoryContextSwitchTo(state->keys_context);
	read_queries(scan, state);
	if (state->ndistances > 0)
	{
		const Vector query = sketch_read_vector(&state->reader, state->distances[0].sk_argument);

		sketch_search_start(state->search, &query);
	}
	else
		sketch_search_start(state->search, NULL);
	MemoryContextSwitchTo(state->context);
	if (!state->has_rows)
	{
		sketch_rows_begin(&state->rows, scan->heapRelation, scan->indexRelation, scan->xs_heapfetch,
						  scan->xs_snapshot);
		state->has_rows = true;
	}
	MemoryContextSwitchTo(caller);
	prefetch_start(&state->prefetch, scan->heapRelation);
	count_index_scan(scan);
}

/* What sketches estimate of a distance; a distance that is no number comes after all others. */
static double
measure_of(const SketchScan *state, double distance)
{
	if (isnan(distance))
		return get_float8_infinity();
	switch (state->reader.metric)
	{
		case SKETCH_L2:
			return distance * distance;
		case SKETCH_COSINE:
			return 2.0 * distance;
		default:
			return distance;
	}
}

static double
distance_of(ScanKey key, Datum value)
{
	return DatumGetFloat8(
		FunctionCall2Coll(&key->sk_func, key->sk_collation, value, key->sk_argument));
}

/* Fetches a row; if the snapshot sees it, and it has a vector, it waits in the queue from now on. */
static void
fetch_row(IndexScanDesc scan, SketchScan *state, ItemPointerData tid)
{
	MemoryContext caller = MemoryContextSwitchTo(state->row_context);
	SketchRow	  row = {.tid = tid, .others = state->others};
	Datum		  value;
	bool		  isnull;

	if (sketch_rows_fetch(&state->rows, tid, &value, &isnull) && !isnull)
	{
		/* idx_tup_fetch then shows how far searches have to look */
		pgstat_count_heap_fetch(scan->indexRelation);
		/* once for all distances */
		if (state->ndistances > 1)
			value = PointerGetDatum(PG_DETOAST_DATUM(value));
		row.distance = distance_of(&state->distances[0], value);
		for (int i = 1; i < state->ndistances; i++)
			state->others[i - 1] = distance_of(&state->distances[i], value);
		sketch_queue_add(&state->queue, &row);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(state->row_context);
}

/* Returns a row. */
static bool
return_row(IndexScanDesc scan, SketchScan *state, const SketchRow *row, bool isnull)
{
	scan->xs_heaptid = row->tid;
	scan->xs_recheck = false;
	scan->xs_recheckorderby = false;
	if (scan->numberOfOrderBys > 0)
	{
		scan->xs_orderbyvals[0] = Float8GetDatum(row->distance);
		scan->xs_orderbynulls[0] = isnull;
	}
	if (scan->xs_want_itup)
	{
		if (state->nulls == NULL)
		{
			MemoryContext caller = MemoryContextSwitchTo(state->context);
			Datum		  value = (Datum) 0;
			bool		  null = true;

			state->nulls = heap_form_tuple(RelationGetDescr(scan->indexRelation), &value, &null);
			MemoryContextSwitchTo(caller);
		}
		scan->xs_hitup = state->nulls;
		scan->xs_hitupdesc = RelationGetDescr(scan->indexRelation);
	}
	return true;
}

/*
 * Rows of which no distance is asked for, or that have none.  In an index-only scan the executor asks
 * the visibility map, which may say by now that all see all rows of a page where this one is gone:
 * so it is looked at here.
 */
static bool
is_visible(IndexScanDesc scan, SketchScan *state, ItemPointerData tid)
{
	return !scan->xs_want_itup || sketch_rows_visible(&state->rows, tid);
}

/* Takes the next entry; true if it has a distance. */
static bool
take_entry(IndexScanDesc scan, SketchScan *state, SketchRow *row)
{
	const uint64  key = sketch_search_take(state->search);
	const uint64 *keys;
	int			  known;

	keys = sketch_search_peek(state->search, &known);
	prefetch_rows(&state->prefetch, scan->heapRelation, keys, known);
	row->tid = flat_row_of_key(scan, key);
	return KEY_DISTANCE(key) != NULL_DISTANCE;
}

bool
sketch_get_tuple(IndexScanDesc scan, ScanDirection direction pg_attribute_unused())
{
	SketchScan *state = scan->opaque;

	Assert(ScanDirectionIsForward(direction));
	flat_check_snapshot(scan);
	for (;;)
	{
		SketchRow row = {.distance = 0.0, .others = NULL};
		double	  bound;
		bool	  more = sketch_search_bound(state->search, &bound);

		CHECK_FOR_INTERRUPTS();
		if (state->queue.count > 0 &&
			(!more || measure_of(state, state->queue.rows[0].distance) <= bound))
		{
			row = sketch_queue_take(&state->queue);
			return return_row(scan, state, &row, false);
		}
		if (!more)
			return false;
		if (sketch_search_look(state->search))
			continue;
		if (take_entry(scan, state, &row))
			fetch_row(scan, state, row.tid);
		else if (is_visible(scan, state, row.tid))
			return return_row(scan, state, &row, true);
	}
}

void
sketch_end_scan(IndexScanDesc scan)
{
	SketchScan *state = scan->opaque;

	if (state->has_rows)
		sketch_rows_end(&state->rows);
	MemoryContextDelete(state->context);
}

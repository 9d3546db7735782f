/*
 * sketch_recall.c
 *		sketch_recall: what share of the true nearest rows a search finds.
 *
 * Some rows serve as queries.  Their true neighbours are found by looking at all rows, once for all
 * queries.  Then the index is searched for each query, as a statement would do.  It does not matter
 * which of several rows at the same distance are found, so distances are compared.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "../math/random.h"
#include "flat_check.h"
#include "sketch_rows.h"

/* the same rows play queries each time */
#define SEED 20180415

/* A query, the row that it is, and the distances of the nearest other rows so far: sorted. */
typedef struct RecallQuery
{
	ItemPointerData tid;
	Datum			value;
	int				known;
	double		   *nearest;
} RecallQuery;

typedef struct Recall
{
	Relation	  heap;
	Relation	  index;
	Snapshot	  snapshot;
	MemoryContext context;
	MemoryContext row; /* of a row */
	int			  k;
	int			  wanted; /* queries */
	int			  count;  /* queries that there are */
	RecallQuery	 *queries;
	int64		  seen; /* rows with a vector */
	Random		  random;
	FmgrInfo	  distance;
	ScanKeyData	  key;
} Recall;

/* Of all rows each has the same chance to be among the queries. */
static void
draw_query(Relation index, ItemPointer tid, Datum *values, bool *isnull,
		   bool alive pg_attribute_unused(), void *state)
{
	Recall		 *recall = state;
	RecallQuery	 *query;
	MemoryContext caller;

	(void) index;
	CHECK_FOR_INTERRUPTS();
	if (isnull[0])
		return;
	recall->seen++;
	if (recall->count < recall->wanted)
		query = &recall->queries[recall->count++];
	else
	{
		const uint64 place = random_bits(&recall->random) % (uint64) recall->seen;

		if (place >= (uint64) recall->wanted)
			return;
		query = &recall->queries[place];
		pfree(DatumGetPointer(query->value));
	}
	query->tid = *tid;
	caller = MemoryContextSwitchTo(recall->context);
	query->value = PointerGetDatum(PG_DETOAST_DATUM_COPY(values[0]));
	MemoryContextSwitchTo(caller);
}

/* Keeps the k smallest distances. */
static void
note_distance(const Recall *recall, RecallQuery *query, double distance)
{
	int place = query->known;

	if (query->known == recall->k && !float8_lt(distance, query->nearest[recall->k - 1]))
		return;
	if (query->known < recall->k)
		query->known++;
	else
		place--;
	for (; place > 0 && float8_lt(distance, query->nearest[place - 1]); place--)
		query->nearest[place] = query->nearest[place - 1];
	query->nearest[place] = distance;
}

static void
compare_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			bool alive pg_attribute_unused(), void *state)
{
	Recall		 *recall = state;
	MemoryContext caller;
	Datum		  value;

	(void) index;
	CHECK_FOR_INTERRUPTS();
	if (isnull[0])
		return;
	caller = MemoryContextSwitchTo(recall->row);
	MemoryContextReset(recall->row);
	value = PointerGetDatum(PG_DETOAST_DATUM(values[0]));
	for (int i = 0; i < recall->count; i++)
	{
		RecallQuery *query = &recall->queries[i];

		if (!ItemPointerEquals(tid, &query->tid))
			note_distance(recall, query,
						  DatumGetFloat8(FunctionCall2(&recall->distance, value, query->value)));
	}
	MemoryContextSwitchTo(caller);
}

/* Calls for each row that the snapshot sees. */
static void
scan_table(Recall *recall, IndexBuildCallback callback)
{
	IndexInfo	 *info = BuildIndexInfo(recall->index);
	TableScanDesc scan = table_beginscan_strat(recall->heap, recall->snapshot, 0, NULL, true, true);

	/* as in a concurrent build: what the snapshot sees, and nothing about uniqueness */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	table_index_build_scan(recall->heap, recall->index, info, true, false, callback, recall, scan);
}

/* How many of the rows that the index returns first are true neighbours. */
static int
count_found(Recall *recall, const RecallQuery *query)
{
	IndexScanDesc	scan = begin_ordered_scan(recall->heap, recall->index, recall->snapshot);
	TupleTableSlot *slot = table_slot_create(recall->heap, NULL);
	ItemPointerData self = query->tid;
	ItemPointer		tid;
	int				returned = 0;
	int				found = 0;

	recall->key.sk_argument = query->value;
	index_rescan(scan, NULL, 0, &recall->key, 1);
	while (returned < query->known && (tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		if (ItemPointerEquals(tid, &self) || !index_fetch_heap(scan, slot))
			continue;
		returned++;
		found += !scan->xs_orderbynulls[0] && !float8_gt(DatumGetFloat8(scan->xs_orderbyvals[0]),
														 query->nearest[query->known - 1]);
	}
	ExecDropSingleTupleTableSlot(slot);
	index_endscan(scan);
	return found;
}

/* The distance of the index's operator class. */
static void
init_distance(Recall *recall)
{
	const Oid type = recall->index->rd_opcintype[0];
	const int strategy = (int) sketch_metric(recall->index) + 1;
	const Oid operation =
		get_opfamily_member(recall->index->rd_opfamily[0], type, type, (int16) strategy);

	fmgr_info(get_opcode(operation), &recall->distance);
	ScanKeyEntryInitialize(&recall->key, SK_ORDER_BY, 1, (StrategyNumber) strategy, type,
						   InvalidOid, get_opcode(operation), (Datum) 0);
}

static double
measure_recall(Recall *recall)
{
	int64 found = 0;
	int64 known = 0;

	recall->queries = palloc0(sizeof(RecallQuery) * recall->wanted);
	random_start(&recall->random, SEED, 0);
	init_distance(recall);
	scan_table(recall, draw_query);
	for (int i = 0; i < recall->count; i++)
		recall->queries[i].nearest = palloc(sizeof(double) * recall->k);
	scan_table(recall, compare_row);
	for (int i = 0; i < recall->count; i++)
	{
		found += count_found(recall, &recall->queries[i]);
		known += recall->queries[i].known;
	}
	/* of nothing, all has been found */
	return known == 0 ? 1.0 : (double) found / (double) known;
}

PG_FUNCTION_INFO_V1(sketch_recall);
Datum
sketch_recall(PG_FUNCTION_ARGS)
{
	Recall	 recall = {.k = PG_GETARG_INT32(1), .wanted = PG_GETARG_INT32(2)};
	FlatUser user;
	double	 share;

	if (recall.k < 1 || recall.k > 10000)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("k must be between 1 and 10000"));
	if (recall.wanted < 1 || recall.wanted > 10000)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("queries must be between 1 and 10000"));
	recall.index = flat_open_index(PG_GETARG_OID(0), sketch_build, "sketch", &recall.heap);
	flat_check_may_count(recall.heap);
	flat_check_complete(recall.index);
	recall.context = CurrentMemoryContext;
	recall.row =
		AllocSetContextCreate(CurrentMemoryContext, "sketch recall, a row", ALLOCSET_DEFAULT_SIZES);
	/* the index may have expressions: they run as in CREATE INDEX */
	flat_become_owner(&user, recall.heap);
	recall.snapshot = RegisterSnapshot(GetTransactionSnapshot());
	share = measure_recall(&recall);
	UnregisterSnapshot(recall.snapshot);
	flat_become_user(&user);
	flat_close_index(recall.heap, recall.index);
	PG_RETURN_FLOAT8(share);
}

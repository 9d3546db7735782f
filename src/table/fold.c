/*
 * fold.c
 *		Learns what waits in the pending table, and deletes it there, in one transaction.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "table.h"

/* The pending table is never due while it has fewer pages than this. */
#define LEAST_PAGES 64

/* How many bytes may be pending before it is time to learn them: two models. */
int64
pending_due(const ModelConfig *config)
{
	const double model =
		4.0 * config->bits * config->dims + 12.0 * config->bits * config->bits + 8.0 * config->dims;

	return (int64) Max(2.0 * model, (double) LEAST_PAGES * BLCKSZ);
}

/* How many bytes the pending table has, with or without rows in them. */
int64
pending_size(Relation pending)
{
	return (int64) RelationGetNumberOfBlocks(pending) * BLCKSZ;
}

/* How many bytes it should have at most, while writers are faster than learning. */
int64
pending_most(const ModelConfig *config)
{
	return 5 * pending_due(config);
}

/* What is being learnt, and how much. */
typedef struct Fold
{
	Attachment	 *attachment;
	MemoryContext context;
	Sketcher	 *learning; /* in the context; NULL before the first vector ever */
	int			  tuples;
} Fold;

/*
 * Is so much pending that it pays?  A delta always does.  In a table that is large, because
 * vacuum could not remove what was learnt, it takes more: each fold has to read all of it.
 */
static bool
is_due(Relation pending, Snapshot snapshot, const ModelConfig *config)
{
	const int64	  limit = Max(pending_due(config), pending_size(pending) / 4);
	TableScanDesc scan = table_beginscan_strat(pending, snapshot, 0, NULL, true, false);
	HeapTuple	  tuple;
	int64		  bytes = 0;

	while (bytes < limit && (tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		bytes += tuple->t_len;
		/* many vectors lie out of line, or have been learnt */
		if (HeapTupleHasExternal(tuple) ||
			!heap_attisnull(tuple, PENDING_DELTA, RelationGetDescr(pending)))
			bytes = limit;
	}
	table_endscan(scan);
	return bytes >= limit;
}

/* Makes room for vectors of so many dimensions; false if the model has another number. */
static bool
accept_dims(Fold *fold, int dims)
{
	if (fold->learning == NULL)
	{
		const ModelConfig config = sketcher_config_for(&fold->attachment->config, dims);

		fold->learning = sketcher_create(&config, fold->context);
	}
	if (fold->learning->model->config.dims == dims)
		return true;
	/* two transactions, both the first to insert; the refresh will stop at the row */
	ereport(WARNING, errcode(ERRCODE_DATA_EXCEPTION),
			errmsg("vectors of %d dimensions are not learnt, because the model has %d", dims,
				   fold->learning->model->config.dims));
	return false;
}

static void
learn_vectors(Fold *fold, Datum datum)
{
	ArrayType *array = DatumGetArrayTypeP(datum);
	int		   count;
	int		   dims;

	if (ARR_NDIM(array) != 2 || ARR_HASNULL(array))
		ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
				errmsg("a row of pending vectors is damaged"));
	count = ARR_DIMS(array)[0];
	dims = ARR_DIMS(array)[1];
	if (!accept_dims(fold, dims))
		return;
	for (int i = 0; i < count; i++)
	{
		const Vector vector =
			vector_of((const float *) ARR_DATA_PTR(array) + (size_t) i * dims, dims);

		CHECK_FOR_INTERRUPTS();
		sketcher_learn_row(fold->learning, vector);
	}
}

static void
learn_delta(Fold *fold, Datum datum)
{
	Sketcher *delta = sketcher_writable(datum, fold->context);

	if (fold->learning == NULL)
		fold->learning = delta;
	else if (accept_dims(fold, delta->model->config.dims))
	{
		/* the delta's directions are turned to those of the model, never the other way round */
		sketcher_absorb(fold->learning, delta->model, fold->learning->model->rows > 0);
		DeleteExpandedObject(SketcherGetDatum(delta));
	}
}

/* Learns all that the snapshot sees, and deletes it. */
static void
learn_pending(Fold *fold, Relation pending, Snapshot snapshot)
{
	TableScanDesc scan = table_beginscan_strat(pending, snapshot, 0, NULL, true, false);
	MemoryContext scratch =
		AllocSetContextCreate(CurrentMemoryContext, "unifdiag fold", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(scratch);
	HeapTuple	  tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Datum values[PENDING_COLUMNS];
		bool  nulls[PENDING_COLUMNS];

		CHECK_FOR_INTERRUPTS();
		heap_deform_tuple(tuple, RelationGetDescr(pending), values, nulls);
		if (!nulls[PENDING_DELTA - 1])
			learn_delta(fold, values[PENDING_DELTA - 1]);
		else if (!nulls[PENDING_VECTORS - 1])
			learn_vectors(fold, values[PENDING_VECTORS - 1]);
		simple_heap_delete(pending, &tuple->t_self);
		fold->tuples++;
		MemoryContextReset(scratch);
	}
	table_endscan(scan);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
}

/*
 * Learns what is pending, all of it or only if it is due; within a transaction of the
 * caller's, who commits.  False if there was nothing to do.
 */
bool
fold_pending(Oid model, bool all)
{
	Attachment attachment;
	Fold	   fold = {.attachment = &attachment, .context = CurrentMemoryContext};
	Relation   pending;

	/* the model table before the pending table, as whoever drops them does */
	model_lock(model, LOCK_FOLD, false, true);
	LockRelationOid(model, RowExclusiveLock);
	attachment_read_latest(model, &attachment);
	pending = table_open(attachment.pending, RowExclusiveLock);
	pending_check(pending);
	pending_check_owner(attachment.pending, model);
	PushActiveSnapshot(GetLatestSnapshot());
	if (all || is_due(pending, GetActiveSnapshot(), &attachment.config))
	{
		if (attachment.learning != (Datum) 0)
			fold.learning = sketcher_writable(attachment.learning, fold.context);
		learn_pending(&fold, pending, GetActiveSnapshot());
	}
	if (fold.tuples > 0 && fold.learning != NULL)
	{
		int	  columns[] = {MODEL_LEARNING, MODEL_DIMS};
		Datum values[] = {SketcherGetDatum(fold.learning),
						  Int32GetDatum(fold.learning->model->config.dims)};
		bool  nulls[] = {false, false};

		attachment_update(model, &attachment, columns, values, nulls, 2);
	}
	PopActiveSnapshot();
	table_close(pending, NoLock);
	return fold.tuples > 0;
}

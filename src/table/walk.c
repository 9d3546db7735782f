/*
 * walk.c
 *		Goes over the rows of a table and gives those whose code is not that of the
 *		published model the right one.
 *
 * In batches, with a commit after each.  Between two of them no lock is held that others
 * could not get past, so everything is looked up again: the column may have been detached,
 * the model table's row rewritten.
 *
 * One pass is enough.  While the walk is marked in the model table's row, the trigger
 * gives every row that is written its code, and statements that began before have been
 * waited for.  A row that somebody else holds ends a batch, and is waited for by the next
 * one with nothing else locked.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/xid8.h"

#include "table.h"

/* pages a transaction looks at, however few rows it finds to change */
#define CHUNK_PAGES 1024

/* how often a notice tells how far it is */
#define NOTICE_MILLISECONDS 10000

/* One of the target's tables, open for one batch. */
typedef struct Batch
{
	Refresh			*refresh;
	Relation		 relation;
	CodeColumn		 column;
	VectorColumn	 vector;
	MemoryContext	 scratch;
	Oid				 code_type;
	int				 count; /* rows to be changed, */
	ArrayBuildState *tids;	/* where they are, and their new codes */
	ArrayBuildState *codes;
	LearntMarks		 marks;
	bool			 has_new; /* a row among them is new to the model */
} Batch;

/* the batch whose codes are being written */
static const Batch *writing = NULL;

/* Sets *code to the code that the row should have; false if it has it. */
static bool
is_stale(Batch *batch, TupleTableSlot *slot, Datum *code, bool *is_null)
{
	bool		old_is_null;
	const Datum old = slot_getattr(slot, batch->column.code, &old_is_null);
	const Datum datum = slot_getattr(slot, batch->column.vector, is_null);
	Vector		vector;

	*code = (Datum) 0;
	if (!*is_null)
	{
		*is_null =
			!vector_try_read(vector_column_array(&batch->vector, datum, &slot->tts_tid), &vector) ||
			vector.dims != hash_plan_config(batch->refresh->plan)->dims;
		if (!*is_null)
			*code = PointerGetDatum(hash_plan_code(batch->refresh->plan, vector));
	}
	if (*is_null || old_is_null)
		return *is_null != old_is_null;
	return !datum_image_eq(old, *code, false, -1);
}

/*
 * Locks a row that has to be changed, and remembers it.  False if somebody else holds it and
 * it is not the first.  A row that has been changed or deleted meanwhile is right already, or
 * gone.
 */
static bool
lock_row(Batch *batch, TupleTableSlot *slot, TupleTableSlot *locked, Datum code, bool is_null)
{
	TM_FailureData	failure;
	const TM_Result result =
		table_tuple_lock(batch->relation, &slot->tts_tid, GetActiveSnapshot(), locked,
						 GetCurrentCommandId(false), LockTupleNoKeyExclusive,
						 batch->count == 0 ? LockWaitBlock : LockWaitSkip, 0, &failure);

	if (result == TM_WouldBlock)
		return false;
	if (result == TM_Ok)
	{
		batch->count++;
		batch->has_new = batch->has_new || is_new(&batch->marks, slot);
		(void) accumArrayResult(batch->tids, PointerGetDatum(&slot->tts_tid), false, TIDOID,
								CurrentMemoryContext);
		(void) accumArrayResult(batch->codes, code, is_null, batch->code_type,
								CurrentMemoryContext);
	}
	return true;
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) DatumGetPointer(*(const Datum *) a),
							  (ItemPointer) DatumGetPointer(*(const Datum *) b));
}

/*
 * Is this the code that the walk has made for a row version by that model, and is about to
 * write?  Then the trigger need not make it again.
 */
bool
walk_writes(Relation relation, ItemPointer row, const HashPlan *plan, Datum code, bool is_null)
{
	const Datum key = PointerGetDatum(row);
	Datum	   *tids;
	Datum	   *found;

	if (writing == NULL || writing->refresh->plan != plan ||
		RelationGetRelid(writing->relation) != RelationGetRelid(relation))
		return false;
	/* they are in the order of the scan */
	tids = writing->tids->dvalues;
	found = bsearch(&key, tids, writing->count, sizeof(Datum), compare_tids);
	return found != NULL && writing->codes->dnulls[found - tids] == is_null &&
		   (is_null || datum_image_eq(writing->codes->dvalues[found - tids], code, false, -1));
}

/* Warns of rows that have not the codes that they should have. */
void
report_kept(Oid target, int64 rows)
{
	if (rows > 0)
		ereport(WARNING,
				errmsg(INT64_FORMAT " rows of table \"%s\" did not get the code of the published "
									"model",
					   rows, get_rel_name(target)),
				errdetail("A trigger, a rule or a policy of the table keeps them as they are."));
}

/* Writes the codes; the rows are locked, so this waits for nobody. */
static void
write_codes(Batch *batch)
{
	const Oid	table = RelationGetRelid(batch->relation);
	Oid			types[2] = {TIDARRAYOID, get_array_type(batch->code_type)};
	Datum		values[2];
	const char *query = psprintf(
		"UPDATE ONLY %1$s AS target SET %2$s = made.code "
		"FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS made (tid, code) "
		"WHERE target.ctid OPERATOR(pg_catalog.=) made.tid",
		sql_relation(table), quote_identifier(get_attname(table, batch->column.code, false)));

	values[0] = makeArrayResult(batch->tids, CurrentMemoryContext);
	values[1] = makeArrayResult(batch->codes, CurrentMemoryContext);
	writing = batch;
	PG_TRY();
	{
		if (SPI_execute_with_args(query, 2, types, values, NULL, false, 0) < 0)
			elog(ERROR, "could not write codes");
	}
	PG_FINALLY();
	{
		writing = NULL;
	}
	PG_END_TRY();
	batch->refresh->changed += (int64) SPI_processed;
	batch->refresh->kept += batch->count - (int64) SPI_processed;
}

/*
 * Looks at rows from a page on, until there is a batch to change or enough pages have been
 * seen, and writes the codes.  Returns the page to go on with.
 */
static BlockNumber
change_rows(Batch *batch, const ModelRow *row, BlockNumber from, BlockNumber end)
{
	ItemPointer		held = &batch->refresh->held;
	TupleTableSlot *slot = table_slot_create(batch->relation, NULL);
	TupleTableSlot *locked = table_slot_create(batch->relation, NULL);
	BlockNumber		page = from;
	ItemPointerData first;
	ItemPointerData last;
	TableScanDesc	scan;

	end = Min(end, from + CHUNK_PAGES);
	ItemPointerSet(&first, from, FirstOffsetNumber);
	ItemPointerSet(&last, end - 1, MaxOffsetNumber);
	/* those before it were changed by the last batch, if nothing keeps them as they are */
	if (ItemPointerIsValid(held) && ItemPointerGetBlockNumber(held) == from)
		first = *held;
	ItemPointerSetInvalid(held);
	PushActiveSnapshot(GetTransactionSnapshot());
	read_marks(row, RelationGetRelid(batch->relation), &batch->marks);
	scan = begin_tidrange_scan(batch->relation, GetActiveSnapshot(), &first, &last);
	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot))
	{
		MemoryContext caller;
		Datum		  code;
		bool		  is_null;
		bool		  stale;

		CHECK_FOR_INTERRUPTS();
		/* a page is looked at as a whole */
		if (batch->count >= batch->refresh->batch &&
			ItemPointerGetBlockNumber(&slot->tts_tid) != page)
		{
			end = ItemPointerGetBlockNumber(&slot->tts_tid);
			break;
		}
		page = ItemPointerGetBlockNumber(&slot->tts_tid);
		MemoryContextReset(batch->scratch);
		caller = MemoryContextSwitchTo(batch->scratch);
		stale = is_stale(batch, slot, &code, &is_null);
		MemoryContextSwitchTo(caller);
		if (stale && !lock_row(batch, slot, locked, code, is_null))
		{
			*held = slot->tts_tid;
			end = page;
			break;
		}
	}
	table_endscan(scan);
	PopActiveSnapshot();
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(locked);
	if (batch->count > 0)
		write_codes(batch);
	return end;
}

/* Reports progress: in pg_stat_activity each time, by a notice now and then. */
static void
report_progress(Refresh *refresh, Oid table, BlockNumber page, BlockNumber end)
{
	const TimestampTz now = GetCurrentTimestamp();
	char			 *message = psprintf(
		"sketcher_refresh of %s: page %u of %u of table \"%s\", " INT64_FORMAT " codes changed",
		sql_relation(refresh->target), page, end, get_rel_name(table), refresh->changed);

	pgstat_report_activity(STATE_RUNNING, message);
	if (TimestampDifferenceExceeds(refresh->reported, now, NOTICE_MILLISECONDS))
	{
		refresh->reported = now;
		ereport(NOTICE, errmsg_internal("%s", message));
	}
	pfree(message);
}

/* Changes a batch of rows of one table, and stores the position; false if it is done. */
static bool
walk_table(Refresh *refresh, const CodeColumn *column, ModelRow *row, Relation relation)
{
	const Oid	table = RelationGetRelid(relation);
	const Oid	file = relation->rd_rel->relfilenode;
	Batch		batch = {.refresh = refresh, .relation = relation};
	BlockNumber page = 0;

	/* a table that was rewritten has its rows on other pages */
	if (DatumGetObjectId(ROW_VALUE(row, WALK_TABLE)) == table &&
		DatumGetObjectId(ROW_VALUE(row, WALK_FILE)) == file)
		page = (BlockNumber) DatumGetInt64(ROW_VALUE(row, WALK_PAGE));
	else
		ItemPointerSetInvalid(&refresh->held);
	/* what is appended later has its code */
	if (refresh->end_table != table || page == 0)
	{
		refresh->end = RelationGetNumberOfBlocks(relation);
		refresh->end_table = table;
	}
	if (page >= refresh->end)
		return false;
	batch.column = column_of_part(relation, refresh->target, column);
	batch.code_type = get_atttype(table, batch.column.code);
	batch.tids = initArrayResult(TIDOID, CurrentMemoryContext, false);
	batch.codes = initArrayResult(batch.code_type, CurrentMemoryContext, false);
	batch.scratch =
		AllocSetContextCreate(CurrentMemoryContext, "unifdiag walk", ALLOCSET_DEFAULT_SIZES);
	vector_column_init(&batch.vector, relation, batch.column.vector);
	page = change_rows(&batch, row, page, refresh->end);
	/* a batch with a row that has still to be learnt is not noted: all of it is learnt again */
	if (batch.count > 0 && !batch.has_new)
		(void) accumArrayResult(refresh->rewritten,
								FullTransactionIdGetDatum(GetCurrentFullTransactionId()), false,
								XID8OID, refresh->context);
	model_row_set_walk(row, table, file, page);
	model_row_update(row, MODEL_WALK_TABLE, MODEL_WALK_PAGE);
	report_progress(refresh, table, page, refresh->end);
	return true;
}

/* Does one batch, or removes the mark at the end; true if all is done. */
static bool
walk_step(Refresh *refresh, Relation target)
{
	CodeColumn column;
	ModelRow   row;
	List	  *tables;
	ListCell  *cell;
	bool	   done = true;

	refresh_look_up(refresh, target, &column, &row);
	if (ROW_IS_NULL(&row, WALK_TABLE))
		return true;
	tables = leaf_tables(refresh->target);
	foreach (cell, tables)
	{
		if (done && lfirst_oid(cell) >= DatumGetObjectId(ROW_VALUE(&row, WALK_TABLE)))
		{
			Relation relation = table_open(lfirst_oid(cell), RowExclusiveLock);

			done = !walk_table(refresh, &column, &row, relation);
			table_close(relation, NoLock);
		}
	}
	if (done)
	{
		for (int i = MODEL_WALK_TABLE; i <= MODEL_WALK_PAGE; i++)
			row.nulls[i - 1] = true;
		add_rewritten(&row, refresh->rewritten->dvalues, refresh->rewritten->nelems);
		model_row_update(&row, MODEL_REWRITTEN, MODEL_WALK_PAGE);
	}
	return done;
}

/* Gives all rows codes by the published model, from the marked page on. */
void
walk_codes(Refresh *refresh)
{
	refresh->end_table = InvalidOid;
	refresh->changed = refresh->kept = 0;
	refresh->rewritten = initArrayResult(XID8OID, refresh->context, false);
	refresh->reported = GetCurrentTimestamp();
	while (!refresh_step(refresh, walk_step))
		;
	ereport(NOTICE, errmsg("table \"%s\": " INT64_FORMAT " codes changed",
						   get_rel_name(refresh->target), refresh->changed));
	report_kept(refresh->target, refresh->kept);
}

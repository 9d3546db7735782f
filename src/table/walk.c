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
 * waited for.  Rows that others hold are left out in the first pass, and waited for in a
 * second one, one by one, with nothing else locked.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/datum.h"

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
		*is_null = !vector_try_read(vector_column_array(&batch->vector, datum), &vector) ||
				   vector.dims != hash_plan_config(batch->refresh->plan)->dims;
		if (!*is_null)
			*code = PointerGetDatum(hash_plan_code(batch->refresh->plan, vector));
	}
	if (*is_null || old_is_null)
		return *is_null != old_is_null;
	return !datum_image_eq(old, *code, false, -1);
}

/*
 * Locks a row that has to be changed, and remembers it.  False if somebody else holds it, and
 * it is left out or waited for later.  A row that has been changed or deleted meanwhile is
 * right already, or gone.
 */
static bool
lock_row(Batch *batch, TupleTableSlot *slot, TupleTableSlot *locked, Datum code, bool is_null)
{
	const bool		wait = batch->refresh->wait && batch->count == 0;
	TM_FailureData	failure;
	const TM_Result result =
		table_tuple_lock(batch->relation, &slot->tts_tid, GetActiveSnapshot(), locked,
						 GetCurrentCommandId(false), LockTupleNoKeyExclusive,
						 wait ? LockWaitBlock : LockWaitSkip, 0, &failure);

	if (result == TM_WouldBlock)
		return false;
	if (result == TM_Ok)
	{
		batch->count++;
		batch->has_new = batch->has_new || is_new(&batch->marks, slot);
		batch->tids = accumArrayResult(batch->tids, PointerGetDatum(&slot->tts_tid), false, TIDOID,
									   CurrentMemoryContext);
		batch->codes =
			accumArrayResult(batch->codes, code, is_null, batch->code_type, CurrentMemoryContext);
	}
	return true;
}

/* Writes the codes; the rows are locked, so this waits for nobody. */
static void
write_codes(Batch *batch)
{
	const Oid table = RelationGetRelid(batch->relation);
	Oid		  types[2] = {TIDARRAYOID, get_array_type(batch->code_type)};
	Datum	  values[2];
	char	 *query;

	if (batch->count == 0)
		return;
	values[0] = makeArrayResult(batch->tids, CurrentMemoryContext);
	values[1] = makeArrayResult(batch->codes, CurrentMemoryContext);
	query = psprintf(
		"UPDATE ONLY %1$s AS target SET %2$s = made.code "
		"FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS made (tid, code) "
		"WHERE target.ctid OPERATOR(pg_catalog.=) made.tid",
		sql_relation(table), quote_identifier(get_attname(table, batch->column.code, false)));
	if (SPI_execute_with_args(query, 2, types, values, NULL, false, 0) != SPI_OK_UPDATE)
		elog(ERROR, "could not write codes");
	batch->refresh->changed += (int64) SPI_processed;
}

/*
 * Looks at rows from a page on, until there is a batch to change or enough pages have been
 * seen, and writes the codes.  Returns the page to go on with.
 */
static BlockNumber
change_rows(Batch *batch, BlockNumber from, BlockNumber end)
{
	TupleTableSlot *slot = table_slot_create(batch->relation, NULL);
	TupleTableSlot *locked = table_slot_create(batch->relation, NULL);
	BlockNumber		page = from;
	ItemPointerData first;
	ItemPointerData last;
	TableScanDesc	scan;

	end = Min(end, from + CHUNK_PAGES);
	ItemPointerSet(&first, from, FirstOffsetNumber);
	ItemPointerSet(&last, end - 1, MaxOffsetNumber);
	PushActiveSnapshot(GetTransactionSnapshot());
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
			/* to be waited for in the next batch, which starts with nothing locked */
			if (batch->refresh->wait)
			{
				end = page;
				break;
			}
			batch->refresh->skipped = true;
		}
	}
	table_endscan(scan);
	PopActiveSnapshot();
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(locked);
	write_codes(batch);
	return end;
}

/* Tells how far it is: in pg_stat_activity each time, with a notice now and then. */
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
walk_table(Refresh *refresh, const CodeColumn *column, ModelRow *row, Oid table)
{
	Batch		batch = {.refresh = refresh, .relation = try_table_open(table, RowExclusiveLock)};
	BlockNumber page = 0;
	Oid			file;

	if (batch.relation == NULL)
		return false;
	/* a table that was rewritten has its rows on other pages */
	file = batch.relation->rd_rel->relfilenode;
	if (DatumGetObjectId(ROW_VALUE(row, WALK_TABLE)) == table &&
		DatumGetObjectId(ROW_VALUE(row, WALK_FILE)) == file)
		page = (BlockNumber) DatumGetInt64(ROW_VALUE(row, WALK_PAGE));
	/* what is appended later has its code */
	if (refresh->end_table != table || refresh->end_file != file)
	{
		refresh->end = RelationGetNumberOfBlocks(batch.relation);
		refresh->end_table = table;
		refresh->end_file = file;
	}
	if (page >= refresh->end)
	{
		table_close(batch.relation, NoLock);
		return false;
	}
	batch.column = column_of_part(batch.relation, refresh->target, column);
	batch.code_type = get_atttype(table, batch.column.code);
	batch.scratch =
		AllocSetContextCreate(CurrentMemoryContext, "unifdiag walk", ALLOCSET_DEFAULT_SIZES);
	vector_column_init(&batch.vector, batch.relation, batch.column.vector);
	read_marks(row, &batch.marks);
	page = change_rows(&batch, page, refresh->end);
	table_close(batch.relation, NoLock);
	/* if a row has still to be learnt, the others are learnt again with it */
	if (batch.count > 0 && !batch.has_new)
		note_transaction(row);
	model_row_set(row, MODEL_WALK_TABLE, ObjectIdGetDatum(table));
	model_row_set(row, MODEL_WALK_FILE, ObjectIdGetDatum(file));
	model_row_set(row, MODEL_WALK_PAGE, Int64GetDatum((int64) page));
	if (refresh->skipped)
		model_row_set(row, MODEL_WALK_SKIPPED, BoolGetDatum(true));
	model_row_update(row, batch.count > 0 ? MODEL_REWRITTEN : MODEL_WALK_TABLE, MODEL_WALK_SKIPPED);
	report_progress(refresh, table, page, refresh->end);
	return true;
}

/*
 * The end of a pass: the mark goes if no row was left out.  Otherwise another pass begins,
 * which waits for those who hold rows.
 */
static bool
end_pass(Refresh *refresh, ModelRow *row)
{
	if (DatumGetBool(ROW_VALUE(row, WALK_SKIPPED)))
	{
		model_row_set(row, MODEL_WALK_TABLE, ObjectIdGetDatum(InvalidOid));
		model_row_set(row, MODEL_WALK_SKIPPED, BoolGetDatum(false));
		refresh->skipped = false;
		refresh->wait = true;
		refresh->end_table = InvalidOid;
		model_row_update(row, MODEL_WALK_TABLE, MODEL_WALK_SKIPPED);
		return false;
	}
	for (int column = MODEL_WALK_TABLE; column <= MODEL_WALK_SKIPPED; column++)
		model_row_set_null(row, column);
	model_row_update(row, MODEL_WALK_TABLE, MODEL_WALK_SKIPPED);
	return true;
}

/* One batch, or the end of a pass; true if all is done. */
static bool
walk_step(Refresh *refresh, Relation target)
{
	CodeColumn column;
	ModelRow   row;
	List	  *tables;
	ListCell  *cell;

	refresh_look_up(refresh, target, &column, &row);
	if (ROW_IS_NULL(&row, WALK_TABLE))
		return true;
	tables = leaf_tables(refresh->target);
	foreach (cell, tables)
	{
		if (lfirst_oid(cell) >= DatumGetObjectId(ROW_VALUE(&row, WALK_TABLE)) &&
			walk_table(refresh, &column, &row, lfirst_oid(cell)))
			return false;
	}
	return end_pass(refresh, &row);
}

/* Brings all rows to the published model, from where the mark says. */
void
walk_codes(Refresh *refresh)
{
	refresh->skipped = refresh->wait = false;
	refresh->end_table = InvalidOid;
	refresh->changed = 0;
	refresh->reported = GetCurrentTimestamp();
	while (!refresh_step(refresh, walk_step))
		;
	ereport(NOTICE, errmsg("table \"%s\": " INT64_FORMAT " codes changed",
						   get_rel_name(refresh->target), refresh->changed));
}

/*
 * walk.c
 *		Goes over the rows of a table and gives those whose code is not that of the
 *		published model the right one (walk_rows.c): in which order, from where on, and
 *		until when.
 *
 * In batches, with a commit after each; what the rules are, and why a second look is
 * needed, says src/README.md under "Refresh".  Runs in a procedure that may commit.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinvaladt.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "../compat.h"
#include "sql.h"
#include "table.h"
#include "walk.h"

/* pages a transaction looks at, however few rows it finds to change */
#define CHUNK_PAGES 1024

/* how long the second look waits for others, and how often it looks */
#define PATIENCE_MILLISECONDS 10000
#define NAP_MILLISECONDS 50

/* how often a notice tells how far it is */
#define NOTICE_MILLISECONDS 10000

/* Commits, and goes on in a transaction that sees what is committed at each statement. */
void
walk_commit(void)
{
	SPI_commit();
	XactIsoLevel = XACT_READ_COMMITTED;
}

/* The tables that have the rows: the target itself, or its partitions by oid. */
List *
walk_tables(Oid target)
{
	List	 *tables = NIL;
	List	 *all = find_all_inheritors(target, AccessShareLock, NULL);
	ListCell *cell;

	if (get_rel_relkind(target) == RELKIND_RELATION)
		return list_make1_oid(target);
	foreach (cell, all)
	{
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_RELATION)
			tables = lappend_oid(tables, lfirst_oid(cell));
	}
	list_sort(tables, list_oid_cmp);
	return tables;
}

/* Transactions that hold a lock to write into any of the tables, but for vacuum's. */
void
walk_note_writers(Walk *walk)
{
	List	 *tables = list_append_unique_oid(walk_tables(walk->target), walk->target);
	ListCell *cell;

	foreach (cell, tables)
	{
		LOCKTAG				  tag;
		VirtualTransactionId *holders;
		int					  count;

		SET_LOCKTAG_RELATION(tag, MyDatabaseId, lfirst_oid(cell));
		holders = GetLockConflicts(&tag, ShareLock, &count);
		walk->writers = walk->writers == NULL
							? palloc(sizeof(VirtualTransactionId) * (count + 1))
							: repalloc(walk->writers, sizeof(VirtualTransactionId) *
														  (walk->writer_count + count + 1));
		for (int i = 0; i < count; i++)
		{
			PGPROC *process = virtual_transaction_process(holders[i]);

			if (process == NULL || (process->statusFlags & PROC_IN_VACUUM) == 0)
				walk->writers[walk->writer_count++] = holders[i];
		}
		pfree(holders);
	}
}

/* Forgets the writers that have ended; are there none left? */
static bool
writers_have_ended(Walk *walk)
{
	int left = 0;

	for (int i = 0; i < walk->writer_count; i++)
	{
		if (!VirtualXactLock(walk->writers[i], false))
			walk->writers[left++] = walk->writers[i];
	}
	walk->writer_count = left;
	return left == 0;
}

static void
save_position(const Walk *walk, Oid table, Oid file, BlockNumber page)
{
	Attachment attachment;
	int		   columns[] = {MODEL_WALK_TABLE, MODEL_WALK_FILE, MODEL_WALK_PAGE};
	Datum values[] = {ObjectIdGetDatum(table), ObjectIdGetDatum(file), Int64GetDatum((int64) page)};
	bool  nulls[] = {false, false, false};

	model_lock(walk->model, LOCK_FOLD, false, true);
	attachment_read_latest(walk->model, &attachment);
	attachment_update(walk->model, &attachment, columns, values, nulls, lengthof(columns));
}

/* Tells how far it is: in pg_stat_activity each time, with a notice now and then. */
static void
tell(Walk *walk)
{
	char *message =
		psprintf("sketcher_refresh of %s: " INT64_FORMAT " of " INT64_FORMAT " pages, " INT64_FORMAT
				 " codes changed",
				 sql_relation(walk->target), walk->pages_done, walk->pages, walk->changed);
	const TimestampTz now = GetCurrentTimestamp();

	pgstat_report_activity(STATE_RUNNING, message);
	if (TimestampDifferenceExceeds(walk->told, now, NOTICE_MILLISECONDS))
	{
		walk->told = now;
		ereport(NOTICE, errmsg_internal("%s", message));
	}
	pfree(message);
}

/*
 * Looks at rows from a page on, until there is a batch to change or enough pages have been
 * seen, and writes the codes.  Returns the page to go on with.
 */
static BlockNumber
look_at_chunk(WalkTable *table, BlockNumber from, BlockNumber end)
{
	Walk		   *walk = table->walk;
	TupleTableSlot *slot = table_slot_create(table->relation, NULL);
	TupleTableSlot *locked = table_slot_create(table->relation, NULL);
	BlockNumber		page = from;
	ItemPointerData first;
	ItemPointerData last;
	TableScanDesc	scan;
	MemoryContext	scratch =
		AllocSetContextCreate(CurrentMemoryContext, "unifdiag walk", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;

	end = Min(end, from + CHUNK_PAGES);
	ItemPointerSet(&first, from, FirstOffsetNumber);
	ItemPointerSet(&last, end - 1, MaxOffsetNumber);
	PushActiveSnapshot(GetTransactionSnapshot());
	scan = table_beginscan_tidrange(table->relation, GetActiveSnapshot(), &first, &last);
	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot))
	{
		Datum code;
		bool  is_null;
		bool  stale;

		CHECK_FOR_INTERRUPTS();
		/* a page is looked at as a whole */
		if (table->count >= walk->batch && ItemPointerGetBlockNumber(&slot->tts_tid) != page)
		{
			end = ItemPointerGetBlockNumber(&slot->tts_tid);
			break;
		}
		page = ItemPointerGetBlockNumber(&slot->tts_tid);
		MemoryContextReset(scratch);
		caller = MemoryContextSwitchTo(scratch);
		stale = walk_is_stale(table, slot, &code, &is_null);
		MemoryContextSwitchTo(caller);
		if (stale && !walk_take_row(table, slot, locked, GetActiveSnapshot(), code, is_null))
			walk->skipped = true;
	}
	table_endscan(scan);
	PopActiveSnapshot();
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(locked);
	MemoryContextDelete(scratch);
	walk_write_codes(table);
	return end;
}

/* The first look at one table, from a page on: what was there when the model was published. */
static void
first_look(Walk *walk, Oid oid, Oid file, BlockNumber from)
{
	BlockNumber end = 0;

	for (BlockNumber page = from; page == from || page < end;)
	{
		WalkTable table;
		Oid		  file_now;

		if (!walk_open_table(&table, walk, oid))
			return;
		/* rewritten: rows have moved to other pages */
		file_now = table.relation->rd_rel->relfilenode;
		if (file_now != file)
		{
			page = from = 0;
			end = 0;
			file = file_now;
		}
		if (end == 0)
			end = RelationGetNumberOfBlocks(table.relation);
		if (page < end)
		{
			const BlockNumber next = look_at_chunk(&table, page, end);

			walk->pages_done += next - page;
			page = next;
			save_position(walk, oid, file, page);
		}
		else
			end = page;
		table_close(table.relation, NoLock);
		walk_commit();
		tell(walk);
		if (page >= end)
			return;
	}
}

static int
compare_transactions(const void *a, const void *b)
{
	const TransactionId x = *(const TransactionId *) a;
	const TransactionId y = *(const TransactionId *) b;

	return TransactionIdPrecedes(x, y) ? -1 : TransactionIdPrecedes(y, x) ? 1 : 0;
}

static bool
is_own(const Walk *walk, TransactionId transaction)
{
	return walk->own_count > 0 && bsearch(&transaction, walk->own, walk->own_count,
										  sizeof(TransactionId), compare_transactions) != NULL;
}

/* Did the row come into being after the model was published, and not by this walk? */
static bool
is_recent(const Walk *walk, TupleTableSlot *slot)
{
	bool				is_null;
	const TransactionId creator =
		DatumGetTransactionId(slot_getsysattr(slot, MinTransactionIdAttributeNumber, &is_null));

	if (is_own(walk, creator))
		return false;
	return walk->skipped || !TransactionIdIsValid(walk->since) ||
		   TransactionIdFollowsOrEquals(creator, walk->since);
}

/*
 * The second look at one table; false if rows that have to be changed are left, because
 * there are too many for a batch, or because others have them.
 */
static bool
second_look_at(WalkTable *table, Snapshot snapshot)
{
	Walk		   *walk = table->walk;
	TupleTableSlot *slot = table_slot_create(table->relation, NULL);
	TupleTableSlot *locked = table_slot_create(table->relation, NULL);
	TableScanDesc	scan = table_beginscan(table->relation, snapshot, 0, NULL);
	MemoryContext	scratch =
		AllocSetContextCreate(CurrentMemoryContext, "unifdiag walk", ALLOCSET_DEFAULT_SIZES);
	bool complete = true;

	while (table->count < walk->batch && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		MemoryContext caller;
		Datum		  code;
		bool		  is_null;
		bool		  stale;

		CHECK_FOR_INTERRUPTS();
		if (!is_recent(walk, slot))
			continue;
		MemoryContextReset(scratch);
		caller = MemoryContextSwitchTo(scratch);
		stale = walk_is_stale(table, slot, &code, &is_null);
		MemoryContextSwitchTo(caller);
		if (stale && !walk_take_row(table, slot, locked, snapshot, code, is_null))
			complete = false;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(locked);
	MemoryContextDelete(scratch);
	return complete && table->count < walk->batch;
}

/* Looks at all tables in one snapshot; false if something is left to do. */
static bool
second_look(Walk *walk)
{
	List	 *tables = walk_tables(walk->target);
	ListCell *cell;
	bool	  complete = true;
	Snapshot  snapshot = RegisterSnapshot(GetTransactionSnapshot());

	PushActiveSnapshot(snapshot);
	foreach (cell, tables)
	{
		WalkTable table;

		if (!complete || !walk_open_table(&table, walk, lfirst_oid(cell)))
			continue;
		complete = second_look_at(&table, snapshot);
		walk_write_codes(&table);
		table_close(table.relation, NoLock);
	}
	PopActiveSnapshot();
	UnregisterSnapshot(snapshot);
	walk_commit();
	tell(walk);
	return complete;
}

/* Repeats the second look until nothing is left, or patience is at its end. */
static void
second_looks(Walk *walk)
{
	const TimestampTz start = GetCurrentTimestamp();
	int64			  changed = -1;

	for (;;)
	{
		const bool no_writers = writers_have_ended(walk);

		qsort(walk->own, walk->own_count, sizeof(TransactionId), compare_transactions);
		if (second_look(walk) && no_writers)
			return;
		if (changed != walk->changed)
			changed = walk->changed;
		else if (TimestampDifferenceExceeds(start, GetCurrentTimestamp(), PATIENCE_MILLISECONDS))
			break;
		else
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 NAP_MILLISECONDS, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
	}
	ereport(WARNING,
			errmsg("some codes of table \"%s\" may still be those of the previous model",
				   get_rel_name(walk->target)),
			errdetail("Transactions that began before this refresh have not ended."),
			errhint("Call sketcher_refresh again when they have."));
}

/* All rows, from where the model table says that an earlier walk has stopped. */
void
walk_all(Walk *walk)
{
	Attachment attachment;
	List	  *tables;
	ListCell  *cell;
	int		   columns[] = {MODEL_WALK_TABLE, MODEL_WALK_FILE, MODEL_WALK_PAGE, MODEL_WALK_SINCE};
	Datum	   values[lengthof(columns)] = {0};
	bool	   nulls[] = {true, true, true, true};

	attachment_read_latest(walk->model, &attachment);
	tables = walk_tables(walk->target);
	foreach (cell, tables)
	{
		Relation table = try_table_open(lfirst_oid(cell), AccessShareLock);

		if (table == NULL)
			continue;
		walk->pages += RelationGetNumberOfBlocks(table);
		table_close(table, AccessShareLock);
	}
	walk_commit();
	walk->told = GetCurrentTimestamp();
	foreach (cell, tables)
	{
		const Oid table = lfirst_oid(cell);

		if (!OidIsValid(attachment.walk_file) || table > attachment.walk_table)
			first_look(walk, table, InvalidOid, 0);
		else if (table == attachment.walk_table)
			first_look(walk, table, attachment.walk_file, (BlockNumber) attachment.walk_page);
	}
	second_looks(walk);
	model_lock(walk->model, LOCK_FOLD, false, true);
	attachment_read_latest(walk->model, &attachment);
	attachment_update(walk->model, &attachment, columns, values, nulls, lengthof(columns));
	walk_commit();
}

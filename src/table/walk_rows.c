/*
 * walk_rows.c
 *		Rows of one table: which of them have another code than the published model makes,
 *		and writing the right one.  All within one transaction of the walk.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "../compat.h"
#include "sql.h"
#include "walk.h"

/* The number that a partition has for a column of the target. */
static AttrNumber
column_of(const Walk *walk, Oid table, AttrNumber column)
{
	if (table == walk->target)
		return column;
	return get_attnum(table, get_attname(walk->target, column, false));
}

/* Opens one of the target's tables to write; false if it has been dropped. */
bool
walk_open_table(WalkTable *table, Walk *walk, Oid oid)
{
	Form_pg_attribute vector;

	memset(table, 0, sizeof(*table));
	table->walk = walk;
	table->relation = try_table_open(oid, RowExclusiveLock);
	if (table->relation == NULL)
		return false;
	table->vector = column_of(walk, oid, walk->vector);
	table->code = column_of(walk, oid, walk->code);
	vector = TupleDescAttr(RelationGetDescr(table->relation), table->vector - 1);
	vector_column_init(&table->column, vector->atttypid, NameStr(vector->attname),
					   CurrentMemoryContext);
	return true;
}

/* Sets *code to the code that the row should have; false if it has it. */
bool
walk_is_stale(WalkTable *table, TupleTableSlot *slot, Datum *code, bool *is_null)
{
	bool  old_is_null;
	bool  vector_is_null;
	Datum old = slot_getattr(slot, table->code, &old_is_null);
	Datum vector = slot_getattr(slot, table->vector, &vector_is_null);

	table->walk->looked_at++;
	*is_null = vector_is_null;
	*code = (Datum) 0;
	if (vector_is_null)
		return !old_is_null;
	*code = PointerGetDatum(
		hash_plan_code(table->walk->plan, vector_column_read(&table->column, vector)));
	return old_is_null || !datum_image_eq(old, *code, false, -1);
}

/* Locks a row that has to be changed, if that is possible at once, and notes it. */
bool
walk_take_row(WalkTable *table, TupleTableSlot *slot, TupleTableSlot *locked, Snapshot snapshot,
			  Datum code, bool is_null)
{
	ItemPointer	   tid;
	TM_FailureData failure;

	if (table_tuple_lock(table->relation, &slot->tts_tid, snapshot, locked,
						 GetCurrentCommandId(false), LockTupleNoKeyExclusive, LockWaitSkip, 0,
						 &failure) != TM_Ok)
		return false;
	if (table->count == table->room)
	{
		table->room = table->room == 0 ? 1024 : 2 * table->room;
		if (table->tids == NULL)
		{
			table->tids = palloc(sizeof(Datum) * table->room);
			table->codes = palloc(sizeof(Datum) * table->room);
			table->nulls = palloc(sizeof(bool) * table->room);
		}
		else
		{
			table->tids = repalloc(table->tids, sizeof(Datum) * table->room);
			table->codes = repalloc(table->codes, sizeof(Datum) * table->room);
			table->nulls = repalloc(table->nulls, sizeof(bool) * table->room);
		}
	}
	tid = palloc(sizeof(ItemPointerData));
	*tid = slot->tts_tid;
	table->tids[table->count] = PointerGetDatum(tid);
	table->codes[table->count] = is_null ? (Datum) 0 : datumCopy(code, false, -1);
	table->nulls[table->count] = is_null;
	table->count++;
	return true;
}

static void
note_own_transaction(Walk *walk)
{
	const TransactionId own = GetCurrentTransactionIdIfAny();

	if (!TransactionIdIsValid(own))
		return;
	if (walk->own_count == walk->own_room)
	{
		walk->own_room = walk->own_room == 0 ? 64 : 2 * walk->own_room;
		walk->own = walk->own == NULL
						? palloc(sizeof(TransactionId) * walk->own_room)
						: repalloc_huge(walk->own, sizeof(TransactionId) * walk->own_room);
	}
	walk->own[walk->own_count++] = own;
}

/* Writes the codes that have been noted; the rows are locked, so this waits for nobody. */
void
walk_write_codes(WalkTable *table)
{
	Walk	   *walk = table->walk;
	const Oid	table_oid = RelationGetRelid(table->relation);
	Oid			types[2] = {TIDARRAYOID, get_array_type(walk->code_type)};
	int			dims[1] = {table->count};
	int			lower[1] = {1};
	int16		length;
	bool		by_value;
	char		align;
	Datum		values[2];
	const char *code = quote_identifier(get_attname(table_oid, table->code, false));
	char	   *query;
	SqlUser		user;

	if (table->count == 0)
		return;
	get_typlenbyvalalign(walk->code_type, &length, &by_value, &align);
	values[0] = PointerGetDatum(construct_array(table->tids, table->count, TIDOID,
												sizeof(ItemPointerData), false, TYPALIGN_SHORT));
	values[1] = PointerGetDatum(construct_md_array(table->codes, table->nulls, 1, dims, lower,
												   walk->code_type, length, by_value, align));
	query = psprintf(
		"UPDATE ONLY %1$s AS target SET %2$s = made.code "
		"FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS made (tid, code) "
		"WHERE target.ctid OPERATOR(pg_catalog.=) made.tid",
		sql_relation(table_oid), code);
	user = sql_become(walk->owner);
	codes_are_made = true;
	PG_TRY();
	{
		if (SPI_execute_with_args(query, 2, types, values, NULL, false, 0) != SPI_OK_UPDATE)
			elog(ERROR, "could not write codes");
	}
	PG_FINALLY();
	{
		codes_are_made = false;
	}
	PG_END_TRY();
	sql_become_again(user);
	walk->changed += (int64) SPI_processed;
	note_own_transaction(walk);
	table->count = 0;
}

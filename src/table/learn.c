/*
 * learn.c
 *		Teaches a model the rows of a table that are new to it.
 *
 * New are row versions that the snapshot of the last learning does not see, by their raw
 * xmin: rows of COPY FREEZE are frozen at birth.  A refresh writes new versions itself, in
 * transactions that it notes.  A wrong guess, after a wraparound of transaction numbers or
 * a restored dump, teaches a row twice, which hardly a code shows.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/xid8.h"

#include "table.h"

/* warnings about rows that cannot be learnt, at most */
#define MOST_WARNINGS 5

static int
compare_numbers(const void *a, const void *b)
{
	const uint64 x = U64FromFullTransactionId(DatumGetFullTransactionId(*(const Datum *) a));
	const uint64 y = U64FromFullTransactionId(DatumGetFullTransactionId(*(const Datum *) b));

	return (x > y) - (x < y);
}

/* The full number of a transaction: the last one that had these 32 bits. */
static uint64
full_number(uint64 next, TransactionId transaction)
{
	return next - (uint32) ((TransactionId) next - transaction);
}

static Datum
full_number_datum(uint64 next, TransactionId transaction)
{
	return FullTransactionIdGetDatum(FullTransactionIdFromU64(full_number(next, transaction)));
}

/*
 * Where a snapshot ends, as far as it tells what has been learnt.  If the running subtransactions did
 * not fit into it, that is where it begins.  Of our own transaction it does not say that it is running;
 * what comes later in it has to be learnt.
 */
static uint64
snapshot_end(uint64 next, Snapshot snapshot)
{
	const TransactionId own = GetTopTransactionIdIfAny();
	uint64 end = full_number(next, snapshot->suboverflowed ? snapshot->xmin : snapshot->xmax);

	return TransactionIdIsValid(own) ? Min(end, full_number(next, own)) : end;
}

/*
 * A snapshot as pg_snapshot.  Unlike pg_current_snapshot's it has the running subtransactions,
 * too, since rows have their numbers.
 */
static Datum
snapshot_datum(uint64 next, Snapshot snapshot)
{
	const uint64   end = snapshot_end(next, snapshot);
	const int	   most = (int) snapshot->xcnt + snapshot->subxcnt;
	Datum		  *running = palloc(sizeof(Datum) * (most + 1));
	int			   count = 0;
	StringInfoData text;

	for (int i = 0; i < most; i++)
	{
		const TransactionId number =
			i < (int) snapshot->xcnt ? snapshot->xip[i] : snapshot->subxip[i - snapshot->xcnt];

		/* subtransactions may have begun after the snapshot's end */
		if (full_number(next, number) < end)
			running[count++] = full_number_datum(next, number);
	}
	qsort(running, count, sizeof(Datum), compare_numbers);
	initStringInfo(&text);
	appendStringInfo(&text, UINT64_FORMAT ":" UINT64_FORMAT ":",
					 Min(full_number(next, snapshot->xmin), end), end);
	for (int i = 0; i < count; i++)
		appendStringInfo(&text, "%s" UINT64_FORMAT, i > 0 ? "," : "",
						 U64FromFullTransactionId(DatumGetFullTransactionId(running[i])));
	return DirectFunctionCall1(pg_snapshot_in, CStringGetDatum(text.data));
}

/* Has the table been among those that were learnt last?  Else it is a partition that was attached since. */
static bool
is_learnt_in(const ModelRow *row, Oid table)
{
	Datum *tables;
	bool  *nulls;
	int	   count;

	if (ROW_IS_NULL(row, LEARNT_IN))
		return false;
	deconstruct_array(DatumGetArrayTypeP(ROW_VALUE(row, LEARNT_IN)), OIDOID, sizeof(Oid), true,
					  TYPALIGN_INT, &tables, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		if (!nulls[i] && DatumGetObjectId(tables[i]) == table)
			return true;
	}
	return false;
}

/*
 * Which row versions of a table have been learnt, by the model table's row: none if another server
 * wrote it, or if it comes from this one's future, as that of a copy.  The snapshot by which rows are
 * read comes first, so that none of them is later than next.
 */
void
read_marks(const ModelRow *row, Oid table, LearntMarks *marks)
{
	memset(marks, 0, sizeof(*marks));
	marks->next = U64FromFullTransactionId(ReadNextFullTransactionId());
	marks->nothing = ROW_IS_NULL(row, LEARNT) || ROW_IS_NULL(row, SERVER) ||
					 DatumGetInt64(ROW_VALUE(row, SERVER)) != (int64) GetSystemIdentifier() ||
					 !is_learnt_in(row, table);
	if (!marks->nothing)
	{
		marks->learnt = PointerGetDatum(PG_DETOAST_DATUM(ROW_VALUE(row, LEARNT)));
		marks->nothing = U64FromFullTransactionId(DatumGetFullTransactionId(
							 DirectFunctionCall1(pg_snapshot_xmax, marks->learnt))) > marks->next;
	}
	if (ROW_IS_NULL(row, REWRITTEN))
		return;
	deconstruct_array(DatumGetArrayTypeP(ROW_VALUE(row, REWRITTEN)), XID8OID, 8, FLOAT8PASSBYVAL,
					  TYPALIGN_DOUBLE, &marks->rewritten, NULL, &marks->rewritten_count);
	qsort(marks->rewritten, marks->rewritten_count, sizeof(Datum), compare_numbers);
}

/* Has the model not seen this row version yet? */
bool
is_new(const LearntMarks *marks, TupleTableSlot *slot)
{
	bool				is_null;
	const TransactionId creator =
		DatumGetTransactionId(slot_getsysattr(slot, MinTransactionIdAttributeNumber, &is_null));
	Datum number;

	if (marks->nothing)
		return true;
	if (!TransactionIdIsNormal(creator))
		return false;
	number = full_number_datum(marks->next, creator);
	return !DatumGetBool(DirectFunctionCall2(pg_visible_in_snapshot, number, marks->learnt)) &&
		   (marks->rewritten_count == 0 ||
			bsearch(&number, marks->rewritten, marks->rewritten_count, sizeof(Datum),
					compare_numbers) == NULL);
}

/* Notes transactions in which codes were written: their row versions are not new. */
void
add_rewritten(ModelRow *row, const Datum *transactions, int count)
{
	LearntMarks marks;
	Datum	   *numbers;

	read_marks(row, InvalidOid, &marks);
	numbers = palloc_extended(sizeof(Datum) * (marks.rewritten_count + count + 1), MCXT_ALLOC_HUGE);
	if (marks.rewritten_count > 0)
		memcpy(numbers, marks.rewritten, sizeof(Datum) * marks.rewritten_count);
	if (count > 0)
		memcpy(numbers + marks.rewritten_count, transactions, sizeof(Datum) * count);
	model_row_set(row, MODEL_REWRITTEN,
				  PointerGetDatum(construct_array(numbers, marks.rewritten_count + count, XID8OID,
												  8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE)));
}

/* Learns a row, or warns that it has no vector of the model's kind. */
static void
learn_row(Learning *learning, Relation relation, TupleTableSlot *slot, ArrayType *array)
{
	Vector vector;

	if (vector_try_read(array, &vector))
	{
		const ModelConfig *options = &learning->sketcher->model->config;

		/* the first vector that can have codes says how many dimensions there are, if nobody did */
		if (ROW_IS_NULL(learning->row, DIMS) && vector.dims >= options->bits)
		{
			const ModelConfig config = sketcher_config_for(options, vector.dims);

			learning->sketcher = sketcher_create(&config, learning->context);
			model_row_set(learning->row, MODEL_DIMS, Int32GetDatum(vector.dims));
		}
		if (!ROW_IS_NULL(learning->row, DIMS) &&
			vector.dims == learning->sketcher->model->config.dims)
		{
			sketcher_learn_row(learning->sketcher, vector);
			learning->learnt++;
			return;
		}
	}
	if (++learning->skipped > MOST_WARNINGS)
		return;
	ereport(WARNING, errcode(ERRCODE_DATA_EXCEPTION),
			errmsg("row (%u,%u) of table \"%s\" gets no code",
				   ItemPointerGetBlockNumber(&slot->tts_tid),
				   ItemPointerGetOffsetNumber(&slot->tts_tid), RelationGetRelationName(relation)),
			ROW_IS_NULL(learning->row, DIMS)
				? errdetail("It has no vector of at least %d finite elements.",
							learning->sketcher->model->config.bits)
				: errdetail("It has no vector of %d finite elements.",
							learning->sketcher->model->config.dims));
}

static void
learn_table(Learning *learning, Relation relation, const CodeColumn *column)
{
	MemoryContext	scratch;
	MemoryContext	caller;
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	TableScanDesc scan = table_beginscan_strat(relation, GetActiveSnapshot(), 0, NULL, true, true);
	VectorColumn  vector;

	read_marks(learning->row, RelationGetRelid(relation), &learning->marks);
	vector_column_init(&vector, relation, column->vector);
	scratch = AllocSetContextCreate(CurrentMemoryContext, "unifdiag learn", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(scratch);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		is_null;
		const Datum datum = slot_getattr(slot, column->vector, &is_null);

		CHECK_FOR_INTERRUPTS();
		if (is_null)
			continue;
		if (slot_attisnull(slot, column->code))
			learning->missing++;
		if (is_new(&learning->marks, slot))
			learn_row(learning, relation, slot,
					  vector_column_array(&vector, datum, &slot->tts_tid));
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Teaches learning all rows that are new, and notes that in the row, in memory only.  Runs
 * in one snapshot, as the owner.
 */
Learning
learn_rows(ModelRow *row, const CodeColumn *column)
{
	const Oid target = DatumGetObjectId(ROW_VALUE(row, TARGET));
	Learning  learning = {.row = row, .context = CurrentMemoryContext};
	List	 *tables = leaf_tables(target);
	Datum	 *oids = palloc(sizeof(Datum) * (list_length(tables) + 1));
	int		  count = 0;
	ListCell *cell;

	learning.sketcher = sketcher_writable(ROW_VALUE(row, LEARNING), learning.context);
	foreach (cell, tables)
	{
		Relation   relation = table_open(lfirst_oid(cell), NoLock);
		CodeColumn here = column_of_part(relation, target, column);

		learn_table(&learning, relation, &here);
		table_close(relation, NoLock);
		oids[count++] = ObjectIdGetDatum(lfirst_oid(cell));
	}
	model_row_set(row, MODEL_LEARNING, SketcherGetDatum(learning.sketcher));
	model_row_set(row, MODEL_LEARNT,
				  snapshot_datum(U64FromFullTransactionId(ReadNextFullTransactionId()),
								 GetActiveSnapshot()));
	model_row_set(
		row, MODEL_LEARNT_IN,
		PointerGetDatum(construct_array(oids, count, OIDOID, sizeof(Oid), true, TYPALIGN_INT)));
	model_row_set(row, MODEL_SERVER, Int64GetDatum((int64) GetSystemIdentifier()));
	row->nulls[MODEL_REWRITTEN - 1] = true;
	return learning;
}

/*
 * learn.c
 *		Teaches a model the rows of a table that are new to it.
 *
 * New are row versions that the snapshot of the last learning does not see, by their raw
 * xmin: rows of COPY FREEZE are frozen at birth.  A refresh writes new versions itself, in
 * transactions that it notes.  A wrong guess, after a wraparound of transaction numbers or
 * a restored dump, teaches a row twice, which no code shows.
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

/* rows that are no vectors of the model's kind: so many are named */
#define MOST_WARNINGS 5

typedef struct Learn
{
	ModelRow	 *row;
	Learning	 *result;
	Sketcher	 *sketcher;
	MemoryContext context; /* of the sketcher */
	LearntMarks	  marks;
} Learn;

static int
compare_numbers(const void *a, const void *b)
{
	const uint64 x = *(const Datum *) a;
	const uint64 y = *(const Datum *) b;

	return (x > y) - (x < y);
}

/* The transactions of a row; nulls among them, which are none of ours, are left out. */
static Datum *
read_numbers(Datum array, int *count)
{
	Datum *numbers;
	bool  *nulls;
	int	   room;

	deconstruct_array(DatumGetArrayTypeP(array), XID8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &numbers, &nulls, &room);
	*count = 0;
	for (int i = 0; i < room; i++)
	{
		if (!nulls[i])
			numbers[(*count)++] = numbers[i];
	}
	return numbers;
}

/* The full number of a transaction: the last one that had these 32 bits. */
static uint64
full_number(uint64 next, TransactionId transaction)
{
	return next - (uint32) ((TransactionId) next - transaction);
}

/*
 * A snapshot as pg_snapshot.  Unlike pg_current_snapshot's it has the running subtransactions,
 * too, since rows have their numbers; if there are too many of them, it ends where it begins.
 */
static Datum
snapshot_datum(uint64 next, Snapshot snapshot)
{
	const uint64   first = full_number(next, snapshot->xmin);
	const uint64   end = snapshot->suboverflowed ? first : full_number(next, snapshot->xmax);
	const int	   count = snapshot->suboverflowed ? 0 : (int) snapshot->xcnt + snapshot->subxcnt;
	Datum		  *running = palloc(sizeof(Datum) * (count + 1));
	StringInfoData text;

	for (int i = 0; i < count; i++)
		running[i] =
			full_number(next, i < (int) snapshot->xcnt ? snapshot->xip[i]
													   : snapshot->subxip[i - snapshot->xcnt]);
	qsort(running, count, sizeof(Datum), compare_numbers);
	initStringInfo(&text);
	appendStringInfo(&text, UINT64_FORMAT ":" UINT64_FORMAT ":", first, end);
	for (int i = 0; i < count; i++)
		appendStringInfo(&text, "%s" UINT64_FORMAT, i > 0 ? "," : "", (uint64) running[i]);
	return DirectFunctionCall1(pg_snapshot_in, CStringGetDatum(text.data));
}

/* What the row says has been learnt, as far as this server can tell. */
void
read_marks(const ModelRow *row, LearntMarks *marks)
{
	memset(marks, 0, sizeof(*marks));
	marks->next = U64FromFullTransactionId(ReadNextFullTransactionId());
	marks->nothing = ROW_IS_NULL(row, LEARNT) || ROW_IS_NULL(row, SERVER) ||
					 DatumGetInt64(ROW_VALUE(row, SERVER)) != (int64) GetSystemIdentifier();
	if (marks->nothing)
		return;
	marks->learnt = ROW_VALUE(row, LEARNT);
	if (!ROW_IS_NULL(row, REWRITTEN))
	{
		marks->rewritten = read_numbers(ROW_VALUE(row, REWRITTEN), &marks->rewritten_count);
		qsort(marks->rewritten, marks->rewritten_count, sizeof(Datum), compare_numbers);
	}
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
	number = FullTransactionIdGetDatum(FullTransactionIdFromU64(full_number(marks->next, creator)));
	return !DatumGetBool(DirectFunctionCall2(pg_visible_in_snapshot, number, marks->learnt)) &&
		   (marks->rewritten_count == 0 ||
			bsearch(&number, marks->rewritten, marks->rewritten_count, sizeof(Datum),
					compare_numbers) == NULL);
}

static void
warn_of_row(const Learn *learn, Relation relation, TupleTableSlot *slot)
{
	if (learn->result->skipped > MOST_WARNINGS)
		return;
	ereport(WARNING, errcode(ERRCODE_DATA_EXCEPTION),
			errmsg("row (%u,%u) of table \"%s\" has no vector of %d finite numbers and gets no "
				   "code",
				   ItemPointerGetBlockNumber(&slot->tts_tid),
				   ItemPointerGetOffsetNumber(&slot->tts_tid), RelationGetRelationName(relation),
				   learn->sketcher->model->config.dims));
}

/* The first vector says how many dimensions there are, if nobody did before. */
static void
set_dims(Learn *learn, int dims)
{
	if (ROW_IS_NULL(learn->row, DIMS))
	{
		const ModelConfig config = sketcher_config_for(&learn->sketcher->model->config, dims);

		learn->sketcher = sketcher_create(&config, learn->context);
		model_row_set(learn->row, MODEL_DIMS, Int32GetDatum(dims));
	}
}

static void
learn_row(Learn *learn, Relation relation, VectorColumn *column, TupleTableSlot *slot, Datum datum)
{
	Vector vector;

	if (vector_try_read(vector_column_array(column, datum), &vector))
	{
		set_dims(learn, vector.dims);
		if (vector.dims == learn->sketcher->model->config.dims)
		{
			sketcher_learn_row(learn->sketcher, vector);
			learn->result->learnt++;
			return;
		}
	}
	learn->result->skipped++;
	warn_of_row(learn, relation, slot);
}

static void
learn_table(Learn *learn, Oid table, const CodeColumn *target_column)
{
	Relation		relation = try_table_open(table, AccessShareLock);
	MemoryContext	scratch;
	MemoryContext	caller;
	TupleTableSlot *slot;
	TableScanDesc	scan;
	CodeColumn		column;
	VectorColumn	vector;

	if (relation == NULL)
		return;
	column =
		column_of_part(relation, DatumGetObjectId(ROW_VALUE(learn->row, TARGET)), target_column);
	vector_column_init(&vector, relation, column.vector);
	slot = table_slot_create(relation, NULL);
	scan = table_beginscan_strat(relation, GetActiveSnapshot(), 0, NULL, true, true);
	scratch = AllocSetContextCreate(CurrentMemoryContext, "unifdiag learn", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(scratch);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool  is_null;
		Datum datum = slot_getattr(slot, column.vector, &is_null);

		CHECK_FOR_INTERRUPTS();
		if (is_null)
			continue;
		if (slot_attisnull(slot, column.code))
			learn->result->missing++;
		if (is_new(&learn->marks, slot))
			learn_row(learn, relation, &vector, slot, datum);
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(relation, NoLock);
}

/* Notes that the running transaction writes codes: its row versions are not new. */
void
note_transaction(ModelRow *row)
{
	const uint64 next = U64FromFullTransactionId(ReadNextFullTransactionId());
	const uint64 number = full_number(next, GetCurrentTransactionId());
	Datum		*numbers = NULL;
	int			 count = 0;

	if (!ROW_IS_NULL(row, REWRITTEN))
		numbers = read_numbers(ROW_VALUE(row, REWRITTEN), &count);
	numbers =
		count == 0 ? palloc(sizeof(Datum)) : repalloc_huge(numbers, sizeof(Datum) * (count + 1));
	numbers[count++] = FullTransactionIdGetDatum(FullTransactionIdFromU64(number));
	model_row_set(row, MODEL_REWRITTEN,
				  PointerGetDatum(construct_array(numbers, count, XID8OID, 8, FLOAT8PASSBYVAL,
												  TYPALIGN_DOUBLE)));
}

/*
 * Teaches learning all rows that are new, and notes that in the row, in memory only.  Runs
 * in one snapshot, as the owner.
 */
Learning
learn_rows(ModelRow *row, const CodeColumn *column)
{
	Learning  result = {0};
	Learn	  learn = {.row = row, .result = &result, .context = CurrentMemoryContext};
	List	 *tables = leaf_tables(DatumGetObjectId(ROW_VALUE(row, TARGET)));
	ListCell *cell;

	read_marks(row, &learn.marks);
	learn.sketcher = sketcher_writable(ROW_VALUE(row, LEARNING), learn.context);
	foreach (cell, tables)
		learn_table(&learn, lfirst_oid(cell), column);
	model_row_set(row, MODEL_LEARNING, SketcherGetDatum(learn.sketcher));
	model_row_set(row, MODEL_LEARNT, snapshot_datum(learn.marks.next, GetActiveSnapshot()));
	model_row_set(row, MODEL_SERVER, Int64GetDatum((int64) GetSystemIdentifier()));
	model_row_set_null(row, MODEL_REWRITTEN);
	return result;
}

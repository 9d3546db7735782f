/*
 * sketch_check.c
 *		sketch_info and sketch_check: what an index contains, and whether it is consistent.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "../math/linalg.h"
#include "../model/sketcher.h"
#include "flat_check.h"
#include "sketch_rows.h"

/* rows from which sketch_info computes how well the model explains them */
#define EXPLAINED_ROWS 1000

/* Entries whose rows are looked at, a page at a time. */
typedef struct PageRows
{
	Relation	  index;
	FlatLayout	  codes;
	FlatLayout	  nulls;
	SketchRows	  rows;
	SketchReader  reader;
	uint32		  model;
	MemoryContext context; /* of a row */
} PageRows;

/* Memory is the current context's; false if the index has no model. */
static bool
begin_rows(PageRows *rows, Relation heap, Relation index, Snapshot snapshot)
{
	const FlatMeta meta = flat_read_meta(index);

	if (meta.model == 0 || meta.learning != 0)
		return false;
	rows->index = index;
	rows->model = meta.model;
	rows->codes = flat_codes_layout(&meta);
	rows->nulls = flat_layout(FLAT_NULLS, 0);
	rows->context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch row", ALLOCSET_DEFAULT_SIZES);
	sketch_reader_init(&rows->reader, index);
	sketch_rows_begin(&rows->rows, heap, index, NULL, snapshot);
	return true;
}

/* A copy of a page, if it has codes by the model; how many there are. */
static int
copy_page(const PageRows *rows, BlockNumber block, char *page)
{
	Buffer		 buffer = flat_read(rows->index, block, BUFFER_LOCK_SHARE, NULL);
	FlatContents contents;

	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	contents = flat_page_contents(rows->index, page, block, &rows->codes, &rows->nulls);
	return contents.layout == &rows->codes && contents.model == rows->codes.model ? contents.count
																				  : 0;
}

/* The vector of an entry's row, if the snapshot sees it; memory is that of a row. */
static bool
fetch_vector(PageRows *rows, Page page, int entry, Vector *vector)
{
	const ItemPointerData tid = FlatPageGetTids(page, &rows->codes)[entry];
	MemoryContext		  caller = MemoryContextSwitchTo(rows->context);
	Datum				  value;
	bool				  isnull;
	bool				  found;

	MemoryContextReset(rows->context);
	flat_check_tid(rows->rows.fetch->rel, rows->index, tid);
	found = sketch_rows_fetch(&rows->rows, tid, &value, &isnull) && !isnull;
	if (found)
	{
		*vector = sketch_read_vector(&rows->reader, value);
		found = vector->dims == rows->codes.dims;
	}
	MemoryContextSwitchTo(caller);
	return found;
}

static bool
is_sketch_of(const PageRows *rows, Page page, int entry, Vector vector)
{
	/* anew for each row: an expression of the index may have made the backend forget the model */
	SketchReady *ready = sketch_ready(rows->index, rows->model);
	uint64		*code;
	bool		 matches;

	if (ready == NULL)
		return true;
	code = palloc(sizeof(uint64) * rows->codes.words);
	flat_page_get_code(page, &rows->codes, entry, (uint8 *) code);
	matches = sketch_matches(sketch_ready_encoder(ready), vector.values, code,
							 FlatPageGetNumbers(page, &rows->codes)[entry]);
	pfree(code);
	return matches;
}

static void
check_sketches(Relation heap, Relation index, Snapshot snapshot)
{
	PageRows	   rows;
	PGAlignedBlock page;
	Vector		   vector;

	if (!begin_rows(&rows, heap, index, snapshot))
		return;
	for (BlockNumber block = FLAT_FIRST_PAGE; block < flat_read_meta(index).end; block++)
	{
		const int count = copy_page(&rows, block, page.data);

		for (int i = 0; i < count; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (fetch_vector(&rows, page.data, i, &vector) &&
				!is_sketch_of(&rows, page.data, i, vector))
				flat_corrupt(index, block, "an entry does not have the sketch of its row");
		}
	}
	sketch_rows_end(&rows.rows);
}

/* A row of the table, as table_index_build_scan finds it: whether it has a vector is all that counts. */
static void
add_table_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			  bool alive pg_attribute_unused(), void *state)
{
	FlatTableRows *table = state;
	const uint8	   any = 0;

	(void) index;
	(void) values;
	tuplesort_putdatum(table->rows, Int64GetDatum(flat_row_number(tid, isnull[0] ? NULL : &any, 0)),
					   false);
}

PG_FUNCTION_INFO_V1(sketch_check);
Datum
sketch_check(PG_FUNCTION_ARGS)
{
	const bool with_table = PG_GETARG_BOOL(1);
	Relation   heap;
	Relation   index = flat_open_index(PG_GETARG_OID(0), sketch_build, "sketch", &heap);
	FlatUser   user;
	FlatMeta   flat;
	Snapshot   snapshot;

	if (!owns_relation(RelationGetRelid(heap), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, RelationGetRelationName(heap));
	flat_check_complete(index);
	flat_become_owner(&user, heap);
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	sketch_read_meta(index, &flat);
	sketch_check_model(index, flat.model);
	flat_check(heap, index, snapshot, false, with_table ? add_table_row : NULL);
	if (with_table)
		check_sketches(heap, index, snapshot);
	UnregisterSnapshot(snapshot);
	flat_become_user(&user);
	flat_close_index(heap, index);
	PG_RETURN_VOID();
}

/* Adds a row's squared distance from the mean, and that of its projection. */
static void
add_variance(const SketchModel *model, Vector vector, double *inside, double *all)
{
	const SketchShape *shape = &model->parameters.shape;
	float			  *centred = palloc(sizeof(float) * shape->dims);
	float			  *projected = palloc(sizeof(float) * shape->projections);

	for (int i = 0; i < shape->dims; i++)
	{
		centred[i] = vector.values[i] - model->mean[i];
		*all += (double) centred[i] * centred[i];
	}
	multiply_vector_f(false, shape->projections, shape->dims, 1.0F, model->projection, shape->dims,
					  centred, 0.0F, projected);
	for (int i = 0; i < shape->projections; i++)
		*inside += (double) projected[i] * projected[i];
	pfree(centred);
	pfree(projected);
}

/*
 * The share of the variance of the rows of the last pages, which came last if nothing was deleted, that
 * is in the model's subspace; false if there is no model, or no row.
 */
static bool
explained_now(Relation heap, Relation index, Snapshot snapshot, double *share)
{
	PageRows	   rows;
	PGAlignedBlock page;
	Vector		   vector;
	SketchReady	  *ready;
	double		   inside = 0.0;
	double		   all = 0.0;
	bool		   is_whole = false;
	int			   looked_at = 0;

	if (!begin_rows(&rows, heap, index, snapshot))
		return false;
	sketcher_require_linalg();
	for (BlockNumber block = flat_read_meta(index).end - 1;
		 block >= FLAT_FIRST_PAGE && looked_at < EXPLAINED_ROWS; block--)
	{
		const int count = copy_page(&rows, block, page.data);

		for (int i = count - 1; i >= 0 && looked_at < EXPLAINED_ROWS; i--)
		{
			CHECK_FOR_INTERRUPTS();
			if (!fetch_vector(&rows, page.data, i, &vector))
				continue;
			ready = sketch_ready(index, rows.model);
			if (ready == NULL)
				continue;
			add_variance(&ready->model, vector, &inside, &all);
			is_whole = ready->model.parameters.shape.projections >= rows.codes.dims;
			looked_at++;
		}
	}
	sketch_rows_end(&rows.rows);
	*share = is_whole ? 1.0 : inside / all;
	return all > 0.0;
}

PG_FUNCTION_INFO_V1(sketch_info);
Datum
sketch_info(PG_FUNCTION_ARGS)
{
	Relation	   heap;
	Relation	   index = flat_open_index(PG_GETARG_OID(0), sketch_build, "sketch", &heap);
	FlatInspection inspection = {.rows = NULL};
	FlatMeta	   flat;
	SketchMeta	   meta;
	SketchShape	   shape;
	FlatUser	   user;
	Snapshot	   snapshot;
	TupleDesc	   descriptor;
	double		   now = 0.0;
	Datum		   values[10];
	bool		   nulls[10] = {false};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	flat_check_may_count(heap);
	flat_inspect(&inspection, index);
	flat_become_owner(&user, heap);
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	nulls[8] = !explained_now(heap, index, snapshot, &now);
	UnregisterSnapshot(snapshot);
	flat_become_user(&user);

	meta = sketch_read_meta(index, &flat);
	nulls[1] = nulls[2] = flat.dims == 0;
	nulls[6] = nulls[7] = flat.model == 0;
	if (flat.dims != 0)
	{
		shape = sketch_index_shape((int) meta.bits, (int) flat.dims);
		values[1] = Int32GetDatum(shape.projections);
	}
	values[0] = Int32GetDatum(FLAT_VERSION);
	values[2] = Int32GetDatum((int32) flat.dims);
	values[3] = Int64GetDatum(inspection.ncodes);
	values[4] = Int64GetDatum(inspection.nnulls);
	values[5] = Int64GetDatum(inspection.unknown);
	values[6] = Int64GetDatum((int64) meta.learnt);
	values[7] = Float8GetDatum(meta.explained);
	values[8] = Float8GetDatum(now);
	values[9] = Int64GetDatum((int64) RelationGetNumberOfBlocks(index) * BLCKSZ);
	flat_close_index(heap, index);
	descriptor = BlessTupleDesc(descriptor);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

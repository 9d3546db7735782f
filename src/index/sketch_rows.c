/*
 * sketch_rows.c
 *		The rows of an index's entries, and their indexed values.
 */
#include "postgres.h"

#include "catalog/index.h"
#include "utils/rel.h"

#include "../compat.h"
#include "sketch_rows.h"

void
sketch_rows_begin(SketchRows *rows, Relation heap, Relation index, IndexFetchTableData *fetch,
				  Snapshot snapshot)
{
	rows->info = BuildIndexInfo(index);
	rows->estate = CreateExecutorState();
	rows->slot = table_slot_create(heap, NULL);
	GetPerTupleExprContext(rows->estate)->ecxt_scantuple = rows->slot;
	rows->owns_fetch = fetch == NULL;
	rows->fetch = fetch != NULL ? fetch : begin_index_fetch(heap);
	rows->snapshot = snapshot;
}

void
sketch_rows_end(SketchRows *rows)
{
	if (rows->owns_fetch)
		table_index_fetch_end(rows->fetch);
	ExecDropSingleTupleTableSlot(rows->slot);
	FreeExecutorState(rows->estate);
}

bool
sketch_rows_visible(SketchRows *rows, ItemPointerData tid)
{
	bool again = false;

	return table_index_fetch_tuple(rows->fetch, &tid, rows->snapshot, rows->slot, &again, NULL);
}

bool
sketch_rows_fetch(SketchRows *rows, ItemPointerData tid, Datum *value, bool *isnull)
{
	Datum values[INDEX_MAX_KEYS];
	bool  nulls[INDEX_MAX_KEYS];

	if (!sketch_rows_visible(rows, tid))
		return false;
	ResetPerTupleExprContext(rows->estate);
	FormIndexDatum(rows->info, rows->slot, rows->estate, values, nulls);
	*value = values[0];
	*isnull = nulls[0];
	return true;
}

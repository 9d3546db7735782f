/*
 * sketch_rows.h
 *		The rows of an index's entries, and their indexed values.
 */
#ifndef UNIFDIAG_SKETCH_ROWS_H
#define UNIFDIAG_SKETCH_ROWS_H

#include "access/tableam.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"

#include "sketch.h"

typedef struct SketchRows
{
	IndexInfo			*info;
	EState				*estate;
	TupleTableSlot		*slot;
	IndexFetchTableData *fetch;
	bool				 owns_fetch;
	Snapshot			 snapshot;
} SketchRows;

/*
 * Rows of the table as the snapshot sees them, by a fetch that the caller may have already, or NULL.
 * Memory is the current context's.
 */
extern void sketch_rows_begin(SketchRows *rows, Relation heap, Relation index,
							  IndexFetchTableData *fetch, Snapshot snapshot);
extern void sketch_rows_end(SketchRows *rows);

/* Does the snapshot see the row?  This runs no expression, which the table's owner may have written. */
extern bool sketch_rows_visible(SketchRows *rows, ItemPointerData tid);

/*
 * The indexed value of a row; false if the snapshot does not see the row.  The value may point into
 * it, or into the memory of expressions, until another row is fetched.
 */
extern bool sketch_rows_fetch(SketchRows *rows, ItemPointerData tid, Datum *value, bool *isnull);

#endif /* UNIFDIAG_SKETCH_ROWS_H */

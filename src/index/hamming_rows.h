/*
 * hamming_rows.h
 *		A hamming index and the rows behind its entries, as the statement's snapshot sees them.
 */
#ifndef UNIFDIAG_HAMMING_ROWS_H
#define UNIFDIAG_HAMMING_ROWS_H

#include "access/relscan.h"
#include "executor/tuptable.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "hamming.h"

typedef struct HammingRows
{
	Relation					table;
	Relation					index;
	Snapshot					snapshot;
	struct IndexFetchTableData *fetch;
	TupleTableSlot			   *slot;
} HammingRows;

/* opens an index that the caller may read as a whole; everything else is an error */
extern void hamming_rows_open(HammingRows *rows, Oid index);
extern void hamming_rows_close(HammingRows *rows);

/* whether an entry's row is visible; if so, tid becomes that of the visible version */
extern bool hamming_rows_fetch(HammingRows *rows, ItemPointer tid);

/* whether it is time for another notice of how far a function is; if so, that is the last one */
extern bool hamming_notice_is_due(TimestampTz *last);

#endif /* UNIFDIAG_HAMMING_ROWS_H */

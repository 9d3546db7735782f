/*
 * hamming_index_only.h
 *		Index-only scans: rows whose codes come from the index.
 */
#ifndef UNIFDIAG_HAMMING_INDEX_ONLY_H
#define UNIFDIAG_HAMMING_INDEX_ONLY_H

#include "executor/tuptable.h"

#include "hamming_search.h"

/* A row that waits for its turn among those at the same first distance. */
typedef struct HammingTie
{
	uint64	  key;
	HeapTuple tuple;
	uint16	 *distances; /* the others */
} HammingTie;

typedef struct HammingIndexOnly
{
	MemoryContext	context; /* of the rows that were read and not returned yet, and the last */
	TupleTableSlot *slot;

	/* of a scan by several distances */
	HammingTie *ties;
	int			nties;
	int			room;
	int			next;		/* of the ties, the first that has not been returned */
	bool		has_behind; /* the row behind the ties has been read */
	uint64		behind;
} HammingIndexOnly;

extern HammingIndexOnly *index_only_create(IndexScanDesc scan);
extern void				 index_only_start(HammingIndexOnly *only);
extern void				 index_only_end(HammingIndexOnly *only);

/* the next row, in scan->xs_hitup; false if there is none */
extern bool
index_only_next(HammingIndexOnly *only, IndexScanDesc scan, HammingSearch *search, uint64 *key);

#endif /* UNIFDIAG_HAMMING_INDEX_ONLY_H */

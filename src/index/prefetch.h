/*
 * prefetch.h
 *		The pages of the rows that a scan returns next.
 */
#ifndef UNIFDIAG_PREFETCH_H
#define UNIFDIAG_PREFETCH_H

#include "utils/rel.h"

typedef struct Prefetch
{
	bool enabled;
	int	 batch;		 /* rows that are prefetched together */
	int	 until_next; /* rows that are returned before the next batch is prefetched */
	int	 done;		 /* rows, from the next one on, that have been prefetched */
} Prefetch;

extern void prefetch_start(Prefetch *prefetch, Relation table);

/* prefetches rows by the keys (nearest.h) that come after the one that was returned last */
extern void prefetch_rows(Prefetch *prefetch, Relation table, const uint64 *keys, int known);

#endif /* UNIFDIAG_PREFETCH_H */

/*
 * prefetch.h
 *		The pages of the rows that a scan returns next.
 */
#ifndef UNIFDIAG_PREFETCH_H
#define UNIFDIAG_PREFETCH_H

#include "search.h"

typedef struct HammingPrefetch
{
	bool enabled;
	int	 batch;		 /* rows that are prefetched together */
	int	 until_next; /* rows that are returned before the next batch is prefetched */
	int	 done;		 /* rows, from the next one on, that have been prefetched */
} HammingPrefetch;

extern void prefetch_start(HammingPrefetch *prefetch, Relation table);

/* prefetches the rows that come after the one that was returned last */
extern void prefetch_rows(HammingPrefetch *prefetch, Relation table, const HammingSearch *search);

#endif /* UNIFDIAG_PREFETCH_H */

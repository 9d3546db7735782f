/*
 * ahead.h
 *		The rows that a scan returns next.
 */
#ifndef UNIFDIAG_AHEAD_H
#define UNIFDIAG_AHEAD_H

#include "search.h"

typedef struct HammingAhead
{
	BlockNumber blocks;		 /* of the table, as far as their buffers are remembered */
	uint64		handed_over; /* rows' pages */
	int			batch;
	int			until_next; /* rows that are returned before the next batch comes nearer */
	int			done[3];	/* rows, from the next one on, that have been through each step */
} HammingAhead;

extern void ahead_start(HammingAhead *ahead, Relation table);

/* asks for the rows that come after the current one, and hands that one's page over */
extern void
ahead_of_row(HammingAhead *ahead, IndexScanDesc scan, const HammingSearch *search, uint64 current);

#endif /* UNIFDIAG_AHEAD_H */

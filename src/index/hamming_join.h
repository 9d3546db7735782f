/*
 * hamming_join.h
 *		All pairs of near codes of visible rows, of one hamming index or of two.
 */
#ifndef UNIFDIAG_HAMMING_JOIN_H
#define UNIFDIAG_HAMMING_JOIN_H

#include "code_store.h"

/* A row of a pair: the number of its entry in its store, and the visible version. */
typedef struct JoinRow
{
	uint32			entry;
	ItemPointerData tid;
} JoinRow;

/* takes a pair; the second row is of the second index, if there are two */
typedef void (*HammingPairTaker)(void *state, JoinRow a, JoinRow b, uint32 distance);

/* the length of the codes of one index or two; 0 if one has none; an error if they differ */
extern int hamming_join_code_length(const HammingRows *a, const HammingRows *b);

/* the radius as a join takes it; an error if it is negative */
extern uint32 hamming_join_radius(int32 radius, int nbits);

/* entries of a block of codes, such that joining two takes as much memory as is allowed */
extern uint32 hamming_join_capacity(int nbits);

/* finds all pairs; if both stores are the same, each once.  name is the function's, for progress */
extern void hamming_join(const char *name, CodeStore *a, CodeStore *b, uint32 radius,
						 HammingPairTaker take, void *state);

#endif /* UNIFDIAG_HAMMING_JOIN_H */

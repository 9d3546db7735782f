/*
 * search.h
 *		The nearest entries of a hamming index, some at a time.
 *
 * Results are keys, as nearest.h says.
 */
#ifndef UNIFDIAG_SEARCH_H
#define UNIFDIAG_SEARCH_H

#include "../code/ball.h"
#include "../code/kernels.h"
#include "hamming.h"
#include "nearest.h"

/* What is searched for, and where the search has come. */
typedef struct HammingSearch HammingSearch;

/* What is asked for; whoever gives it keeps what it points to. */
typedef struct HammingQuestion
{
	bool		  ordered; /* by distance from query; else in any order */
	bool		  query_is_null;
	BitHashView	  query;
	int			  nballs; /* only codes in all of these; with any, no NULL codes */
	HammingBall **balls;
} HammingQuestion;

extern HammingSearch *hamming_search_create(Relation index);
extern void			  hamming_search_start(HammingSearch *search, const HammingQuestion *question);

/* the next key; false if there is none */
extern bool hamming_search_next(HammingSearch *search, uint64 *key);

/* the keys that come next, as far as they are known already */
extern const uint64 *hamming_search_peek(const HammingSearch *search, int *count);

/* passes over all pages that it takes to return that many entries */
extern double hamming_search_passes(double rows);

/*
 * What is done with pages of entries.  Each is visited, and settled when the next one has been
 * visited, by when that has come from memory which the visit has prefetched.  All the while it is
 * share-locked.  Of the pages that come next a visit is told where they are, as far as that is
 * known; they are not locked, and may only be prefetched.
 */
typedef struct HammingVisitor
{
	void *state;
	void (*start)(void *state); /* before the first page, maybe repeatedly; or NULL */
	void (*visit)(void *state, Page page, BlockNumber block, HammingUpcoming upcoming);
	void (*settle)(void *state, Page page); /* or NULL */
} HammingVisitor;

/* all pages, and again from the start if entries have moved */
extern void hamming_visit_pages(Relation index, const HammingVisitor *visitor);

/* every step-th page, as they are */
extern void hamming_visit_sample(Relation index, BlockNumber step, const HammingVisitor *visitor);

#endif /* UNIFDIAG_SEARCH_H */

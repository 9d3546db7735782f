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
 * Calls visit for each page of entries, and again from the start if entries have moved.  The
 * pages that come after it are told as far as their places in memory are known; they are not
 * locked, and may only be prefetched.
 */
typedef void (*HammingPageVisitor)(void *state, Page page, BlockNumber block,
								   HammingUpcoming upcoming);

extern void
hamming_visit_pages(Relation index, void (*start)(void *), HammingPageVisitor visit, void *state);

/* calls visit for every step-th page of entries, as they are */
extern void
hamming_visit_sample(Relation index, BlockNumber step, HammingPageVisitor visit, void *state);

#endif /* UNIFDIAG_SEARCH_H */

/*
 * hamming_search.h
 *		The nearest entries of a hamming index, some at a time.
 *
 * Results are keys, as nearest.h says.
 */
#ifndef UNIFDIAG_HAMMING_SEARCH_H
#define UNIFDIAG_HAMMING_SEARCH_H

#include "../code/ball.h"
#include "../code/kernels.h"
#include "hamming.h"
#include "hamming_found.h"
#include "nearest.h"
#include "visit.h"

/* A search, and how far it has come. */
typedef struct HammingSearch HammingSearch;

/* What is searched for; whoever gives it keeps what it points to. */
typedef struct HammingQuery
{
	bool		  ordered; /* by distance from code; else in any order */
	bool		  code_is_null;
	BitHashView	  code;
	int			  nballs; /* only codes in all of these; with any, no NULL codes */
	HammingBall **balls;
	Relation	  table; /* if codes are to be returned, or NULL */
} HammingQuery;

extern HammingSearch *hamming_search_create(Relation index);
extern void			  hamming_search_start(HammingSearch *search, const HammingQuery *query);

/* the next key; false if there is none */
extern bool hamming_search_next(HammingSearch *search, uint64 *key);

/* the entry of the last key that was returned, and its code, if codes are returned */
extern const HammingFound *hamming_search_found(const HammingSearch *search);
extern BitHashView		   hamming_search_code(const HammingSearch *search);

/* the keys that come next, as far as they are known already */
extern const uint64 *hamming_search_peek(const HammingSearch *search, int *count);

/* passes over all pages to return so many entries, with codes of so many bytes, or -1 */
extern double hamming_search_passes(double rows, int nbytes);

#endif /* UNIFDIAG_HAMMING_SEARCH_H */

/*
 * kernel_columns.h
 *		Searching codes that are stored by columns: what the kernels share.
 *
 * Everything is inlined into each kernel, so that it is compiled for that kernel's CPU.
 */
#ifndef UNIFDIAG_KERNEL_COLUMNS_H
#define UNIFDIAG_KERNEL_COLUMNS_H

#include "kernels.h"

/* columns after the first ones, which are read together */
#define TOGETHER 4

/* For kernels that take eight codes at a time, in all columns. */
static inline __attribute__((always_inline)) void
prefetch_same_lines(const HammingColumns *codes, size_t position)
{
	for (size_t column = 0; column < codes->first; column++)
		prefetch_same_line(codes->upcoming, codes->columns[column] + 8 * position);
}

/* Prefetches what will be read of a code that is near enough in the first columns. */
static inline __attribute__((always_inline)) void
prefetch_match(const HammingColumns *codes, size_t position)
{
	for (size_t column = codes->first; column < codes->ncolumns && column < codes->first + TOGETHER;
		 column++)
		__builtin_prefetch(codes->columns[column] + 8 * position);
	__builtin_prefetch(codes->payload + position * codes->payload_bytes);
}

/*
 * Appends to the matches those codes from..to-1 that are near enough, one at a time: what is
 * left after the last whole group, or a group that has some.  Always inlined, so that the count
 * becomes the caller's instruction for it.
 */
static inline __attribute__((always_inline)) size_t
append_matches(const HammingColumns *codes, size_t from, size_t to, HammingMatch *matches,
			   size_t nmatches)
{
	for (size_t i = from; i < to; i++)
	{
		uint32_t sum = 0;

		for (size_t column = 0; column < codes->ncolumns && sum <= codes->radius; column++)
			sum += (uint32_t) __builtin_popcountll(load_word(codes->columns[column] + 8 * i, 8) ^
												   codes->query[column]);
		/* without a branch: write always, count only matches */
		matches[nmatches].position = (uint16_t) i;
		matches[nmatches].distance = (uint16_t) sum;
		nmatches += sum <= codes->radius;
	}
	return nmatches;
}

/*
 * Candidates are near enough in the first columns; keeps those that are so in all columns.
 * Several columns at a time: a branch after each column is one that no CPU can predict.
 */
static inline __attribute__((always_inline)) size_t
keep_matches(const HammingColumns *codes, HammingMatch *candidates, size_t ncandidates)
{
	size_t nmatches = 0;

	for (size_t k = 0; k < ncandidates; k++)
	{
		const HammingMatch candidate = candidates[k];
		uint32_t		   sum = candidate.distance;

		for (size_t column = codes->first; column < codes->ncolumns && sum <= codes->radius;)
		{
			const size_t end =
				column + TOGETHER < codes->ncolumns ? column + TOGETHER : codes->ncolumns;

			for (; column < end; column++)
				sum += (uint32_t) __builtin_popcountll(
					load_word(codes->columns[column] + 8 * (size_t) candidate.position, 8) ^
					codes->query[column]);
		}
		candidates[nmatches].position = candidate.position;
		candidates[nmatches].distance = (uint16_t) sum;
		nmatches += sum <= codes->radius;
	}
	return nmatches;
}

/* codes whose distances so far are kept while their columns are read */
#define BLOCK 1024

/*
 * Adds the distances in one column to the sums of codes from..to-1, which are whole groups, or
 * starts these.  If the column decides, codes that are near enough are appended to the matches,
 * whose number is returned.
 */
typedef size_t (*ColumnAdder)(const HammingColumns *codes, size_t column, bool starts, bool decides,
							  size_t from, size_t to, uint64_t *sums, HammingMatch *matches,
							  size_t nmatches);

/*
 * The "within" of kernels that take a group of codes at a time: column after column, since
 * memory is fastest when it is read in order.  Inlined, the adder becomes a loop of its own for
 * each case.
 */
static inline __attribute__((always_inline)) size_t
within_by_columns(ColumnAdder add, size_t group, const HammingColumns *codes, HammingMatch *matches)
{
	const size_t whole = codes->count - codes->count % group;
	const size_t last = codes->first - 1;
	uint64_t	 sums[BLOCK];
	size_t		 n = 0;

	for (size_t from = 0; from < whole; from += BLOCK)
	{
		const size_t to = whole - from > BLOCK ? from + BLOCK : whole;

		if (last == 0)
		{
			n = add(codes, 0, true, true, from, to, sums, matches, n);
			continue;
		}
		n = add(codes, 0, true, false, from, to, sums, matches, n);
		for (size_t column = 1; column < last; column++)
			n = add(codes, column, false, false, from, to, sums, matches, n);
		n = add(codes, last, false, true, from, to, sums, matches, n);
	}
	if (codes->first < codes->ncolumns)
		n = keep_matches(codes, matches, n);
	return append_matches(codes, whole, codes->count, matches, n);
}

#endif /* UNIFDIAG_KERNEL_COLUMNS_H */

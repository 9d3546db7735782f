/*
 * kernels.h
 *		Hamming distance kernels: counting the bits in which codes differ.
 *
 * A kernel is one way to do that arithmetic on one kind of CPU.  All kernels
 * give the same answers; they differ only in speed.  The best one that the CPU
 * and the operating system support is chosen once, when the library is loaded.
 *
 * These files include no PostgreSQL header, so that the unit tests and the
 * benchmarks link them as they are.  Nothing here allocates or fails.
 */
#ifndef UNIFDIAG_KERNELS_H
#define UNIFDIAG_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many bytes from here there is what is read next, and what is read after that; or 0. */
typedef struct HammingUpcoming
{
	ptrdiff_t next;
	ptrdiff_t later;
} HammingUpcoming;

/* Codes stored by columns of 64-bit words, and what is asked of them. */
typedef struct HammingColumns
{
	/* a code's words are at the same position of each column, from any address on */
	const uint8_t *const *columns;
	size_t				  ncolumns; /* 1 to 1000 */
	size_t				  count;	/* codes, at most 65536 */
	const uint64_t		 *query;
	uint32_t			  radius;

	/* columns read of all codes, at least 1; the others only of codes near enough in these */
	size_t first;

	/* where codes are that come later: each line of theirs is prefetched when its like is read */
	HammingUpcoming upcoming;
	size_t			stored; /* columns that are where they are stored; the others are copies */

	/* what the caller will read of a match: so many bytes at its position; prefetched, too */
	const uint8_t *payload;
	size_t		   payload_bytes;
} HammingColumns;

/* A code that is near enough: its position, and its distance. */
typedef struct HammingMatch
{
	uint16_t position;
	uint16_t distance;
} HammingMatch;

/* what a kernel may write to behind its matches */
#define MATCH_ROOM 8

typedef struct HammingKernel
{
	const char *name;

	/* may this CPU, under this operating system, run the kernel? */
	bool (*supported)(void);

	/* the number of differing bits of two byte strings, at any alignment */
	uint32_t (*distance)(const uint8_t *a, const uint8_t *b, size_t nbytes);

	/*
	 * Stores those codes, by ascending positions, that differ from the query in at most
	 * radius bits, and returns how many there are.  There is room for count matches and
	 * MATCH_ROOM more.
	 */
	size_t (*within)(const HammingColumns *codes, HammingMatch *matches);
} HammingKernel;

/* slowest first; "portable" always comes first and is always supported */
extern const HammingKernel *const hamming_kernels[];
extern const size_t				  hamming_kernel_count;

/* the fastest supported kernel */
extern const HammingKernel *hamming_kernel_best(void);

extern const HammingKernel hamming_kernel_portable;
#if defined(__x86_64__)
extern const HammingKernel hamming_kernel_avx2;
extern const HammingKernel hamming_kernel_avx512;
#elif defined(__aarch64__)
extern const HammingKernel hamming_kernel_neon;
#endif

/* A word, or its first nbytes bytes and zeros, from any address. */
static inline uint64_t
load_word(const uint8_t *from, size_t nbytes)
{
	uint64_t word = 0;

	memcpy(&word, from, nbytes);
	return word;
}

/* what memory comes in: eight words of a column */
#define CACHE_LINE 64

/* columns behind the first ones that are read together */
#define TOGETHER 4

/*
 * Asks for the likes of a line: what is read next, and, as far as the second cache, what is read
 * after that.  Line by line, since the CPU can wait for a few only.  Always inlined: to gcc a
 * function that only prefetches is without effect.
 */
static inline __attribute__((always_inline)) void
prefetch_likes(HammingUpcoming upcoming, const uint8_t *line)
{
	__builtin_prefetch(line + upcoming.next);
	__builtin_prefetch(line + upcoming.later, 0, 1);
}

/* Where the likes of a column's lines are. */
static inline HammingUpcoming
upcoming_in_column(const HammingColumns *codes, size_t column)
{
	const HammingUpcoming nothing = {0, 0};

	return column < codes->stored ? codes->upcoming : nothing;
}

/* For kernels that take eight codes at a time, in all columns. */
static inline __attribute__((always_inline)) void
prefetch_likes_of_eight(const HammingColumns *codes, size_t position)
{
	for (size_t column = 0; column < codes->first; column++)
		prefetch_likes(upcoming_in_column(codes, column), codes->columns[column] + 8 * position);
}

/* Asks for what will be read of a code that is near enough in the first columns. */
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
 * left behind the last whole group, or a group that has some.  Always inlined, so that the count
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
 * Keeps those of the candidates, which are near enough in the first columns, that are so in
 * the others as well.  Several columns at a time: by ones, each code would end at another, which
 * no CPU can guess.
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

#endif /* UNIFDIAG_KERNELS_H */

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

typedef struct HammingKernel
{
	const char *name;

	/* may this CPU, under this operating system, run the kernel? */
	bool (*supported)(void);

	/* the number of differing bits of two byte strings, at any alignment */
	uint32_t (*distance)(const uint8_t *a, const uint8_t *b, size_t nbytes);

	/*
	 * Stores the positions, ascending, of those of count codes that differ from the
	 * query in at most radius bits, and returns how many there are.  A code's words
	 * are at the same position of ncolumns columns, each of count 64-bit words from
	 * any address on; codes that are too far away already in the first words are
	 * given up.  ncolumns is 1 to 1000, count at most 65536; matches has room for
	 * count positions.
	 */
	size_t (*within)(const uint8_t *const *columns, size_t ncolumns, size_t count,
					 const uint64_t *query, uint32_t radius, uint16_t *matches);
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

/*
 * Codes unrelated to a query differ from it in about half of their bits.  Whether codes are
 * too far away is asked as soon as that many have been seen: earlier, the answer is no.
 */
static inline size_t
columns_to_start(size_t ncolumns, uint32_t radius)
{
	const size_t columns = (radius + 24) / 28 + 1;

	return columns < ncolumns ? columns : ncolumns;
}

/*
 * Appends to the matches those positions from..to-1 whose codes are near enough: the tail
 * of a vector kernel, and the few groups in which something matches.  Always inlined, so
 * that the count becomes the caller's instruction for it.
 */
static inline __attribute__((always_inline)) size_t
append_matches(const uint8_t *const *columns, size_t ncolumns, size_t from, size_t to,
			   const uint64_t *query, uint32_t radius, uint16_t *matches, size_t nmatches)
{
	for (size_t i = from; i < to; i++)
	{
		uint32_t sum = 0;

		for (size_t column = 0; column < ncolumns && sum <= radius; column++)
			sum += (uint32_t) __builtin_popcountll(load_word(columns[column] + 8 * i, 8) ^
												   query[column]);
		/* without a branch: write always, count only matches */
		matches[nmatches] = (uint16_t) i;
		nmatches += sum <= radius;
	}
	return nmatches;
}

/*
 * How the widest kernels look at codes of several columns: a block of codes in their first
 * columns, without a branch for each, and then only the candidates that leaves in the others.
 */
#define BLOCK 256

/* A code that is near enough in its first columns: its position, and its distance there. */
typedef struct Candidate
{
	uint16_t position;
	uint16_t distance;
} Candidate;

/*
 * Appends to the matches those candidates that are near enough in the other columns as well.
 * Four columns at a time: by ones, each code would end at another, which no CPU can guess.
 */
static inline __attribute__((always_inline)) size_t
append_candidates(const uint8_t *const *columns, size_t first, size_t ncolumns,
				  const uint64_t *query, uint32_t radius, const Candidate *candidates,
				  size_t ncandidates, uint16_t *matches, size_t nmatches)
{
	for (size_t k = 0; k < ncandidates; k++)
	{
		const size_t i = candidates[k].position;
		uint32_t	 sum = candidates[k].distance;

		for (size_t column = first; column < ncolumns && sum <= radius;)
		{
			const size_t end = column + 4 < ncolumns ? column + 4 : ncolumns;

			for (; column < end; column++)
				sum += (uint32_t) __builtin_popcountll(load_word(columns[column] + 8 * i, 8) ^
													   query[column]);
		}
		matches[nmatches] = (uint16_t) i;
		nmatches += sum <= radius;
	}
	return nmatches;
}

/*
 * Stores the candidates among codes from..to-1, judged by their first columns, and returns how
 * many there are; room for CANDIDATE_ROOM more may be written to.  If candidates are rare it
 * is worth a branch to pass over a group without any.
 */
typedef size_t (*CandidateFinder)(const uint8_t *const *columns, size_t first, size_t from,
								  size_t to, const uint64_t *query, uint32_t radius, bool rare,
								  Candidate *candidates);

#define CANDIDATE_ROOM 8

/* A kernel's "within", by blocks.  Inlined, the finder becomes a loop of its own for each case. */
static inline __attribute__((always_inline)) size_t
within_by_blocks(CandidateFinder find, const uint8_t *const *columns, size_t ncolumns, size_t count,
				 const uint64_t *query, uint32_t radius, uint16_t *matches)
{
	const size_t first = columns_to_start(ncolumns, radius);
	Candidate	 candidates[BLOCK + CANDIDATE_ROOM];
	size_t		 nmatches = 0;

	for (size_t from = 0; from < count; from += BLOCK)
	{
		const size_t to = count - from > BLOCK ? from + BLOCK : count;
		size_t		 found;

		if (ncolumns == 1)
			found = find(columns, 1, from, to, query, radius, true, candidates);
		else if (first == ncolumns)
			found = find(columns, first, from, to, query, radius, true, candidates);
		else
			found = find(columns, first, from, to, query, radius, false, candidates);
		nmatches = append_candidates(columns, first, ncolumns, query, radius, candidates, found,
									 matches, nmatches);
	}
	return nmatches;
}

#endif /* UNIFDIAG_KERNELS_H */

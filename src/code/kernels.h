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

/* Byte offsets to what is read next, and to what is read after that; 0 if unknown. */
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

	/* where codes are that come later: the same line of theirs is prefetched with each line */
	HammingUpcoming upcoming;

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

/* matches that a kernel may write after its last one */
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

/*
 * How many columns are read of all codes.  The others are read only of codes that are near enough
 * in these, one here and one there, which is faster only if hardly any are.  Unrelated codes
 * differ from the query in half of their bits; but learnt bits are not independent, and so there
 * must be seven times as many bits as the radius, and a column more.
 */
static inline size_t
hamming_first_columns(uint32_t radius, size_t ncolumns)
{
	const size_t enough = 7 * (size_t) radius / 64 + 1;

	return enough < ncolumns ? enough : ncolumns;
}

/* bytes of a cache line: eight words of a column */
#define CACHE_LINE 64

/*
 * Prefetches the same line of the next page, and into the second cache that of the page after it.
 * One line at a time, since a CPU can wait for a few only.  Always inlined: gcc takes a
 * function that only prefetches to have no effect.
 */
static inline __attribute__((always_inline)) void
prefetch_same_line(HammingUpcoming upcoming, const uint8_t *line)
{
	__builtin_prefetch(line + upcoming.next);
	__builtin_prefetch(line + upcoming.later, 0, 1);
}

#endif /* UNIFDIAG_KERNELS_H */

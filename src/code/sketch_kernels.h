/*
 * sketch_kernels.h
 *		Kernels that rank sketches: a lower bound of each row's distance from a query.
 *
 * A sketch is a code in 64-bit words and one number of 32 bits, made by src/math/sketch.h; the
 * formulae are in src/math/README.md.  The code's first words are the signs of projections, by which
 * all sketches are ranked; the others are for a second look at those that may be near.  A kernel is
 * one way to do that arithmetic on one kind of CPU.  All kernels give the same ranks: they add
 * integers, and then do the same fused multiplications in the same order.
 *
 * These files include no PostgreSQL header, so that the unit tests and the benchmarks link
 * them as they are.  Nothing here allocates or fails.
 */
#ifndef UNIFDIAG_SKETCH_KERNELS_H
#define UNIFDIAG_SKETCH_KERNELS_H

#include "kernels.h"

/* ranks are 0, which means any distance, to this, which means this bound or any larger */
#define SKETCH_RANKS 16383

/*
 * The number beside a code: from the highest bits down, 13 bits of n, 11 of f and 8 of e.  They
 * are small floats, of 5, 4 and 4 bits of exponent, so that a shift puts them where a float has
 * them; the exponents start at 2^-31, 2^-15 and 2^-15.
 */
#define SKETCH_N_BITS 13
#define SKETCH_N_EXPONENT 5
#define SKETCH_F_BITS 11
#define SKETCH_F_EXPONENT 4
#define SKETCH_E_BITS 8
#define SKETCH_E_EXPONENT 4

/* the number of a row that nothing is known of: its rank is 0; no other row has it */
#define SKETCH_UNKNOWN UINT32_C(0)

/* the number of a row that should come late: the largest n, the least f and e */
#define SKETCH_FAR (UINT32_C(0xffffffff) << (SKETCH_F_BITS + SKETCH_E_BITS))

/* bits of a projection in a code; the signs come first */
#define SKETCH_LEVELS 3

/* bits of a query's weights, for the signs and for a second look */
#define SKETCH_PLANES 4
#define SKETCH_FINE_PLANES 6

/* bytes of a query's tables for a word of the code */
#define SKETCH_TABLE 256

/*
 * A query as kernels see it; sketch_query makes it.  With T the sum over words of signs and planes t
 * of 2^t times the bits in which word and plane differ, the rank is what is whole of the square root
 * of
 *		start + n_factor n - f (f_start - f_factor T) - e_factor e
 * if that is positive, or else 0, and not above SKETCH_RANKS.
 */
typedef struct SketchScore
{
	const uint64_t *planes; /* SKETCH_PLANES for each word */

	/*
	 * The same sums by half bytes, SKETCH_TABLE for each word: 16 for the lower half of each
	 * of its 8 bytes, from the lowest byte on, and then 16 for the upper half of each.
	 */
	const uint8_t *tables;

	float start;
	float n_factor;
	float f_start;
	float f_factor;
	float e_factor;
} SketchScore;

/* Sketches stored by columns, and what is asked of them. */
typedef struct SketchColumns
{
	/* the words of a code's signs are at the same position of each column, from any address on */
	const uint8_t *const *columns;
	size_t				  ncolumns;
	const uint8_t		 *numbers; /* 4 bytes each, from any address on */
	size_t				  count;   /* sketches, at most 65536 */
	const SketchScore	 *score;
	uint32_t			  radius; /* the last rank of interest */

	/* where sketches are that come later: the same line of theirs is prefetched with each line */
	HammingUpcoming upcoming;

	/* what the caller will read of a match: so many bytes at its position; prefetched, too */
	const uint8_t *payload;
	size_t		   payload_bytes;
} SketchColumns;

typedef struct SketchKernel
{
	const char *name;

	/* may this CPU, under this operating system, run the kernel? */
	bool (*supported)(void);

	/*
	 * Stores those sketches, by ascending positions, whose rank is at most the radius, with
	 * that rank as distance, and returns how many there are.  There is room for count matches
	 * and MATCH_ROOM more.
	 */
	size_t (*within)(const SketchColumns *sketches, HammingMatch *matches);

	/*
	 * What a code, of so many words of signs, and a query's fine planes disagree in: with T of each
	 * level's words as above, but for fine planes, the sum of 2^(SKETCH_LEVELS - 1 - level) T.
	 */
	uint32_t (*disagreement)(const uint64_t *code, size_t words, const uint64_t *planes);
} SketchKernel;

/* slowest first; "portable" always comes first and is always supported */
extern const SketchKernel *const sketch_kernels[];
extern const size_t				 sketch_kernel_count;

/* the fastest supported kernel */
extern const SketchKernel *sketch_kernel_best(void);

/* the supported kernel of that name, or else the portable one */
extern const SketchKernel *sketch_kernel_named(const char *name);

extern const SketchKernel sketch_kernel_portable;
#if defined(__x86_64__)
extern const SketchKernel sketch_kernel_avx2;
extern const SketchKernel sketch_kernel_avx512;
#elif defined(__aarch64__)
extern const SketchKernel sketch_kernel_neon;
#endif

#endif /* UNIFDIAG_SKETCH_KERNELS_H */

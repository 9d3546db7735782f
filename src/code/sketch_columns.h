/*
 * sketch_columns.h
 *		Ranking sketches that are stored by columns: what the kernels share.
 *
 * Everything is inlined into each kernel, so that it is compiled for that kernel's CPU.
 */
#ifndef UNIFDIAG_SKETCH_COLUMNS_H
#define UNIFDIAG_SKETCH_COLUMNS_H

#include <math.h>

#include "sketch_kernels.h"

/* sketches whose sums so far are kept while their columns are read; whole groups of any kernel */
#define BLOCK 1024

/* where a float has the lowest bit of its exponent */
#define FLOAT_EXPONENT 23

/* n, f and e of a number are shifted, n to the right, cut out, and then these are their powers */
#define N_SHIFT (32 - SKETCH_N_EXPONENT - FLOAT_EXPONENT)
#define F_SHIFT (SKETCH_F_EXPONENT + FLOAT_EXPONENT - SKETCH_F_BITS - SKETCH_E_BITS)
#define E_SHIFT (SKETCH_E_EXPONENT + FLOAT_EXPONENT - SKETCH_E_BITS)
#define N_MASK (((UINT32_C(1) << SKETCH_N_BITS) - 1) << (32 - SKETCH_N_BITS - N_SHIFT))
#define F_MASK (((UINT32_C(1) << SKETCH_F_BITS) - 1) << (F_SHIFT + SKETCH_E_BITS))
#define E_MASK (((UINT32_C(1) << SKETCH_E_BITS) - 1) << E_SHIFT)

/* 2^-31 and 2^-15: the low bits of their exponents are 0, where those of n, f and e come */
#define LEAST_N UINT32_C(0x30000000)
#define LEAST_F UINT32_C(0x38000000)
#define LEAST_E LEAST_F

/* by how much a square may be above that of a root, and be rounded to it */
#define ROUNDING 1.000001F

static inline float
float_of_bits(uint32_t bits)
{
	float number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

/* The parts of a number: without their model's exponents. */
static inline float
number_n(uint32_t number)
{
	return float_of_bits(((number >> N_SHIFT) & N_MASK) | LEAST_N);
}

static inline float
number_f(uint32_t number)
{
	return float_of_bits(((number << F_SHIFT) & F_MASK) | LEAST_F);
}

static inline float
number_e(uint32_t number)
{
	return float_of_bits(((number << E_SHIFT) & E_MASK) | LEAST_E);
}

/*
 * The square of the rank, by fused multiplications only: there is nothing that one compiler
 * would fuse and another would not.
 */
static inline __attribute__((always_inline)) float
score_of(const SketchScore *score, uint32_t sum, uint32_t number)
{
	const float product = __builtin_fmaf(-score->f_factor, (float) sum, score->f_start);
	float		square = __builtin_fmaf(score->n_factor, number_n(number), score->start);

	square = __builtin_fmaf(-number_f(number), product, square);
	return __builtin_fmaf(-score->e_factor, number_e(number), square);
}

/* What the squares of all ranks of interest are below; those of some others may be, too. */
static inline float
score_limit(const SketchColumns *sketches)
{
	const float end = (float) sketches->radius + 1.0F;

	return sketches->radius < SKETCH_RANKS ? ROUNDING * end * end : INFINITY;
}

static inline __attribute__((always_inline)) uint32_t
rank_of(const SketchScore *score, uint32_t sum, uint32_t number)
{
	const float square = number == SKETCH_UNKNOWN ? 0.0F : score_of(score, sum, number);
	const float rank = square > 0.0F ? __builtin_sqrtf(square) : 0.0F;

	return rank < SKETCH_RANKS ? (uint32_t) rank : SKETCH_RANKS;
}

/* Asks for the same lines of the pages that are read next; for kernels that go by columns. */
static inline __attribute__((always_inline)) void
prefetch_numbers(const SketchColumns *sketches, size_t position)
{
	prefetch_same_line(sketches->upcoming, sketches->numbers + 4 * position);
}

static inline __attribute__((always_inline)) void
prefetch_payload(const SketchColumns *sketches, size_t position)
{
	__builtin_prefetch(sketches->payload + position * sketches->payload_bytes);
}

/* The sum over one column, for the sketch at a position; count is the caller's popcount. */
static inline __attribute__((always_inline)) uint32_t
column_sum(const SketchColumns *sketches, size_t column, size_t position,
		   uint32_t (*count)(uint64_t word))
{
	const uint64_t	word = load_word(sketches->columns[column] + 8 * position, 8);
	const uint64_t *planes = sketches->score->planes + column * SKETCH_PLANES;
	uint32_t		sum = 0;

	for (int t = 0; t < SKETCH_PLANES; t++)
		sum += count(word ^ planes[t]) << t;
	return sum;
}

static inline __attribute__((always_inline)) uint32_t
fine_disagreement(const uint64_t *code, size_t words, const uint64_t *planes,
				  uint32_t (*count)(uint64_t word))
{
	uint32_t sum = 0;

	for (size_t level = 0; level < SKETCH_LEVELS; level++)
	{
		sum *= 2;
		for (size_t i = 0; i < words; i++)
		{
			for (size_t t = 0; t < SKETCH_FINE_PLANES; t++)
				sum += count(code[level * words + i] ^ planes[i * SKETCH_FINE_PLANES + t]) << t;
		}
	}
	return sum;
}

/*
 * Appends to the matches those sketches from..to-1 that are of interest, one at a time: what is
 * left after the last whole group.
 */
static inline __attribute__((always_inline)) size_t
append_ranks(const SketchColumns *sketches, size_t from, size_t to,
			 uint32_t (*count)(uint64_t word), HammingMatch *matches, size_t nmatches)
{
	for (size_t i = from; i < to; i++)
	{
		const uint32_t number = (uint32_t) load_word(sketches->numbers + 4 * i, 4);
		uint32_t	   sum = 0;
		uint32_t	   rank;

		for (size_t column = 0; column < sketches->ncolumns; column++)
			sum += column_sum(sketches, column, i, count);
		rank = rank_of(sketches->score, sum, number);
		/* without a branch: write always, count only matches */
		matches[nmatches].position = (uint16_t) i;
		matches[nmatches].distance = (uint16_t) rank;
		nmatches += rank <= sketches->radius;
	}
	return nmatches;
}

#endif /* UNIFDIAG_SKETCH_COLUMNS_H */

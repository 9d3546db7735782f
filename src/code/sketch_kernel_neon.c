/*
 * sketch_kernel_neon.c
 *		Ranking of sketches for 64-bit ARM: NEON, two words at a time.
 *
 * NEON is part of the architecture's baseline: there is nothing to ask the CPU.
 */
#include "sketch_columns.h"

#if defined(__aarch64__)

#include <arm_neon.h>

/* sketches that are ranked together */
#define GROUP 4

/* The sums of two words' bytes: bits in which they and the planes differ, at most 8 * 15. */
static inline uint8x16_t
weigh(const uint8_t *words, const uint64_t *planes)
{
	const uint8x16_t both = vld1q_u8(words);
	uint8x16_t		 sums = vdupq_n_u8(0);

	for (int t = SKETCH_PLANES - 1; t >= 0; t--)
	{
		const uint8x16_t plane = vreinterpretq_u8_u64(vdupq_n_u64(planes[t]));

		sums = vaddq_u8(vaddq_u8(sums, sums), vcntq_u8(veorq_u8(both, plane)));
	}
	return sums;
}

/* The sums of four sketches' words in one column. */
static inline uint32x4_t
column_sums(const uint8_t *words, const uint64_t *planes)
{
	/* pairwise additions leave each word's sum in four parts, then two, then one */
	const uint16x8_t first = vpaddlq_u8(weigh(words, planes));
	const uint16x8_t second = vpaddlq_u8(weigh(words + 16, planes));

	return vpaddlq_u16(vpaddq_u16(first, second));
}

static uint32_t
popcount(uint64_t word)
{
	return vaddv_u8(vcnt_u8(vcreate_u8(word)));
}

/* The squares of four sketches' ranks, as in score_of; 0 if nothing is known. */
static inline float32x4_t
squares_of(const SketchScore *score, uint32x4_t sums, uint32x4_t numbers)
{
	const uint32x4_t  n_bits = vandq_u32(vshrq_n_u32(numbers, N_SHIFT), vdupq_n_u32(N_MASK));
	const uint32x4_t  f_bits = vandq_u32(vshlq_n_u32(numbers, F_SHIFT), vdupq_n_u32(F_MASK));
	const uint32x4_t  e_bits = vandq_u32(vshlq_n_u32(numbers, E_SHIFT), vdupq_n_u32(E_MASK));
	const float32x4_t n = vreinterpretq_f32_u32(vorrq_u32(n_bits, vdupq_n_u32(LEAST_N)));
	const float32x4_t f = vreinterpretq_f32_u32(vorrq_u32(f_bits, vdupq_n_u32(LEAST_F)));
	const float32x4_t e = vreinterpretq_f32_u32(vorrq_u32(e_bits, vdupq_n_u32(LEAST_E)));
	const float32x4_t product =
		vfmsq_f32(vdupq_n_f32(score->f_start), vdupq_n_f32(score->f_factor), vcvtq_f32_u32(sums));
	float32x4_t square = vfmaq_f32(vdupq_n_f32(score->start), vdupq_n_f32(score->n_factor), n);

	square = vfmsq_f32(square, f, product);
	square = vfmsq_f32(square, vdupq_n_f32(score->e_factor), e);
	return vreinterpretq_f32_u32(
		vandq_u32(vtstq_u32(numbers, numbers), vreinterpretq_u32_f32(square)));
}

static size_t
within(const SketchColumns *sketches, HammingMatch *matches)
{
	const float limit = score_limit(sketches);
	size_t		nmatches = 0;
	size_t		i = 0;

	for (; i + GROUP <= sketches->count; i += GROUP)
	{
		uint32x4_t	sums = vdupq_n_u32(0);
		float32x4_t squares;

		for (size_t column = 0; column < sketches->ncolumns; column++)
		{
			const uint8_t *words = sketches->columns[column] + 8 * i;

			if (i % (2 * GROUP) == 0)
				prefetch_same_line(sketches->upcoming, words);
			sums = vaddq_u32(sums,
							 column_sums(words, sketches->score->planes + column * SKETCH_PLANES));
		}
		if (i % (4 * GROUP) == 0)
			prefetch_numbers(sketches, i);
		squares = squares_of(sketches->score, sums,
							 vreinterpretq_u32_u8(vld1q_u8(sketches->numbers + 4 * i)));
		/* in a search nearly all groups hold no match */
		if (!(vminvq_f32(squares) >= limit))
		{
			prefetch_payload(sketches, i);
			nmatches = append_ranks(sketches, i, i + GROUP, popcount, matches, nmatches);
		}
	}
	return append_ranks(sketches, i, sketches->count, popcount, matches, nmatches);
}

static uint32_t
disagreement(const uint64_t *code, size_t words, const uint64_t *planes)
{
	return fine_disagreement(code, words, planes, popcount);
}

static bool
supported(void)
{
	return true;
}

const SketchKernel sketch_kernel_neon = {
	.name = "neon",
	.supported = supported,
	.within = within,
	.disagreement = disagreement,
};

#endif /* __aarch64__ */

/*
 * sketch_kernel_avx2.c
 *		Ranking of sketches for x86-64 with AVX2: four words at a time.
 */
#include "sketch_columns.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma,popcnt")))

/* sketches whose words in a column are looked at together, and those that are ranked together */
#define WORDS 4
#define GROUP 8

/* sketches whose words, and whose numbers, are a line of memory */
#define WORDS_LINE 8
#define NUMBERS_LINE 16

/* A query's planes of one word, by lower and upper halves of bytes. */
typedef struct Halves
{
	__m256i low[SKETCH_PLANES];
	__m256i high[SKETCH_PLANES];
} Halves;

/* The sums of four words: bits in which they and the planes differ, as often as these count. */
TARGET static inline __attribute__((always_inline)) __m256i
weigh(__m256i words, const Halves *planes)
{
	/* for each half byte, how many bits it has, times what the plane counts */
	const __m256i counts = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
											2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
	const __m256i half = _mm256_set1_epi8(0x0f);
	const __m256i low = _mm256_and_si256(words, half);
	const __m256i high = _mm256_and_si256(_mm256_srli_epi64(words, 4), half);
	__m256i		  weight = counts;
	__m256i		  sums = _mm256_setzero_si256();

	/* at most 8 * 15 a byte */
#pragma GCC unroll 4
	for (int t = 0; t < SKETCH_PLANES; t++)
	{
		sums = _mm256_add_epi8(sums,
							   _mm256_shuffle_epi8(weight, _mm256_xor_si256(low, planes->low[t])));
		sums = _mm256_add_epi8(sums, _mm256_shuffle_epi8(weight,
														 _mm256_xor_si256(high, planes->high[t])));
		weight = _mm256_add_epi8(weight, weight);
	}
	return _mm256_sad_epu8(sums, _mm256_setzero_si256());
}

/* Adds the sums in one column to those of sketches from..to-1, whole groups, or starts these. */
TARGET static inline __attribute__((always_inline)) void
add_column(const SketchColumns *sketches, size_t column, bool starts, size_t from, size_t to,
		   uint32_t *sums)
{
	const __m256i		  half = _mm256_set1_epi8(0x0f);
	const __m256i		  even = _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0);
	const HammingUpcoming upcoming = sketches->upcoming;
	Halves				  planes;

	for (int t = 0; t < SKETCH_PLANES; t++)
	{
		const __m256i plane = _mm256_set1_epi64x(
			(long long) sketches->score->planes[column * SKETCH_PLANES + (size_t) t]);

		planes.low[t] = _mm256_and_si256(plane, half);
		planes.high[t] = _mm256_and_si256(_mm256_srli_epi64(plane, 4), half);
	}
	for (size_t i = from; i < to; i += WORDS)
	{
		const uint8_t *line = sketches->columns[column] + 8 * i;
		const __m256i  words = _mm256_loadu_si256((const __m256i *) line);
		__m128i		   group =
			_mm256_castsi256_si128(_mm256_permutevar8x32_epi32(weigh(words, &planes), even));
		__m128i *so_far = (__m128i *) (sums + (i - from));

		if (i % WORDS_LINE == 0)
			prefetch_same_line(upcoming, line);
		if (!starts)
			group = _mm_add_epi32(_mm_loadu_si128(so_far), group);
		_mm_storeu_si128(so_far, group);
	}
}

/* Appends those of eight sketches that are of interest, by the squares of their ranks. */
TARGET static inline size_t
append_group(__m256 squares, uint32_t radius, size_t first, HammingMatch *matches, size_t nmatches)
{
	const __m256 cut = _mm256_min_ps(_mm256_sqrt_ps(squares), _mm256_set1_ps(SKETCH_RANKS));
	uint32_t	 ranks[GROUP];

	_mm256_storeu_si256((__m256i *) ranks, _mm256_cvttps_epi32(cut));
	for (unsigned lane = 0; lane < GROUP; lane++)
	{
		/* without a branch: write always, count only matches */
		matches[nmatches].position = (uint16_t) (first + lane);
		matches[nmatches].distance = (uint16_t) ranks[lane];
		nmatches += ranks[lane] <= radius;
	}
	return nmatches;
}

/* Ranks sketches from..to-1 by their sums, and appends those that are of interest. */
TARGET static inline __attribute__((always_inline)) size_t
append_near(const SketchColumns *sketches, size_t from, size_t to, const uint32_t *sums,
			HammingMatch *matches, size_t nmatches)
{
	const SketchScore *score = sketches->score;
	const __m256	   start = _mm256_set1_ps(score->start);
	const __m256	   n_factor = _mm256_set1_ps(score->n_factor);
	const __m256	   f_start = _mm256_set1_ps(score->f_start);
	const __m256	   f_factor = _mm256_set1_ps(score->f_factor);
	const __m256	   e_factor = _mm256_set1_ps(score->e_factor);
	const __m256	   limit = _mm256_set1_ps(score_limit(sketches));
	const __m256i	   n_mask = _mm256_set1_epi32((int) N_MASK);
	const __m256i	   f_mask = _mm256_set1_epi32((int) F_MASK);
	const __m256i	   e_mask = _mm256_set1_epi32((int) E_MASK);
	const __m256i	   least_n = _mm256_set1_epi32((int) LEAST_N);
	const __m256i	   least_f = _mm256_set1_epi32((int) LEAST_F);
	const __m256i	   least_e = _mm256_set1_epi32((int) LEAST_E);

	for (size_t i = from; i < to; i += GROUP)
	{
		const __m256 sum =
			_mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *) (sums + (i - from))));
		const __m256i number = _mm256_loadu_si256((const __m256i *) (sketches->numbers + 4 * i));
		const __m256i unknown = _mm256_cmpeq_epi32(number, _mm256_setzero_si256());
		const __m256i n_bits = _mm256_and_si256(_mm256_srli_epi32(number, N_SHIFT), n_mask);
		const __m256i f_bits = _mm256_and_si256(_mm256_slli_epi32(number, F_SHIFT), f_mask);
		const __m256i e_bits = _mm256_and_si256(_mm256_slli_epi32(number, E_SHIFT), e_mask);
		const __m256  n = _mm256_castsi256_ps(_mm256_or_si256(n_bits, least_n));
		const __m256  f = _mm256_castsi256_ps(_mm256_or_si256(f_bits, least_f));
		const __m256  e = _mm256_castsi256_ps(_mm256_or_si256(e_bits, least_e));
		const __m256  product = _mm256_fnmadd_ps(f_factor, sum, f_start);
		__m256		  square = _mm256_fmadd_ps(n_factor, n, start);

		if (i % NUMBERS_LINE == 0)
			prefetch_numbers(sketches, i);
		square = _mm256_fnmadd_ps(f, product, square);
		square = _mm256_fnmadd_ps(e_factor, e, square);
		/* what is not positive, or not known, becomes 0 */
		square = _mm256_andnot_ps(_mm256_castsi256_ps(unknown),
								  _mm256_max_ps(square, _mm256_setzero_ps()));
		if (_mm256_movemask_ps(_mm256_cmp_ps(square, limit, _CMP_LT_OQ)) != 0)
		{
			nmatches = append_group(square, sketches->radius, i, matches, nmatches);
			prefetch_payload(sketches, i);
		}
	}
	return nmatches;
}

TARGET static inline uint32_t
popcount(uint64_t word)
{
	return (uint32_t) _mm_popcnt_u64(word);
}

TARGET static size_t
within(const SketchColumns *sketches, HammingMatch *matches)
{
	const size_t whole = sketches->count - sketches->count % GROUP;
	uint32_t	 sums[BLOCK];
	size_t		 n = 0;

	for (size_t from = 0; from < whole; from += BLOCK)
	{
		const size_t to = whole - from > BLOCK ? from + BLOCK : whole;

		add_column(sketches, 0, true, from, to, sums);
		for (size_t column = 1; column < sketches->ncolumns; column++)
			add_column(sketches, column, false, from, to, sums);
		n = append_near(sketches, from, to, sums, matches, n);
	}
	return append_ranks(sketches, whole, sketches->count, popcount, matches, n);
}

TARGET static uint32_t
disagreement(const uint64_t *code, size_t words, const uint64_t *planes)
{
	return fine_disagreement(code, words, planes, popcount);
}

static bool
supported(void)
{
	/* this also asks whether the operating system saves the wide registers */
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		   __builtin_cpu_supports("popcnt");
}

const SketchKernel sketch_kernel_avx2 = {
	.name = "avx2",
	.supported = supported,
	.within = within,
	.disagreement = disagreement,
};

#endif /* __x86_64__ */

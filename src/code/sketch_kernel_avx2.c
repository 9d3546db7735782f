/*
 * sketch_kernel_avx2.c
 *		Ranking of sketches for x86-64 with AVX2: 32 words at a time.
 *
 * One instruction looks 32 half bytes up, but in a table of 16 entries only.  So words are
 * transposed first: then a vector has the same byte of 32 words, whose sums are in one table.
 */
#include "sketch_columns.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma,popcnt")))

/* sketches whose words in a column are looked up together, and those that are ranked together */
#define WORDS 32
#define GROUP 8

/* sketches whose words, and whose numbers, are a line of memory */
#define WORDS_LINE 8
#define NUMBERS_LINE 16

/* columns whose sums fit into 16 bits: at most 64 * 15 a word */
#define COLUMNS 64

/* bytes of a table for half a byte, and where those for upper halves begin */
#define TABLE 16
#define UPPER (SKETCH_TABLE / 2)

/* Eight numbers of 32 bits, or the first ones and zeros if less than eight are left. */
TARGET static inline __attribute__((always_inline)) __m256i
load_numbers(const uint8_t *from, int left)
{
	if (left >= 8)
		return _mm256_loadu_si256((const __m256i *) from);
	return _mm256_maskload_epi32((const int *) from,
								 _mm256_cmpgt_epi32(_mm256_set1_epi32(left),
													_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
}

/*
 * Transposes the lower halves of 32 words, or the upper ones if it starts there, with so many
 * numbers of 32 bits left.  A vector then has the same byte of all words: its lower 16 bytes those
 * of words 0, 1, 4, 5, 8, 9 and so on, and its upper ones those of words 2, 3, 6, 7 and so on.
 */
TARGET static inline __attribute__((always_inline)) void
transpose(const uint8_t *from, int left, __m256i bytes[4])
{
	const __m256i order = _mm256_setr_epi8(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15, 0,
										   8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15);
	__m256i		  eights[4];
	__m256i		  sixteens[4];

#pragma GCC unroll 4
	for (int k = 0; k < 4; k++)
	{
		/* four words, and the next four a number earlier: the halves of these fill the gaps */
		const __m256i first = load_numbers(from, left);
		const __m256i next = load_numbers(from + 28, left - 7);

		eights[k] = _mm256_shuffle_epi8(_mm256_blend_epi32(first, next, 0xaa), order);
		from += CACHE_LINE;
		left -= 2 * WORDS_LINE;
	}
	sixteens[0] = _mm256_unpacklo_epi32(eights[0], eights[1]);
	sixteens[1] = _mm256_unpackhi_epi32(eights[0], eights[1]);
	sixteens[2] = _mm256_unpacklo_epi32(eights[2], eights[3]);
	sixteens[3] = _mm256_unpackhi_epi32(eights[2], eights[3]);
	bytes[0] = _mm256_unpacklo_epi64(sixteens[0], sixteens[2]);
	bytes[1] = _mm256_unpackhi_epi64(sixteens[0], sixteens[2]);
	bytes[2] = _mm256_unpacklo_epi64(sixteens[1], sixteens[3]);
	bytes[3] = _mm256_unpackhi_epi64(sixteens[1], sixteens[3]);
}

/* What a byte of each word adds: at most 8 * 15. */
TARGET static inline __attribute__((always_inline)) __m256i
look_up(__m256i bytes, const uint8_t *table)
{
	const __m256i half = _mm256_set1_epi8(0x0f);
	const __m256i lower = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) table));
	const __m256i upper =
		_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) (table + UPPER)));

	return _mm256_add_epi8(
		_mm256_shuffle_epi8(lower, _mm256_and_si256(bytes, half)),
		_mm256_shuffle_epi8(upper, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half)));
}

/* The sums over columns from..to-1, at most COLUMNS, of so many sketches: 16 bits each. */
TARGET static inline __attribute__((always_inline)) void
sum_columns(const SketchColumns *sketches, size_t from, size_t to, size_t first, size_t count,
			__m256i sums[2])
{
	const HammingUpcoming upcoming = sketches->upcoming;
	const __m256i		  order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i				  even;

	/* sums of odd bytes, and of both: of even ones and 256 times the odd ones, modulo 2^16 */
	__m256i odd = _mm256_setzero_si256();
	__m256i both = _mm256_setzero_si256();

	for (size_t column = from; column < to; column++)
	{
		const uint8_t *words = sketches->columns[column] + 8 * first;

#pragma GCC unroll 4
		for (size_t k = 0; k < count; k += WORDS_LINE)
			prefetch_same_line(upcoming, words + 8 * k);
#pragma GCC unroll 2
		for (size_t half = 0; half < 2; half++)
		{
			const uint8_t *tables =
				sketches->score->tables + column * SKETCH_TABLE + half * 4 * TABLE;
			__m256i bytes[4];

			transpose(words + 4 * half, (int) (2 * count - half), bytes);
#pragma GCC unroll 2
			for (size_t k = 0; k < 4; k += 2)
			{
				/* at most 16 * 15 a byte */
				const __m256i sum =
					_mm256_add_epi8(look_up(bytes[k], tables + TABLE * k),
									look_up(bytes[k + 1], tables + TABLE * (k + 1)));

				both = _mm256_add_epi16(both, sum);
				odd = _mm256_add_epi16(odd, _mm256_srli_epi16(sum, 8));
			}
		}
	}
	/* in the order of sketches again */
	even = _mm256_sub_epi16(both, _mm256_slli_epi16(odd, 8));
	sums[0] = _mm256_permutevar8x32_epi32(_mm256_unpacklo_epi16(even, odd), order);
	sums[1] = _mm256_permutevar8x32_epi32(_mm256_unpackhi_epi16(even, odd), order);
}

/* The sums over all columns of so many sketches, at most WORDS; there is room for WORDS. */
TARGET static inline __attribute__((always_inline)) void
sum_words(const SketchColumns *sketches, size_t first, size_t count, uint32_t *sums)
{
	for (size_t from = 0; from < sketches->ncolumns; from += COLUMNS)
	{
		const size_t to = sketches->ncolumns - from > COLUMNS ? from + COLUMNS : sketches->ncolumns;
		__m256i		 parts[2];

		sum_columns(sketches, from, to, first, count, parts);
#pragma GCC unroll 4
		for (size_t k = 0; k < 4; k++)
		{
			__m256i *so_far = (__m256i *) (sums + GROUP * k);
			__m256i	 part =
				_mm256_cvtepu16_epi32(k % 2 == 0 ? _mm256_castsi256_si128(parts[k / 2])
												 : _mm256_extracti128_si256(parts[k / 2], 1));

			if (from > 0)
				part = _mm256_add_epi32(_mm256_loadu_si256(so_far), part);
			_mm256_storeu_si256(so_far, part);
		}
	}
}

/* Appends those of count sketches that are of interest, by the squares of their ranks. */
TARGET static inline __attribute__((always_inline)) size_t
append_group(__m256 squares, uint32_t radius, size_t first, size_t count, HammingMatch *matches,
			 size_t nmatches)
{
	/* for each set of four lanes, these closed up */
	static const uint32_t close_up[16][4] = {
		{0}, {0},	 {1},	 {0, 1},	{2},	{0, 2},	   {1, 2},	  {0, 1, 2},
		{3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};
	const __m256i ranks =
		_mm256_cvttps_epi32(_mm256_min_ps(_mm256_sqrt_ps(squares), _mm256_set1_ps(SKETCH_RANKS)));
	const __m256i last = _mm256_set1_epi32((int) (radius < SKETCH_RANKS ? radius : SKETCH_RANKS));
	const int	  far = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(ranks, last)));
	const int	  near = ~far & ((1 << count) - 1);
	/* position and rank as they are in a match */
	const __m256i positions =
		_mm256_add_epi32(_mm256_set1_epi32((int) first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
	const __m256 both =
		_mm256_castsi256_ps(_mm256_or_si256(positions, _mm256_slli_epi32(ranks, 16)));
	const __m128 halves[2] = {_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1)};

#pragma GCC unroll 2
	for (int k = 0; k < 2; k++)
	{
		const int	  lanes = near >> 4 * k & 15;
		const __m128i order = _mm_loadu_si128((const __m128i *) close_up[lanes]);

		_mm_storeu_ps((float *) (matches + nmatches), _mm_permutevar_ps(halves[k], order));
		nmatches += (size_t) __builtin_popcount((unsigned) lanes);
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
		const size_t  used = to - i < GROUP ? to - i : GROUP;
		const __m256i number = load_numbers(sketches->numbers + 4 * i, (int) used);
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
		if ((_mm256_movemask_ps(_mm256_cmp_ps(square, limit, _CMP_LT_OQ)) & ((1 << used) - 1)) != 0)
		{
			nmatches = append_group(square, sketches->radius, i, used, matches, nmatches);
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
	uint32_t sums[BLOCK];
	size_t	 n = 0;

	for (size_t from = 0; from < sketches->count; from += BLOCK)
	{
		const size_t to = sketches->count - from > BLOCK ? from + BLOCK : sketches->count;
		size_t		 i = from;

		for (; to - i >= WORDS; i += WORDS)
			sum_words(sketches, i, WORDS, sums + (i - from));
		if (i < to)
			sum_words(sketches, i, to - i, sums + (i - from));
		n = append_near(sketches, from, to, sums, matches, n);
	}
	return n;
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

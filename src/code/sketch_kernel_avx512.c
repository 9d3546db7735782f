/*
 * sketch_kernel_avx512.c
 *		Ranking of sketches for x86-64 with AVX-512 VBMI: eight words at a time.
 *
 * One instruction looks 64 half bytes up in a table of 128 entries, 16 for each byte of a word:
 * a query's sums come from there, not from four counts of bits.
 */
#include "sketch_columns.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vbmi,fma,popcnt")))

/* sketches whose words in a column are looked at together, and those that are ranked together */
#define WORDS 8
#define GROUP 16

/* The sums of eight words, each from its 16 half bytes. */
TARGET static inline __attribute__((always_inline)) __m512i
look_up(__m512i words, const __m512i *tables)
{
	/* which 16 entries are those of a byte */
	const __m512i bytes = _mm512_set1_epi64(0x7060504030201000);
	const __m512i half = _mm512_set1_epi8(0x0f);
	/* (word & half) | byte, in one instruction */
	const __m512i low = _mm512_ternarylogic_epi64(words, half, bytes, 0xea);
	const __m512i high = _mm512_ternarylogic_epi64(_mm512_srli_epi64(words, 4), half, bytes, 0xea);

	return _mm512_add_epi8(_mm512_permutex2var_epi8(tables[0], low, tables[1]),
						   _mm512_permutex2var_epi8(tables[2], high, tables[3]));
}

/* Which of the lanes that begin with this position have a sketch. */
static inline __mmask16
used_lanes(const SketchColumns *sketches, size_t position)
{
	const size_t left = position < sketches->count ? sketches->count - position : 0;

	return left < GROUP ? (__mmask16) ((1U << left) - 1) : (__mmask16) 0xffff;
}

/* Adds the sums in one column to those of sketches from..to-1, whole groups, or starts these. */
TARGET static inline __attribute__((always_inline)) void
add_column(const SketchColumns *sketches, size_t column, bool starts, size_t from, size_t to,
		   uint64_t *sums)
{
	const uint8_t		 *table = sketches->score->tables + column * SKETCH_TABLE;
	const HammingUpcoming upcoming = sketches->upcoming;
	__m512i				  tables[4];

	for (size_t k = 0; k < 4; k++)
		tables[k] = _mm512_loadu_si512(table + k * CACHE_LINE);
	for (size_t i = from; i < to; i += WORDS)
	{
		const uint8_t *line = sketches->columns[column] + 8 * i;
		const __m512i  words = _mm512_maskz_loadu_epi64((__mmask8) used_lanes(sketches, i), line);
		__m512i		   group = _mm512_sad_epu8(look_up(words, tables), _mm512_setzero_si512());

		prefetch_same_line(upcoming, line);
		if (!starts)
			group = _mm512_add_epi64(_mm512_loadu_si512(sums + (i - from)), group);
		_mm512_storeu_si512(sums + (i - from), group);
	}
}

/* Ranks sketches from..to-1 by their sums, and appends those that are of interest. */
TARGET static inline __attribute__((always_inline)) size_t
append_near(const SketchColumns *sketches, size_t from, size_t to, const uint64_t *sums,
			HammingMatch *matches, size_t nmatches)
{
	const SketchScore *score = sketches->score;
	const __m512	   start = _mm512_set1_ps(score->start);
	const __m512	   n_factor = _mm512_set1_ps(score->n_factor);
	const __m512	   f_start = _mm512_set1_ps(score->f_start);
	const __m512	   f_factor = _mm512_set1_ps(score->f_factor);
	const __m512	   e_factor = _mm512_set1_ps(score->e_factor);
	const __m512	   limit = _mm512_set1_ps(score_limit(sketches));
	const __m512i	   radius = _mm512_set1_epi32((int) sketches->radius);
	const __m512i	   n_mask = _mm512_set1_epi32((int) N_MASK);
	const __m512i	   f_mask = _mm512_set1_epi32((int) F_MASK);
	const __m512i	   e_mask = _mm512_set1_epi32((int) E_MASK);
	const __m512i	   least_n = _mm512_set1_epi32((int) LEAST_N);
	const __m512i	   least_f = _mm512_set1_epi32((int) LEAST_F);
	const __m512i	   least_e = _mm512_set1_epi32((int) LEAST_E);
	const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	for (size_t i = from; i < to; i += GROUP)
	{
		const __m256i low = _mm512_cvtepi64_epi32(_mm512_loadu_si512(sums + (i - from)));
		const __m256i high = _mm512_cvtepi64_epi32(_mm512_loadu_si512(sums + (i - from) + WORDS));
		const __m512  sum =
			_mm512_cvtepi32_ps(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
		const __mmask16 used = used_lanes(sketches, i);
		const __m512i	number = _mm512_maskz_loadu_epi32(used, sketches->numbers + 4 * i);
		const __m512	n = _mm512_castsi512_ps(
			   _mm512_ternarylogic_epi32(_mm512_srli_epi32(number, N_SHIFT), n_mask, least_n, 0xea));
		const __m512 f = _mm512_castsi512_ps(
			_mm512_ternarylogic_epi32(_mm512_slli_epi32(number, F_SHIFT), f_mask, least_f, 0xea));
		const __m512 e = _mm512_castsi512_ps(
			_mm512_ternarylogic_epi32(_mm512_slli_epi32(number, E_SHIFT), e_mask, least_e, 0xea));
		const __m512	product = _mm512_fnmadd_ps(f_factor, sum, f_start);
		const __mmask16 known = _mm512_test_epi32_mask(number, number);
		__m512			square = _mm512_fmadd_ps(n_factor, n, start);

		prefetch_numbers(sketches, i);
		square = _mm512_fnmadd_ps(f, product, square);
		square = _mm512_fnmadd_ps(e_factor, e, square);
		if (((_mm512_cmp_ps_mask(square, limit, _CMP_NGE_UQ) | (__mmask16) ~known) & used) != 0)
		{
			/* what is not positive, or not known, becomes 0 */
			const __m512 root =
				_mm512_sqrt_ps(_mm512_maskz_max_ps(known, square, _mm512_setzero_ps()));
			const __m512i rank =
				_mm512_cvttps_epi32(_mm512_min_ps(root, _mm512_set1_ps(SKETCH_RANKS)));
			const __mmask16 near = _mm512_mask_cmple_epu32_mask(used, rank, radius);
			/* position and rank as they are in a match, and the near ones first */
			const __m512i both = _mm512_or_si512(
				_mm512_add_epi32(lanes, _mm512_set1_epi32((int) i)), _mm512_slli_epi32(rank, 16));
			const unsigned count = (unsigned) __builtin_popcount(near);

			_mm512_mask_storeu_epi32(matches + nmatches, (__mmask16) ((1U << count) - 1),
									 _mm512_maskz_compress_epi32(near, both));
			nmatches += count;
			prefetch_payload(sketches, i);
			prefetch_payload(sketches, i + GROUP / 2);
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
	const size_t end = (sketches->count + GROUP - 1) / GROUP * GROUP;
	uint64_t	 sums[BLOCK];
	size_t		 n = 0;

	for (size_t from = 0; from < end; from += BLOCK)
	{
		const size_t to = end - from > BLOCK ? from + BLOCK : end;

		add_column(sketches, 0, true, from, to, sums);
		for (size_t column = 1; column < sketches->ncolumns; column++)
			add_column(sketches, column, false, from, to, sums);
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
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		   __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("fma") &&
		   __builtin_cpu_supports("popcnt");
}

const SketchKernel sketch_kernel_avx512 = {
	.name = "avx512",
	.supported = supported,
	.within = within,
	.disagreement = disagreement,
};

#endif /* __x86_64__ */

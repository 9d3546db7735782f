/*
 * kernel_avx2.c
 *		Distance kernel for x86-64 with AVX2: 256 bits at a time.
 */
#include "kernel_columns.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,popcnt")))

/* codes whose distances are computed together */
#define GROUP 16

/*
 * The population counts of the four 64-bit words of v.
 *
 * Both nibbles of each byte are looked up, as 4 + count and 4 - count: the sum
 * of absolute differences, which is the instruction that adds the bytes of a
 * word, then adds the two nibbles at the same time.
 */
TARGET static inline __m256i
popcounts(__m256i v)
{
	const __m256i low_counts = _mm256_setr_epi8(4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8, 4,
												5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8);
	const __m256i high_counts = _mm256_setr_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0, 4,
												 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0);
	const __m256i nibble = _mm256_set1_epi8(0x0f);
	const __m256i low = _mm256_and_si256(v, nibble);
	const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble);

	return _mm256_sad_epu8(_mm256_shuffle_epi8(low_counts, low),
						   _mm256_shuffle_epi8(high_counts, high));
}

TARGET static inline __m256i
load(const uint8_t *from)
{
	return _mm256_loadu_si256((const __m256i *) from);
}

TARGET static uint32_t
distance(const uint8_t *a, const uint8_t *b, size_t nbytes)
{
	uint64_t sum = 0;

	if (nbytes >= 32)
	{
		__m256i	 sums = _mm256_setzero_si256();
		uint64_t parts[4];

		for (; nbytes >= 32; a += 32, b += 32, nbytes -= 32)
			sums = _mm256_add_epi64(sums, popcounts(_mm256_xor_si256(load(a), load(b))));
		_mm256_storeu_si256((__m256i *) parts, sums);
		sum = parts[0] + parts[1] + parts[2] + parts[3];
	}
	for (; nbytes >= 8; a += 8, b += 8, nbytes -= 8)
		sum += (uint64_t) _mm_popcnt_u64(load_word(a, 8) ^ load_word(b, 8));
	sum += (uint64_t) _mm_popcnt_u64(load_word(a, nbytes) ^ load_word(b, nbytes));
	return (uint32_t) sum;
}

/* Is any of a group's distances below the bounds? */
TARGET static inline __attribute__((always_inline)) bool
any_below(const __m256i *sums, __m256i bounds)
{
	const __m256i least =
		_mm256_min_epu16(_mm256_min_epu16(sums[0], sums[1]), _mm256_min_epu16(sums[2], sums[3]));

	/* the upper halves of the words are zero on both sides: never greater */
	return _mm256_movemask_epi8(_mm256_cmpgt_epi32(bounds, least)) != 0;
}

/* Appends those codes of a group whose distances are below the bounds. */
TARGET static inline __attribute__((always_inline)) size_t
append_group(const __m256i *sums, __m256i bounds, size_t first, HammingMatch *matches,
			 size_t nmatches)
{
	/* for each set of four lanes, their lower halves, closed up */
	static const uint32_t close_up[16][4] = {
		{0}, {0},	 {2},	 {0, 2},	{4},	{0, 4},	   {2, 4},	  {0, 2, 4},
		{6}, {0, 6}, {2, 6}, {0, 2, 6}, {4, 6}, {0, 4, 6}, {2, 4, 6}, {0, 2, 4, 6}};
	__m256i positions =
		_mm256_add_epi64(_mm256_set1_epi64x((long long) first), _mm256_setr_epi64x(0, 1, 2, 3));

	for (unsigned i = 0; i < GROUP / 4; i++)
	{
		const __m256i  below = _mm256_cmpgt_epi64(bounds, sums[i]);
		const unsigned near = (unsigned) _mm256_movemask_pd(_mm256_castsi256_pd(below));
		const __m256i  lanes =
			_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *) close_up[near]));
		/* position and distance as they are in a match */
		const __m256i both = _mm256_or_si256(positions, _mm256_slli_epi64(sums[i], 16));

		_mm_storeu_si128((__m128i *) (matches + nmatches),
						 _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(both, lanes)));
		nmatches += (size_t) __builtin_popcount(near);
		positions = _mm256_add_epi64(positions, _mm256_set1_epi64x(4));
	}
	return nmatches;
}

TARGET static inline __attribute__((always_inline)) size_t
add_column(const HammingColumns *codes, size_t column, bool starts, bool decides, size_t from,
		   size_t to, uint64_t *sums, HammingMatch *matches, size_t nmatches)
{
	/* no distance is larger, and bounds are compared by halves of words */
	const uint32_t		  radius = codes->radius < 64000 ? codes->radius : 64000;
	const __m256i		  bounds = _mm256_set1_epi64x((long long) radius + 1);
	const __m256i		  queries = _mm256_set1_epi64x((long long) codes->query[column]);
	const HammingUpcoming upcoming = codes->upcoming;

	for (size_t i = from; i < to; i += GROUP)
	{
		__m256i		  *so_far = (__m256i *) (sums + (i - from));
		const uint8_t *words = codes->columns[column] + 8 * i;
		__m256i		   group[GROUP / 4];

		prefetch_same_line(upcoming, words);
		prefetch_same_line(upcoming, words + CACHE_LINE);
		/* gcc by itself would keep the group in memory */
#pragma GCC unroll 4
		for (size_t k = 0; k < GROUP / 4; k++)
		{
			group[k] = popcounts(_mm256_xor_si256(queries, load(words + 32 * k)));
			if (!starts)
				group[k] = _mm256_add_epi64(_mm256_loadu_si256(so_far + k), group[k]);
			if (!decides)
				_mm256_storeu_si256(so_far + k, group[k]);
		}
		if (decides && any_below(group, bounds))
		{
			nmatches = append_group(group, bounds, i, matches, nmatches);
			prefetch_match(codes, i);
			prefetch_match(codes, i + GROUP / 2);
		}
	}
	return nmatches;
}

TARGET static size_t
within(const HammingColumns *codes, HammingMatch *matches)
{
	return within_by_columns(add_column, GROUP, codes, matches);
}

static bool
supported(void)
{
	/* this also asks whether the operating system saves the wide registers */
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}

const HammingKernel hamming_kernel_avx2 = {
	.name = "avx2",
	.supported = supported,
	.distance = distance,
	.within = within,
};

#endif /* __x86_64__ */

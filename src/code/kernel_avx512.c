/*
 * kernel_avx512.c
 *		Distance kernel for x86-64 with AVX-512 VPOPCNTDQ: 512 bits at a time.
 */
#include "kernel_columns.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* codes whose distances are computed together */
#define GROUP 8

/* as many codes as a group of a join has */
#define FEW 128

#define TARGET __attribute__((target("avx512f,avx512vpopcntdq,popcnt")))

TARGET static uint32_t
distance(const uint8_t *a, const uint8_t *b, size_t nbytes)
{
	uint64_t sum = 0;

	if (nbytes >= 64)
	{
		__m512i sums = _mm512_setzero_si512();

		for (; nbytes >= 64; a += 64, b += 64, nbytes -= 64)
		{
			const __m512i differ = _mm512_xor_si512(_mm512_loadu_si512(a), _mm512_loadu_si512(b));

			sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(differ));
		}
		sum = (uint64_t) _mm512_reduce_add_epi64(sums);
	}
	/* word by word: a wide load would wait for bytes beyond the end, though it leaves them out */
	for (; nbytes >= 8; a += 8, b += 8, nbytes -= 8)
		sum += (uint64_t) _mm_popcnt_u64(load_word(a, 8) ^ load_word(b, 8));
	sum += (uint64_t) _mm_popcnt_u64(load_word(a, nbytes) ^ load_word(b, nbytes));
	return (uint32_t) sum;
}

/* Stores those of the codes from i on that are near; there is room for a whole group. */
TARGET static inline __attribute__((always_inline)) size_t
store_matches(__m512i positions, __m512i distances, __mmask8 near, HammingMatch *matches)
{
	/* position and distance as they are in a match, and the near ones first */
	const __m512i both = _mm512_or_si512(positions, _mm512_slli_epi64(distances, 16));
	const __m512i packed = _mm512_maskz_compress_epi64(near, both);

	_mm256_storeu_si256((__m256i *) matches, _mm512_cvtepi64_epi32(packed));
	return (size_t) __builtin_popcount(near);
}

TARGET static inline __attribute__((always_inline)) size_t
add_column(const HammingColumns *codes, size_t column, bool starts, bool decides, size_t from,
		   size_t to, uint64_t *sums, HammingMatch *matches, size_t nmatches)
{
	const __m512i		  queries = _mm512_set1_epi64((long long) codes->query[column]);
	const __m512i		  bounds = _mm512_set1_epi64((long long) codes->radius);
	const HammingUpcoming upcoming = codes->upcoming;
	__m512i				  positions = _mm512_add_epi64(_mm512_set1_epi64((long long) from),
													   _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));

	for (size_t i = from; i < to; i += GROUP)
	{
		uint64_t	  *so_far = sums + (i - from);
		const uint8_t *line = codes->columns[column] + 8 * i;
		const __m512i  words = _mm512_loadu_si512(line);
		__m512i		   group = _mm512_popcnt_epi64(_mm512_xor_si512(queries, words));

		prefetch_same_line(upcoming, line);
		if (!starts)
			group = _mm512_add_epi64(_mm512_loadu_si512(so_far), group);
		if (decides)
		{
			const __mmask8 near = _mm512_cmple_epu64_mask(group, bounds);

			if (near != 0)
			{
				nmatches += store_matches(positions, group, near, matches + nmatches);
				prefetch_match(codes, i);
			}
			positions = _mm512_add_epi64(positions, _mm512_set1_epi64(GROUP));
		}
		else
			_mm512_storeu_si512(so_far, group);
	}
	return nmatches;
}

/*
 * Few codes, which are in the cache already: all columns of a group, so that its distances stay in
 * a register, and the last group by a mask.
 */
TARGET static size_t
within_few(const HammingColumns *codes, HammingMatch *matches)
{
	const __m512i bounds = _mm512_set1_epi64((long long) codes->radius);
	__m512i		  positions = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
	size_t		  nmatches = 0;

	for (size_t i = 0; i < codes->count; i += GROUP)
	{
		const size_t   left = codes->count - i;
		const __mmask8 there = left >= GROUP ? 0xFF : (__mmask8) ((1U << left) - 1);
		__mmask8	   near = there;
		__m512i		   group = _mm512_setzero_si512();

		for (size_t column = 0; column < codes->ncolumns && near != 0; column++)
		{
			const __m512i words = _mm512_maskz_loadu_epi64(there, codes->columns[column] + 8 * i);
			const __m512i query = _mm512_set1_epi64((long long) codes->query[column]);

			group = _mm512_add_epi64(group, _mm512_popcnt_epi64(_mm512_xor_si512(query, words)));
			if (column + 1 >= codes->first)
				near = _mm512_mask_cmple_epu64_mask(there, group, bounds);
		}
		if (near != 0)
			nmatches += store_matches(positions, group, near, matches + nmatches);
		positions = _mm512_add_epi64(positions, _mm512_set1_epi64(GROUP));
	}
	return nmatches;
}

TARGET static size_t
within(const HammingColumns *codes, HammingMatch *matches)
{
	/* a page's codes are streamed, and the next page's are prefetched meanwhile */
	if (codes->count <= FEW && codes->upcoming.next == 0)
		return within_few(codes, matches);
	return within_by_columns(add_column, GROUP, codes, matches);
}

static bool
supported(void)
{
	/* this also asks whether the operating system saves the wide registers */
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq") &&
		   __builtin_cpu_supports("popcnt");
}

const HammingKernel hamming_kernel_avx512 = {
	.name = "avx512",
	.supported = supported,
	.distance = distance,
	.within = within,
};

#endif /* __x86_64__ */

/*
 * kernel_avx512.c
 *		Distance kernel for x86-64 with AVX-512 VPOPCNTDQ: 512 bits at a time.
 *
 * Byte and word masks (AVX-512BW) let the last, partial vector take the same
 * path as the others: what a mask leaves out is never read.
 */
#include "kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vpopcntdq,popcnt")))

TARGET static uint32_t
distance(const uint8_t *a, const uint8_t *b, size_t nbytes)
{
	__m512i sums = _mm512_setzero_si512();

	for (; nbytes >= 64; a += 64, b += 64, nbytes -= 64)
	{
		const __m512i differ = _mm512_xor_si512(_mm512_loadu_si512(a), _mm512_loadu_si512(b));

		sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(differ));
	}
	if (nbytes > 0)
	{
		const __mmask64 rest = ~UINT64_C(0) >> (64 - nbytes);
		const __m512i	differ =
			_mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, a), _mm512_maskz_loadu_epi8(rest, b));

		sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(differ));
	}
	return (uint32_t) _mm512_reduce_add_epi64(sums);
}

/* The distances of eight codes' words in one column; those outside of lanes are not read. */
TARGET static inline __attribute__((always_inline)) __m512i
distances(const uint8_t *words, __mmask8 lanes, __m512i queries)
{
	return _mm512_popcnt_epi64(_mm512_xor_si512(queries, _mm512_maskz_loadu_epi64(lanes, words)));
}

/* Eight candidates are written whatever their number: the CPU could not guess a branch. */
TARGET static inline __attribute__((always_inline)) size_t
find_candidates(const uint8_t *const *columns, size_t first, size_t from, size_t to,
				const uint64_t *query, uint32_t radius, bool rare, Candidate *candidates)
{
	const __m512i bounds = _mm512_set1_epi64((long long) radius);
	const __m512i query0 = _mm512_set1_epi64((long long) query[0]);
	const __m512i query1 = _mm512_set1_epi64((long long) query[first > 1 ? 1 : 0]);
	const __m512i query2 = _mm512_set1_epi64((long long) query[first > 2 ? 2 : 0]);
	const __m512i query3 = _mm512_set1_epi64((long long) query[first > 3 ? 3 : 0]);
	__m512i		  positions = _mm512_add_epi64(_mm512_set1_epi64((long long) from),
											   _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
	size_t		  found = 0;

	for (size_t i = from; i < to; i += 8)
	{
		const __mmask8 lanes = (__mmask8) (to - i >= 8 ? 0xff : 0xff >> (8 - (to - i)));
		__m512i		   sums = distances(columns[0] + 8 * i, lanes, query0);
		__mmask8	   near;

		if (first > 1)
			sums = _mm512_add_epi64(sums, distances(columns[1] + 8 * i, lanes, query1));
		if (first > 2)
			sums = _mm512_add_epi64(sums, distances(columns[2] + 8 * i, lanes, query2));
		if (first > 3)
			sums = _mm512_add_epi64(sums, distances(columns[3] + 8 * i, lanes, query3));
		for (size_t column = 4; column < first; column++)
			sums = _mm512_add_epi64(sums, distances(columns[column] + 8 * i, lanes,
													_mm512_set1_epi64((long long) query[column])));
		near = _mm512_mask_cmple_epu64_mask(lanes, sums, bounds);
		if (!rare || near != 0)
		{
			/* position and distance as they are in a Candidate, and the near ones first */
			const __m512i both = _mm512_or_si512(positions, _mm512_slli_epi64(sums, 16));
			const __m512i packed = _mm512_maskz_compress_epi64(near, both);

			_mm256_storeu_si256((__m256i *) (candidates + found), _mm512_cvtepi64_epi32(packed));
			found += (size_t) __builtin_popcount(near);
		}
		positions = _mm512_add_epi64(positions, _mm512_set1_epi64(8));
	}
	return found;
}

TARGET static size_t
within(const uint8_t *const *columns, size_t ncolumns, size_t count, const uint64_t *query,
	   uint32_t radius, uint16_t *matches)
{
	return within_by_blocks(find_candidates, columns, ncolumns, count, query, radius, matches);
}

static bool
supported(void)
{
	/* this also asks whether the operating system saves the wide registers */
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		   __builtin_cpu_supports("avx512vpopcntdq");
}

const HammingKernel hamming_kernel_avx512 = {
	.name = "avx512",
	.supported = supported,
	.distance = distance,
	.within = within,
};

#endif /* __x86_64__ */

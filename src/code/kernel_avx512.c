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

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vpopcntdq")))

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

/* the distances of eight codes' words in one column; those outside of lanes are not read */
TARGET static inline __m512i
distances(const uint8_t *words, __mmask8 lanes, uint64_t query)
{
	const __m512i queries = _mm512_set1_epi64((long long) query);

	return _mm512_popcnt_epi64(_mm512_xor_si512(queries, _mm512_maskz_loadu_epi64(lanes, words)));
}

TARGET static size_t
within(const uint8_t *const *columns, size_t ncolumns, size_t count, const uint64_t *query,
	   uint32_t radius, uint16_t *matches)
{
	const __m512i bounds = _mm512_set1_epi64((long long) radius);
	size_t		  nmatches = 0;

	for (size_t i = 0; i < count; i += 8)
	{
		const __mmask8 lanes = (__mmask8) (count - i >= 8 ? 0xff : 0xff >> (8 - (count - i)));
		__m512i		   sums = distances(columns[0] + 8 * i, lanes, query[0]);
		unsigned	   found = _mm512_mask_cmple_epu64_mask(lanes, sums, bounds);

		for (size_t column = 1; column < ncolumns && found != 0; column++)
		{
			sums = _mm512_add_epi64(sums, distances(columns[column] + 8 * i, lanes, query[column]));
			if (column + 1 == ncolumns || worth_asking(column + 1, radius))
				found = _mm512_mask_cmple_epu64_mask(lanes, sums, bounds);
		}
		for (; found != 0; found &= found - 1)
			matches[nmatches++] = (uint16_t) (i + (size_t) __builtin_ctz(found));
	}
	return nmatches;
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

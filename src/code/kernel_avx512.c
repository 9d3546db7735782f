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

/* codes whose distances so far are kept while their columns are read */
#define BLOCK 1024

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vpopcntdq,popcnt")))

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

/* The distances of eight codes' words in one column; those outside of lanes are not read. */
TARGET static inline __attribute__((always_inline)) __m512i
distances(const uint8_t *words, __mmask8 lanes, __m512i queries)
{
	return _mm512_popcnt_epi64(_mm512_xor_si512(queries, _mm512_maskz_loadu_epi64(lanes, words)));
}

/* The lanes of the group of eight codes that starts at i. */
static inline __mmask8
lanes_at(size_t i, size_t to)
{
	return (__mmask8) (to - i >= 8 ? 0xff : 0xff >> (8 - (to - i)));
}

/*
 * Adds the distances in one column to the sums of codes from..to-1.  The last of the first
 * columns decides: codes that are near enough are appended.  If these are rare it is worth a
 * branch to pass over a group without any; else eight are written whatever their number,
 * because no CPU could guess the branch.
 */
TARGET static inline __attribute__((always_inline)) size_t
add_column(const HammingColumns *codes, size_t column, bool decides, bool rare, size_t from,
		   size_t to, __m512i *sums, const uint8_t **ahead, HammingMatch *matches, size_t nmatches)
{
	const __m512i  queries = _mm512_set1_epi64((long long) codes->query[column]);
	const __m512i  bounds = _mm512_set1_epi64((long long) codes->radius);
	const uint8_t *next = *ahead;
	__m512i		   positions = _mm512_add_epi64(_mm512_set1_epi64((long long) from),
												_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));

	for (size_t i = from; i < to; i += 8)
	{
		const __mmask8 lanes = (__mmask8) (to - i >= 8 ? 0xff : 0xff >> (8 - (to - i)));
		__m512i		   sum = distances(codes->columns[column] + 8 * i, lanes, queries);

		next = prefetch_next(codes, next);
		if (column > 0)
			sum = _mm512_add_epi64(sums[(i - from) / 8], sum);
		if (!decides)
			sums[(i - from) / 8] = sum;
		else
		{
			const __mmask8 near = _mm512_mask_cmple_epu64_mask(lanes, sum, bounds);

			if (!rare || near != 0)
			{
				/* position and distance as they are in a match, and the near ones first */
				const __m512i both = _mm512_or_si512(positions, _mm512_slli_epi64(sum, 16));
				const __m512i packed = _mm512_maskz_compress_epi64(near, both);

				_mm256_storeu_si256((__m256i *) (matches + nmatches),
									_mm512_cvtepi64_epi32(packed));
				nmatches += (size_t) __builtin_popcount(near);
			}
			positions = _mm512_add_epi64(positions, _mm512_set1_epi64(8));
		}
	}
	*ahead = next;
	return nmatches;
}

/* Column after column, since memory is fastest when it is read in order. */
TARGET static size_t
within(const HammingColumns *codes, HammingMatch *matches)
{
	const size_t   last = codes->first - 1;
	const uint8_t *next = codes->next;
	__m512i		   sums[BLOCK / 8];
	size_t		   n = 0;

	for (size_t from = 0; from < codes->count; from += BLOCK)
	{
		const size_t to = codes->count - from > BLOCK ? from + BLOCK : codes->count;

		if (codes->ncolumns == 1)
		{
			n = add_column(codes, 0, true, true, from, to, sums, &next, matches, n);
			continue;
		}
		for (size_t column = 0; column < last; column++)
			n = add_column(codes, column, false, false, from, to, sums, &next, matches, n);
		if (codes->first == codes->ncolumns)
			n = add_column(codes, last, true, true, from, to, sums, &next, matches, n);
		else
			n = add_column(codes, last, true, false, from, to, sums, &next, matches, n);
	}
	prefetch_rest(codes, next);
	return codes->first < codes->ncolumns ? keep_matches(codes, matches, n) : n;
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

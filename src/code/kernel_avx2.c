/*
 * kernel_avx2.c
 *		Distance kernel for x86-64 with AVX2: 256 bits at a time.
 */
#include "kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,popcnt")))

/*
 * How far ahead of its reads the streaming loop asks for memory, in bytes.
 * The CPU's own prefetcher starts anew at each 4 kB page; two kilobytes ahead
 * carry the stream across.  Prefetching past the end is harmless.
 */
#define PREFETCH 2048

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

TARGET static inline __m256i
distances(__m256i queries, const uint8_t *words)
{
	return popcounts(_mm256_xor_si256(queries, load(words)));
}

/*
 * Sixteen words a turn: only their least distance is compared with the radius,
 * because in a search nearly all groups hold no match.
 */
TARGET static size_t
within(const uint8_t *words, size_t count, uint64_t query, uint32_t radius, uint16_t *matches)
{
	const uint32_t bound = radius < 64 ? radius : 64;
	const __m256i  queries = _mm256_set1_epi64x((long long) query);
	const __m256i  bounds = _mm256_set1_epi64x((long long) bound + 1);
	size_t		   nmatches = 0;
	size_t		   i = 0;

	for (; i + 16 <= count; i += 16)
	{
		const uint8_t *group = words + 8 * i;
		__m256i		   least;

		_mm_prefetch((const char *) (group + PREFETCH), _MM_HINT_T0);
		_mm_prefetch((const char *) (group + PREFETCH + 64), _MM_HINT_T0);

		least = _mm256_min_epu16(
			_mm256_min_epu16(distances(queries, group), distances(queries, group + 32)),
			_mm256_min_epu16(distances(queries, group + 64), distances(queries, group + 96)));
		/* the upper halves of the words are zero on both sides: never greater */
		if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(bounds, least)) != 0)
			nmatches = append_matches(words, i, i + 16, query, bound, matches, nmatches);
	}
	return append_matches(words, i, count, query, bound, matches, nmatches);
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

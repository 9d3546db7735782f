/*
 * kernels.c
 *		How fast the distance kernels stream 64-bit codes, beside merely reading them.
 *
 * One million codes are searched for those within 12 bits of a query, a page's worth
 * (576 codes) a call, as an index would.  Two cases: "memory", every pass over other
 * codes, so that they come from main memory; "cache", the same 8 MB again and again,
 * which the last-level cache holds on most servers.  The reading loop adds up the same
 * words with the widest loads that the CPU has.  Passes of all loops take turns;
 * medians are compared.
 */
#include <stdio.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "../../src/code/kernels.h"
#include "../unit/tap.h"
#include "timing.h"

#define CODES 1000000
#define CODES_PER_CALL 576
#define SETS 64 /* of codes; together larger than any cache */
#define PASSES 201

static uint64_t
read_codes(const uint64_t *codes, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += codes[i];
	return sum;
}

#if defined(__x86_64__)
/* four sums, so that additions do not wait for each other */
__attribute__((target("avx2"))) static uint64_t
read_codes_avx2(const uint64_t *codes, size_t count)
{
	__m256i	 a = _mm256_setzero_si256();
	__m256i	 b = a;
	__m256i	 c = a;
	__m256i	 d = a;
	uint64_t parts[4];
	size_t	 i = 0;

	for (; i + 16 <= count; i += 16)
	{
		const __m256i *words = (const __m256i *) (codes + i);

		a = _mm256_add_epi64(a, _mm256_loadu_si256(words));
		b = _mm256_add_epi64(b, _mm256_loadu_si256(words + 1));
		c = _mm256_add_epi64(c, _mm256_loadu_si256(words + 2));
		d = _mm256_add_epi64(d, _mm256_loadu_si256(words + 3));
	}
	_mm256_storeu_si256((__m256i *) parts,
						_mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d)));
	return parts[0] + parts[1] + parts[2] + parts[3] + read_codes(codes + i, count - i);
}
#endif

/* The fastest reading loop there is: wide loads where the CPU has them. */
static uint64_t (*best_read(void))(const uint64_t *, size_t)
{
#if defined(__x86_64__)
	if (hamming_kernel_avx2.supported())
		return read_codes_avx2;
#endif
	return read_codes;
}

static uint64_t
stream(const HammingKernel *kernel, const uint64_t *codes, uint64_t query)
{
	uint64_t (*const read)(const uint64_t *, size_t) = best_read();
	HammingMatch matches[CODES_PER_CALL + MATCH_ROOM];
	uint64_t	 result = 0;

	for (size_t i = 0; i < CODES; i += CODES_PER_CALL)
	{
		const size_t   count = CODES - i < CODES_PER_CALL ? CODES - i : CODES_PER_CALL;
		const uint8_t *words = (const uint8_t *) (codes + i);

		const HammingColumns columns = {
			.columns = &words,
			.ncolumns = 1,
			.count = count,
			.query = &query,
			.radius = 12,
			.first = 1,
			/* memory that is read in order needs no prefetching but the CPU's */
			.payload = words,
		};

		/* no kernel: read only */
		result += kernel == NULL ? read(codes + i, count) : kernel->within(&columns, matches);
	}
	return result;
}

/* takes what a pass computed, so that the compiler must compute it */
static volatile uint64_t sink;

/* The median time of a pass, of each kernel and at index 0 of reading only. */
static void
measure(const uint64_t *codes, size_t sets, uint64_t query, double *medians)
{
	static double times[8][PASSES];
	size_t		  set = 0;

	for (int pass = 0; pass < PASSES; pass++)
	{
		for (size_t k = 0; k <= hamming_kernel_count; k++)
		{
			const HammingKernel *kernel = k == 0 ? NULL : hamming_kernels[k - 1];
			double				 start;

			if (kernel != NULL && !kernel->supported())
				continue;
			start = microseconds();
			sink += stream(kernel, codes + set * CODES, query);
			times[k][pass] = (microseconds() - start) / 1e3;
			set = (set + 1) % sets;
		}
	}
	for (size_t k = 0; k <= hamming_kernel_count; k++)
		medians[k] = median(times[k], PASSES);
}

int
main(void)
{
	uint64_t  state = 20180415;
	uint64_t *codes = malloc(sizeof(uint64_t) * CODES * SETS);
	double	  memory[8];
	double	  cache[8];

	if (codes == NULL)
	{
		perror("codes");
		return 1;
	}
	for (size_t i = 0; i < (size_t) CODES * SETS; i++)
		codes[i] = next_random(&state);
	measure(codes, SETS, next_random(&state), memory);
	measure(codes, 1, next_random(&state), cache);

	printf("1,000,000 codes of 64 bits, one core; median of %d passes, ratio to reading them\n\n",
		   PASSES);
	printf("| kernel   | memory, ms | ratio | cache, ms | ratio |\n");
	printf("|----------|-----------:|------:|----------:|------:|\n");
	for (size_t k = 0; k <= hamming_kernel_count; k++)
	{
		if (k > 0 && !hamming_kernels[k - 1]->supported())
			continue;
		printf("| %-8s | %10.3f | %5.2f | %9.3f | %5.2f |\n",
			   k == 0 ? "(read)" : hamming_kernels[k - 1]->name, memory[k], memory[k] / memory[0],
			   cache[k], cache[k] / cache[0]);
	}
	free(codes);
	return 0;
}

/*
 * kernel_portable.c
 *		Distance kernel for every CPU: 64 bits at a time in plain C.
 */
#include "kernel_columns.h"

/*
 * Adds neighbouring 1-, 2- and 4-bit fields, then all bytes by one
 * multiplication.  __builtin_popcountll would be a library call with a table
 * on CPUs whose baseline has no such instruction.
 */
static inline uint32_t
popcount(uint64_t word)
{
	word -= (word >> 1) & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + ((word >> 2) & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t) ((word * UINT64_C(0x0101010101010101)) >> 56);
}

static uint32_t
distance(const uint8_t *a, const uint8_t *b, size_t nbytes)
{
	uint32_t sum = 0;

	for (; nbytes >= 8; a += 8, b += 8, nbytes -= 8)
		sum += popcount(load_word(a, 8) ^ load_word(b, 8));
	return sum + popcount(load_word(a, nbytes) ^ load_word(b, nbytes));
}

static size_t
within(const HammingColumns *codes, HammingMatch *matches)
{
	size_t nmatches = 0;

	for (size_t i = 0; i < codes->count; i++)
	{
		uint32_t sum = popcount(load_word(codes->columns[0] + 8 * i, 8) ^ codes->query[0]);

		if (i % 8 == 0)
			prefetch_same_lines(codes, i);
		for (size_t column = 1; column < codes->ncolumns && sum <= codes->radius; column++)
			sum += popcount(load_word(codes->columns[column] + 8 * i, 8) ^ codes->query[column]);
		/* without a branch: write always, count only matches */
		matches[nmatches].position = (uint16_t) i;
		matches[nmatches].distance = (uint16_t) sum;
		nmatches += sum <= codes->radius;
	}
	return nmatches;
}

static bool
supported(void)
{
	return true;
}

const HammingKernel hamming_kernel_portable = {
	.name = "portable",
	.supported = supported,
	.distance = distance,
	.within = within,
};

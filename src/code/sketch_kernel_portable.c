/*
 * sketch_kernel_portable.c
 *		Ranking of sketches for every CPU: 64 bits at a time in plain C.
 */
#include "sketch_columns.h"

/* as in kernel_portable.c */
static inline uint32_t
popcount(uint64_t word)
{
	word -= (word >> 1) & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + ((word >> 2) & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t) ((word * UINT64_C(0x0101010101010101)) >> 56);
}

static size_t
within(const SketchColumns *sketches, HammingMatch *matches)
{
	size_t nmatches = 0;

	/* a line of numbers at a time, which is two of each column */
	for (size_t from = 0; from < sketches->count; from += CACHE_LINE / 4)
	{
		const size_t to =
			sketches->count - from > CACHE_LINE / 4 ? from + CACHE_LINE / 4 : sketches->count;

		for (size_t column = 0; column < sketches->ncolumns; column++)
		{
			prefetch_same_line(sketches->upcoming, sketches->columns[column] + 8 * from);
			prefetch_same_line(sketches->upcoming,
							   sketches->columns[column] + 8 * from + CACHE_LINE);
		}
		prefetch_numbers(sketches, from);
		nmatches = append_ranks(sketches, from, to, popcount, matches, nmatches);
	}
	return nmatches;
}

static uint32_t
disagreement(const uint64_t *code, size_t words, const uint64_t *planes)
{
	return fine_disagreement(code, words, planes, popcount);
}

static bool
supported(void)
{
	return true;
}

const SketchKernel sketch_kernel_portable = {
	.name = "portable",
	.supported = supported,
	.within = within,
	.disagreement = disagreement,
};

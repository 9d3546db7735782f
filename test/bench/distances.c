/*
 * distances.c
 *		How many codes there are at each Hamming distance from a query: the evaluation's inner
 *		loop, for Python to call.
 *
 * Independent of the extension's kernels: bits are counted by the compiler's builtin.
 */
#include <stddef.h>
#include <stdint.h>

extern void count_distances(const uint64_t *codes, size_t count, size_t words,
							const uint64_t *query, int64_t *counts);

/* Codes are of that many words each; counts has a place for each distance, 0 to all bits. */
void
count_distances(const uint64_t *codes, size_t count, size_t words, const uint64_t *query,
				int64_t *counts)
{
	for (size_t i = 0; i < count; i++)
	{
		int distance = 0;

		for (size_t w = 0; w < words; w++)
			distance += __builtin_popcountll(codes[i * words + w] ^ query[w]);
		counts[distance]++;
	}
}

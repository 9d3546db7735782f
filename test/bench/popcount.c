/*
 * popcount.c
 *		What a plain loop takes that computes the distance of every code in a file, once they
 *		are in memory; and what reading as many bytes takes as codes and TIDs have: the
 *		yardsticks of the index.
 *
 * usage: popcount BITS FILE; BITS is a multiple of 64.  Prints the milliseconds of both, the
 * best of many.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

#define PASSES 30

/* takes what a pass computed, so that the compiler must compute it */
static volatile unsigned sink;

/* The least distance; a use for the distances that costs next to nothing. */
static unsigned
nearest(const uint64_t *codes, size_t count, size_t words, const uint64_t *query)
{
	unsigned least = ~0U;

	for (size_t i = 0; i < count; i++)
	{
		unsigned distance = 0;

		for (size_t k = 0; k < words; k++)
			distance += (unsigned) __builtin_popcountll(codes[i * words + k] ^ query[k]);
		least = distance < least ? distance : least;
	}
	return least;
}

/* The sum of all words; four at a time, so that no addition waits for another. */
static uint64_t
sum(const uint64_t *memory, size_t count)
{
	uint64_t sums[4] = {0};

	for (size_t i = 0; i + 4 <= count; i += 4)
	{
		for (size_t k = 0; k < 4; k++)
			sums[k] += memory[i + k];
	}
	return sums[0] + sums[1] + sums[2] + sums[3];
}

int
main(int argc, char **argv)
{
	const size_t words = argc == 3 ? strtoul(argv[1], NULL, 10) / 64 : 0;
	FILE		*file = words > 0 ? fopen(argv[2], "rb") : NULL;
	double		 best[2] = {1e300, 1e300};
	uint64_t	*codes;
	size_t		 count;
	size_t		 size; /* in words, with TIDs */

	if (file == NULL || fseek(file, 0, SEEK_END) != 0)
	{
		fprintf(stderr, "usage: popcount BITS FILE\n");
		return 1;
	}
	count = (size_t) ftell(file) / (8 * words);
	size = count * (8 * words + 6) / 8;
	codes = malloc(size * 8);
	rewind(file);
	if (codes == NULL || fread(codes, 8 * words, count, file) != count)
	{
		perror(argv[2]);
		return 1;
	}
	memset(codes + count * words, 1, (size - count * words) * 8);
	for (int pass = 0; pass < 2 * PASSES; pass++)
	{
		const int	 reads = pass >= PASSES;
		const double start = microseconds();
		double		 time;

		/* each pass another query, so that nothing is known beforehand */
		if (reads)
			sink += (unsigned) sum(codes, size);
		else
			sink += nearest(codes, count, words, codes + (size_t) pass * 997 % count * words);
		time = (microseconds() - start) / 1000.0;
		best[reads] = time < best[reads] ? time : best[reads];
	}
	printf("%f %f\n", best[0], best[1]);
	free(codes);
	fclose(file);
	return 0;
}

/*
 * popcount.c
 *		What a plain loop takes that computes the distance of every code in a file, once they
 *		are in memory: the yardstick of the index.
 *
 * usage: popcount BITS FILE; BITS is a multiple of 64.  Prints milliseconds, the best of many.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

int
main(int argc, char **argv)
{
	const size_t words = argc == 3 ? strtoul(argv[1], NULL, 10) / 64 : 0;
	FILE		*file = words > 0 ? fopen(argv[2], "rb") : NULL;
	double		 best = 1e300;
	uint64_t	*codes;
	size_t		 count;

	if (file == NULL || fseek(file, 0, SEEK_END) != 0)
	{
		fprintf(stderr, "usage: popcount BITS FILE\n");
		return 1;
	}
	count = (size_t) ftell(file) / (8 * words);
	codes = malloc(count * words * 8);
	if (codes == NULL || fseek(file, 0, SEEK_SET) != 0 ||
		fread(codes, 8 * words, count, file) != count)
	{
		perror(argv[2]);
		return 1;
	}
	for (int pass = 0; pass < PASSES; pass++)
	{
		const double start = microseconds();
		double		 time;

		/* each pass another query, so that nothing is known beforehand */
		sink += nearest(codes, count, words, codes + (size_t) pass * 997 % count * words);
		time = (microseconds() - start) / 1000.0;
		best = time < best ? time : best;
	}
	printf("%f\n", best);
	free(codes);
	fclose(file);
	return 0;
}

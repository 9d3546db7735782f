/*
 * random.c
 *		splitmix64, and normal numbers by the sum of uniform ones.
 *
 * No function of the C library takes part, because their last digits differ between
 * libraries: twelve uniform numbers of 48 bits are added, exactly, and their sum less
 * six has mean 0, variance 1 and very nearly the normal shape.
 */
#include "random.h"

void
random_start(Random *random, int64_t seed, uint64_t stream)
{
	random->state = (uint64_t) seed;
	random->state = random_bits(random) ^ (stream * UINT64_C(0xd1342543de82ef95));
	random->state = random_bits(random);
}

uint64_t
random_bits(Random *random)
{
	uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

double
random_normal(Random *random)
{
	int64_t sum = 0;

	/* 48 bits each: twelve of them add up without rounding */
	for (int i = 0; i < 12; i++)
		sum += (int64_t) (random_bits(random) >> 16);
	return ((double) sum - 6.0 * 281474976710656.0) / 281474976710656.0;
}

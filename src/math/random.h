/*
 * random.h
 *		Random numbers that a seed determines on every machine and for ever: what is
 *		made of them is stored in users' tables.
 */
#ifndef UNIFDIAG_RANDOM_H
#define UNIFDIAG_RANDOM_H

#include <stdint.h>

typedef struct Random
{
	uint64_t state;
} Random;

/* Streams of one seed are independent of each other. */
extern void random_start(Random *random, int64_t seed, uint64_t stream);

extern uint64_t random_bits(Random *random);

/* of the standard normal distribution */
extern double random_normal(Random *random);

#endif /* UNIFDIAG_RANDOM_H */

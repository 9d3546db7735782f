/*
 * timing.h
 *		Time, and the median of many measurements.
 */
#ifndef UNIFDIAG_TIMING_H
#define UNIFDIAG_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double
microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e6 + (double) now.tv_nsec * 1e-3;
}

static inline int
compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *) a;
	const double y = *(const double *) b;

	return (x > y) - (x < y);
}

/* The median; the values are sorted on the way. */
static inline double
median(double *values, size_t count)
{
	qsort(values, count, sizeof(double), compare_doubles);
	return values[count / 2];
}

#endif /* UNIFDIAG_TIMING_H */

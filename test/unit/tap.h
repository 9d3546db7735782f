/*
 * tap.h
 *		What a unit test needs: TAP lines, and random numbers from a seed.
 */
#ifndef UNIFDIAG_TAP_H
#define UNIFDIAG_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static int tap_count;
static int tap_failures;

__attribute__((format(printf, 2, 3))) static inline void
ok(bool passed, const char *name, ...)
{
	va_list arguments;

	printf("%sok %d - ", passed ? "" : "not ", ++tap_count);
	va_start(arguments, name);
	vprintf(name, arguments);
	va_end(arguments);
	putchar('\n');
	tap_failures += !passed;
}

/* The test program's exit code; call it last. */
static inline int
done_testing(void)
{
	printf("1..%d\n", tap_count);
	return tap_failures > 0;
}

/* splitmix64: the next of a sequence that its seed determines on every machine */
static inline uint64_t
next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

#endif /* UNIFDIAG_TAP_H */

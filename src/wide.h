/*
 * wide.h
 *		Loops over vectors for whose sake the compiler should use the widest registers
 *		that the CPU at hand turns out to have.
 */
#ifndef UNIFDIAG_WIDE_H
#define UNIFDIAG_WIDE_H

#include <string.h>

/*
 * AVX2 does not bring fused multiplications along, so that both versions round alike.  Not
 * by the name of an architecture: the choice would then ask for that very model of CPU.
 */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define WIDE
#endif

/*
 * Four numbers at a time, for sums whose terms the compiler may not reorder by itself.  By
 * pointers: how such values are passed depends on the registers a function may use.
 */
typedef double Double4 __attribute__((vector_size(32)));
typedef float  Float4 __attribute__((vector_size(16)));

static inline void
load4(Double4 *to, const float *from)
{
	Float4 numbers;

	memcpy(&numbers, from, sizeof(numbers));
	*to = __builtin_convertvector(numbers, Double4);
}

static inline double
sum4(const Double4 *numbers)
{
	return ((*numbers)[0] + (*numbers)[1]) + ((*numbers)[2] + (*numbers)[3]);
}

#endif /* UNIFDIAG_WIDE_H */

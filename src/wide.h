/*
 * wide.h
 *		Loops over vectors that are compiled for several widths of registers, of which the
 *		widest that the CPU has is chosen when the library is loaded.
 */
#ifndef UNIFDIAG_WIDE_H
#define UNIFDIAG_WIDE_H

#include <string.h>

/*
 * AVX2 alone has no fused multiplications, so that both versions round alike.  A feature, not
 * the name of an architecture, which would match that model of CPU only.
 */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define WIDE
#endif

/*
 * Four numbers at a time, for sums whose terms the compiler may not reorder by itself.  They are
 * passed by pointers: how values are passed depends on the registers a function may use.
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

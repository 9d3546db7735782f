/*
 * vector_kernels.h
 *		Kernels for distances between vectors: sums over two rows of floats.
 *
 * A kernel is one way to do that arithmetic on one kind of CPU.  They add in different orders,
 * so that their answers differ by rounding.  The best one that the CPU and the operating
 * system support is chosen once, when the library is loaded.
 *
 * These files include no PostgreSQL header, so that the unit tests and the benchmarks link
 * them as they are.  Nothing here allocates or fails.
 */
#ifndef UNIFDIAG_VECTOR_KERNELS_H
#define UNIFDIAG_VECTOR_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

/* What the cosine of two vectors is made of. */
typedef struct VectorProducts
{
	float ab;
	float aa;
	float bb;
} VectorProducts;

typedef struct VectorKernel
{
	const char *name;

	/* may this CPU, under this operating system, run the kernel? */
	bool (*supported)(void);

	/* rows of dims floats, at any alignment */
	float (*squared_distance)(const float *a, const float *b, size_t dims);
	float (*inner_product)(const float *a, const float *b, size_t dims);
	VectorProducts (*products)(const float *a, const float *b, size_t dims);
} VectorKernel;

/* slowest first; "portable" always comes first and is always supported */
extern const VectorKernel *const vector_kernels[];
extern const size_t				 vector_kernel_count;

/* the fastest supported kernel */
extern const VectorKernel *vector_kernel_best(void);

/* the supported kernel of that name, or else the portable one */
extern const VectorKernel *vector_kernel_named(const char *name);

/*
 * The same sums in double precision, which finite floats cannot overflow.  They are for cases in
 * which a kernel's sum is not finite, or so small that terms may have become zero.
 */
extern double exact_squared_distance(const float *a, const float *b, size_t dims);
extern double exact_inner_product(const float *a, const float *b, size_t dims);

extern const VectorKernel vector_kernel_portable;
#if defined(__x86_64__)
extern const VectorKernel vector_kernel_avx2;
extern const VectorKernel vector_kernel_avx512;
#elif defined(__aarch64__)
extern const VectorKernel vector_kernel_neon;
#endif

#endif /* UNIFDIAG_VECTOR_KERNELS_H */

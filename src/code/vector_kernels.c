/*
 * vector_kernels.c
 *		The table of vector kernels, the choice among them, and sums in double precision.
 */
#include "vector_kernels.h"

#include <string.h>

const VectorKernel *const vector_kernels[] = {
	&vector_kernel_portable,
#if defined(__x86_64__)
	&vector_kernel_avx2,
	&vector_kernel_avx512,
#elif defined(__aarch64__)
	&vector_kernel_neon,
#endif
};

const size_t vector_kernel_count = sizeof(vector_kernels) / sizeof(vector_kernels[0]);

const VectorKernel *
vector_kernel_best(void)
{
	const VectorKernel *best = vector_kernels[0];

	for (size_t i = 1; i < vector_kernel_count; i++)
	{
		if (vector_kernels[i]->supported())
			best = vector_kernels[i];
	}
	return best;
}

const VectorKernel *
vector_kernel_named(const char *name)
{
	for (size_t i = 1; i < vector_kernel_count; i++)
	{
		if (strcmp(vector_kernels[i]->name, name) == 0 && vector_kernels[i]->supported())
			return vector_kernels[i];
	}
	return vector_kernels[0];
}

double
exact_squared_distance(const float *a, const float *b, size_t dims)
{
	double sum = 0.0;

	for (size_t i = 0; i < dims; i++)
	{
		const double difference = (double) a[i] - (double) b[i];

		sum += difference * difference;
	}
	return sum;
}

double
exact_inner_product(const float *a, const float *b, size_t dims)
{
	double sum = 0.0;

	for (size_t i = 0; i < dims; i++)
		sum += (double) a[i] * (double) b[i];
	return sum;
}

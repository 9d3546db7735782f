/*
 * vector_kernel_portable.c
 *		Vector kernel for every CPU.
 *
 * Several partial sums are kept, so that no addition waits for the one before.  The compiler may
 * not do that by itself, because it changes the rounding.
 */
#include "vector_kernels.h"

#define LANES 8

/* Adds up the lanes, in pairs. */
static inline float
sum_of(const float *sums)
{
	return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
		   ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static float
squared_distance(const float *a, const float *b, size_t dims)
{
	const size_t whole = dims - dims % LANES;
	float		 sums[LANES] = {0.0F};

	for (size_t i = 0; i < whole; i += LANES)
	{
		for (size_t lane = 0; lane < LANES; lane++)
		{
			const float difference = a[i + lane] - b[i + lane];

			sums[lane] += difference * difference;
		}
	}
	for (size_t i = whole; i < dims; i++)
		sums[i - whole] += (a[i] - b[i]) * (a[i] - b[i]);
	return sum_of(sums);
}

static float
inner_product(const float *a, const float *b, size_t dims)
{
	const size_t whole = dims - dims % LANES;
	float		 sums[LANES] = {0.0F};

	for (size_t i = 0; i < whole; i += LANES)
	{
		for (size_t lane = 0; lane < LANES; lane++)
			sums[lane] += a[i + lane] * b[i + lane];
	}
	for (size_t i = whole; i < dims; i++)
		sums[i - whole] += a[i] * b[i];
	return sum_of(sums);
}

static VectorProducts
products(const float *a, const float *b, size_t dims)
{
	const VectorProducts result = {
		.ab = inner_product(a, b, dims),
		.aa = inner_product(a, a, dims),
		.bb = inner_product(b, b, dims),
	};

	return result;
}

static bool
supported(void)
{
	return true;
}

const VectorKernel vector_kernel_portable = {
	.name = "portable",
	.supported = supported,
	.squared_distance = squared_distance,
	.inner_product = inner_product,
	.products = products,
};

/*
 * test_vector_kernels.c
 *		Every vector kernel that this machine can run, against sums in double precision.
 *
 * Each input is a block of exactly its size, so that a sanitizer sees any read beyond.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/code/vector_kernels.h"
#include "tap.h"

static uint64_t state = 20180415;

/* what a sum in single precision may be off, as a share of its terms' sum */
#define ROUNDING 1e-5

static float *
random_row(size_t dims, float **block, size_t skew)
{
	*block = malloc((dims + skew) * sizeof(float) + 1);
	for (size_t i = 0; i < dims + skew; i++)
		(*block)[i] = (float) ((double) next_random(&state) / 0x1p63 - 1.0);
	return *block + skew;
}

static bool
near(double found, double expected, double terms)
{
	return fabs(found - expected) <= ROUNDING * terms;
}

static bool
agrees(const VectorKernel *kernel, size_t dims, size_t skew_a, size_t skew_b)
{
	float		  *block_a;
	float		  *block_b;
	float		  *a = random_row(dims, &block_a, skew_a);
	float		  *b = random_row(dims, &block_b, skew_b);
	const double   ab = exact_inner_product(a, b, dims);
	const double   aa = exact_inner_product(a, a, dims);
	const double   bb = exact_inner_product(b, b, dims);
	const double   squared = exact_squared_distance(a, b, dims);
	VectorProducts products = kernel->products(a, b, dims);
	bool		   good = near(squared, aa + bb - 2.0 * ab, aa + bb);

	good &= near(kernel->squared_distance(a, b, dims), squared, squared);
	good &= near(kernel->inner_product(a, b, dims), ab, aa + bb);
	good &=
		near(products.ab, ab, aa + bb) && near(products.aa, aa, aa) && near(products.bb, bb, bb);
	good &= kernel->squared_distance(a, a, dims) == 0.0F;
	/* what is not finite shows, wherever it is */
	if (dims > 0)
	{
		a[next_random(&state) % dims] = next_random(&state) % 2 == 0 ? NAN : INFINITY;
		good &= !isfinite(kernel->squared_distance(a, b, dims));
		good &= !isfinite(kernel->squared_distance(a, a, dims));
		memset(b, 0, dims * sizeof(float));
		good &= !isfinite(kernel->inner_product(a, b, dims));
		good &= !isfinite(kernel->products(a, b, dims).aa);
	}
	free(block_a);
	free(block_b);
	return good;
}

int
main(void)
{
	ok(vector_kernels[0] == &vector_kernel_portable, "the portable kernel comes first");
	ok(vector_kernel_best()->supported(), "the best kernel, %s, is supported",
	   vector_kernel_best()->name);
	ok(vector_kernel_named(vector_kernel_best()->name) == vector_kernel_best(),
	   "kernels are found by their names");
	ok(vector_kernel_named("abacus") == &vector_kernel_portable, "or else the portable one is");
	for (size_t k = 0; k < vector_kernel_count; k++)
	{
		const VectorKernel *kernel = vector_kernels[k];
		int					wrong = 0;

		if (!kernel->supported())
		{
			ok(true, "%s # SKIP not supported by this machine", kernel->name);
			continue;
		}
		for (size_t dims = 0; dims <= 300; dims++)
			for (size_t skew = 0; skew < 4; skew++)
				wrong += !agrees(kernel, dims, skew, (skew * 3 + dims) % 4);
		ok(wrong == 0, "%s: 0 to 300 dimensions at every alignment", kernel->name);
		ok(agrees(kernel, 16000, 0, 1), "%s: 16000 dimensions", kernel->name);
	}
	return done_testing();
}

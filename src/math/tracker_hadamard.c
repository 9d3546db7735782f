/*
 * tracker_hadamard.c
 *		Structured random directions: three times, signs are flipped at random and the
 *		Walsh-Hadamard transform is taken; the first elements are the projections.
 *
 * With D the dimensions rounded up to a power of two, that is 3 D log D additions a vector,
 * and the flips are all there is to keep.  The rows of the matrix it stands for are
 * orthonormal in D dimensions.
 */
#include <math.h>
#include <string.h>

#include "../wide.h"
#include "memory.h"
#include "model.h"
#include "random.h"

#define ROUNDS 3

/* the generator's stream for the flips */
#define FLIP_STREAM (UINT64_C(1) << 33)

static int
padded_dims(const ModelConfig *config)
{
	int padded = 1;

	while (padded < config->dims)
		padded *= 2;
	return padded;
}

static size_t
basis_size(const ModelConfig *config)
{
	return (size_t) ROUNDS * (size_t) padded_dims(config);
}

/* The flips, of the length that keeps the transform's. */
static void
start(Model *model)
{
	const int	padded = padded_dims(&model->config);
	const float one = (float) (1.0 / sqrt(padded));
	Random		random;

	random_start(&random, model->config.seed, FLIP_STREAM);
	for (int i = 0; i < ROUNDS * padded; i++)
		model->basis[i] = random_bits(&random) >> 63 ? one : -one;
}

/* sums and differences of elements that are apart by the step */
WIDE static void
butterfly(float *x, int padded, int step)
{
	for (int first = 0; first < padded; first += 2 * step)
	{
		for (int k = first; k < first + step; k++)
		{
			const float a = x[k];
			const float b = x[k + step];

			x[k] = a + b;
			x[k + step] = a - b;
		}
	}
}

WIDE static void
flip(float *x, const float *flips, int padded)
{
	for (int k = 0; k < padded; k++)
		x[k] *= flips[k];
}

static void
project(const Model *model, const float *centred, float *projected)
{
	const int padded = padded_dims(&model->config);
	float	 *x = math_alloc((size_t) padded, sizeof(float));

	memcpy(x, centred, (size_t) model->config.dims * sizeof(float));
	for (int round = 0; round < ROUNDS; round++)
	{
		flip(x, model->basis + (size_t) round * (size_t) padded, padded);
		for (int step = 1; step < padded; step *= 2)
			butterfly(x, padded, step);
	}
	memcpy(projected, x, (size_t) model->config.bits * sizeof(float));
	math_free(x);
}

/* A row of the matrix is the transposed transform of a unit vector: the rounds backwards. */
static void
expand(const Model *model, float *basis)
{
	const int dims = model->config.dims;
	const int padded = padded_dims(&model->config);
	float	 *x = math_alloc((size_t) padded, sizeof(float));

	for (int i = 0; i < model->config.bits; i++)
	{
		math_check_cancelled();
		memset(x, 0, (size_t) padded * sizeof(float));
		x[i] = 1.0F;
		for (int round = ROUNDS - 1; round >= 0; round--)
		{
			for (int step = 1; step < padded; step *= 2)
				butterfly(x, padded, step);
			flip(x, model->basis + (size_t) round * (size_t) padded, padded);
		}
		memcpy(basis + (size_t) i * (size_t) dims, x, (size_t) dims * sizeof(float));
	}
	math_free(x);
}

const Tracker tracker_hadamard = {
	.name = "hadamard",
	.random = true,
	.start = start,
	.project = project,
	.expand = expand,
	.basis_size = basis_size,
};

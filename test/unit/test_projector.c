/*
 * test_projector.c
 *		The signs that a projector gives are those of the exact projections.
 */
#include <float.h>

#include "../../src/math/projector.h"
#include "data.h"

/* The number of bits that differ from a plain product in double precision. */
static int
count_differences(const Model *model, Projector *projector, const float *row)
{
	const int dims = model->config.dims;
	const int bits = model->config.bits;
	float	 *projection = math_alloc((size_t) bits * (size_t) dims, sizeof(float));
	float	 *signs = math_alloc((size_t) bits, sizeof(float));
	int		  different = 0;

	model_projection(model, projection);
	projector_signs(projector, row, signs);
	for (int i = 0; i < bits; i++)
	{
		long double exact = 0.0;
		long double size = 0.0;

		for (int k = 0; k < dims; k++)
		{
			const long double term = projection[(size_t) i * (size_t) dims + k] *
									 (row[k] - (long double) model->mean[k]);

			exact += term;
			size += fabsl(term);
		}
		/* so close to zero that the order of a sum decides */
		if (fabsl(exact) > 1e-13L * size)
			different += (exact >= 0.0L) != (signs[i] >= 0.0F);
		else if (size == 0.0L)
			different += !(signs[i] >= 0.0F);
	}
	math_free(projection);
	math_free(signs);
	return different;
}

static void
test_shape(int dims, int bits)
{
	const int		  rows = 300;
	const ModelConfig config = make_config(dims, bits);
	float			 *data = make_rows(rows, dims, dims < 40 ? dims : 40, 11);
	Model			 *model = learn_rows(&config, 0, data, 0, rows);
	Projector		 *projector = projector_create(model);
	float			 *row = math_alloc((size_t) dims, sizeof(float));
	uint64_t		  seed = 12;
	int				  different = 0;

	for (int t = 0; t < rows; t++)
		different += count_differences(model, projector, data + (size_t) t * (size_t) dims);
	ok(different == 0, "%d dimensions, %d bits: learnt vectors, %d bits differ", dims, bits,
	   different);

	/* at all scales, in the subspace and outside of it, alone in one dimension, on the mean */
	different = 0;
	for (int exponent = -148; exponent <= 120; exponent += 4)
	{
		for (int k = 0; k < dims; k++)
			row[k] = (float) (model->mean[k] + ldexp(next_normal(&seed), exponent));
		different += count_differences(model, projector, row);
		memset(row, 0, (size_t) dims * sizeof(float));
		row[next_random(&seed) % (uint64_t) dims] = (float) ldexp(next_normal(&seed), exponent);
		different += count_differences(model, projector, row);
	}
	for (int k = 0; k < dims; k++)
		row[k] = k % 2 == 0 ? FLT_MAX : -FLT_MAX;
	different += count_differences(model, projector, row);
	for (int k = 0; k < dims; k++)
		row[k] = (float) (model->mean[k] = (float) model->mean[k]);
	different += count_differences(model, projector, row);
	ok(different == 0, "%d dimensions, %d bits: awkward vectors, %d bits differ", dims, bits,
	   different);

	math_free(row);
	math_free(data);
	projector_free(projector);
	model_free(model);
}

/* Vectors near the planes where bits change: coarse products cannot tell their sides. */
static void
test_boundaries(void)
{
	const int		  dims = 100;
	const int		  bits = 32;
	const ModelConfig config = make_config(dims, bits);
	float			 *data = make_rows(1000, dims, 60, 13);
	Model			 *model = learn_rows(&config, 0, data, 0, 1000);
	Projector		 *projector = projector_create(model);
	float			 *projection = math_alloc((size_t) bits * (size_t) dims, sizeof(float));
	float			 *row = math_alloc((size_t) dims, sizeof(float));
	uint64_t		  seed = 14;
	int				  different = 0;

	model_projection(model, projection);
	for (int t = 0; t < 2000; t++)
	{
		const float *plane = projection + (size_t) (t % bits) * (size_t) dims;
		double		 distance = 0.0;

		for (int k = 0; k < dims; k++)
			distance += plane[k] * (data[(t % 1000) * dims + k] - model->mean[k]);
		distance -= ldexp(next_normal(&seed), -(t % 20));
		for (int k = 0; k < dims; k++)
			row[k] = (float) (data[(t % 1000) * dims + k] - distance * plane[k]);
		different += count_differences(model, projector, row);
	}
	ok(different == 0, "vectors near the planes: %d bits differ", different);
	math_free(projection);
	math_free(row);
	math_free(data);
	projector_free(projector);
	model_free(model);
}

int
main(void)
{
	static const int shapes[][2] = {{1, 1},	  {2, 1},	{3, 3},		{17, 5},
									{64, 64}, {100, 7}, {784, 130}, {4000, 31}};

	require_linalg();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		test_shape(shapes[i][0], shapes[i][1]);
	test_boundaries();
	return done_testing();
}

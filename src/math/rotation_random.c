/*
 * rotation_random.c
 *		A random rotation: rows of normal numbers from the seed, orthonormalised.
 */
#include <math.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "random.h"

/* the generator's stream for rotations; the basis has others, one for each row */
#define ROTATION_STREAM UINT64_MAX

void
rotation_start_random(Model *model)
{
	const int bits = model->config.bits;
	double	 *components = math_alloc((size_t) bits, sizeof(double));
	Random	  random;

	random_start(&random, model->config.seed, ROTATION_STREAM);
	for (int i = 0; i < bits; i++)
	{
		double *row = model->rotation + (size_t) i * bits;
		double	length;

		for (int j = 0; j < bits; j++)
			row[j] = random_normal(&random);
		/* twice: the second pass removes what rounding left of the first */
		for (int pass = 0; pass < 2 && i > 0; pass++)
		{
			multiply_vector_d(false, i, bits, 1.0, model->rotation, row, 0.0, components);
			multiply_vector_d(true, i, bits, -1.0, model->rotation, components, 1.0, row);
		}
		length = sqrt(dot_d(bits, row, row));
		for (int j = 0; j < bits; j++)
			row[j] /= length;
	}
	math_free(components);
}

const Rotation rotation_random = {
	.name = "random",
	.stored = true,
	.start = rotation_start_random,
};

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

/* rows that are made orthogonal to all before them at once */
#define ROWS 32

/* Takes out of count rows, each bits long, what lies along the rows before them. */
static void
remove_components(const double *before, int rows, double *from, int count, int bits,
				  double *components)
{
	/* twice: the second pass removes what rounding left of the first */
	for (int pass = 0; pass < 2 && rows > 0; pass++)
	{
		multiply_d(false, true, count, rows, bits, 1.0, from, before, 0.0, components);
		multiply_d(false, false, count, bits, rows, -1.0, components, before, 1.0, from);
	}
}

void
rotation_start_random(const Model *model, double *rotation)
{
	const int bits = model->config.bits;
	double	 *components = math_alloc((size_t) ROWS * (size_t) bits, sizeof(double));
	Random	  random;

	random_start(&random, model->config.seed, ROTATION_STREAM);
	for (int first = 0; first < bits; first += ROWS)
	{
		const int count = bits - first < ROWS ? bits - first : ROWS;
		double	 *rows = rotation + (size_t) first * (size_t) bits;

		for (size_t i = 0; i < (size_t) count * (size_t) bits; i++)
			rows[i] = random_normal(&random);
		remove_components(rotation, first, rows, count, bits, components);
		for (int i = 0; i < count; i++)
		{
			double *row = rows + (size_t) i * (size_t) bits;
			double	length;

			remove_components(rows, i, row, 1, bits, components);
			length = sqrt(dot_d(bits, row, row));
			for (int j = 0; j < bits; j++)
				row[j] /= length;
		}
	}
	math_free(components);
}

const Rotation rotation_random = {
	.name = "random",
	.stored = true,
	.start = rotation_start_random,
};

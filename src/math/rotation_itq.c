/*
 * rotation_itq.c
 *		Iterative quantization, as a stream: R is the rotation that brings the projected rows
 *		nearest to their own signs.
 *
 * Offline, R <- the orthogonal matrix nearest to S = sum of sign(R y) y' over all rows y, and
 * again.  Here the sum runs over the rows as they come, each with the R of its time, and old
 * rows, whose R was worse, fade; src/math/README.md says how fast.
 */
#include <math.h>
#include <string.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "rows.h"

/* what is left of the sum each time R follows it */
#define FADING 0.9

/* how much the present R counts beside the sum: it decides where few rows leave a choice */
#define INERTIA 0.1

static void
note(Model *model, const double *projected, int rows)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) rows * (size_t) bits;
	double		 weight = 1.0;
	float		*single;
	float		*rotated;
	double		*signs;
	double		*weighted;

	/* there is no R yet */
	if (model->rotated_rows == 0)
		return;
	single = math_alloc(size, sizeof(float));
	rotated = math_alloc(size, sizeof(float));
	signs = math_alloc(size, sizeof(double));
	weighted = math_alloc(size, sizeof(double));
	copy_single(projected, single, size);
	multiply_f(false, true, rows, bits, bits, 1.0F, single, bits, model->rotation, bits, 0.0F,
			   rotated, bits);
	for (size_t i = 0; i < size; i++)
		signs[i] = rotated[i] >= 0.0F ? 1.0 : -1.0;
	/* the last row has weight one, each before it has been forgotten once more */
	for (int t = rows - 1; t >= 0; t--)
	{
		for (int i = 0; i < bits; i++)
			weighted[(size_t) t * (size_t) bits + i] =
				weight * projected[(size_t) t * (size_t) bits + i];
		weight *= model->config.forgetting;
	}
	multiply_d(true, false, bits, bits, rows, 1.0, signs, weighted, weight, model->signs);
	math_free(single);
	math_free(rotated);
	math_free(signs);
	math_free(weighted);
}

static void
adapt(Model *model, double *rotation)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*nearest = math_alloc(size, sizeof(double));
	double		 length = 0.0;

	for (size_t i = 0; i < size; i++)
		length = hypot(length, model->signs[i]);
	for (size_t i = 0; i < size; i++)
		nearest[i] = model->signs[i] + INERTIA * length / sqrt(bits) * rotation[i];
	if (length > 0.0 && nearest_orthogonal(bits, nearest))
		memcpy(rotation, nearest, size * sizeof(double));
	/* last, when nothing can be cancelled any more */
	for (size_t i = 0; i < size; i++)
		model->signs[i] *= FADING;
	math_free(nearest);
}

const Rotation rotation_itq = {
	.name = "itq",
	.stored = true,
	.signs = true,
	.start = rotation_start_random,
	.adapt = adapt,
	.note = note,
};

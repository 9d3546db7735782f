/*
 * tracker_lsh.c
 *		Locality-sensitive hashing: random directions from the seed; only the mean is learnt.
 */
#include <math.h>

#include "memory.h"
#include "model.h"
#include "random.h"
#include "rows.h"

/* the generator's streams for the directions, one for each */
#define DIRECTION_STREAM (UINT64_C(1) << 32)

/* Rows of normal numbers, scaled to length 1. */
static void
start(Model *model)
{
	const int dims = model->config.dims;

	for (int i = 0; i < model->config.bits; i++)
	{
		float *row = model->basis + (size_t) i * (size_t) dims;
		double length;
		Random random;

		math_check_cancelled();
		random_start(&random, model->config.seed, DIRECTION_STREAM + (uint64_t) i);
		for (int k = 0; k < dims; k++)
			row[k] = (float) random_normal(&random);
		length = sqrt(squared_length(row, dims));
		/* twelve uniform numbers may well add up to exactly six in one dimension */
		for (int k = 0; k < dims; k++)
			row[k] = length > 0.0 ? (float) (row[k] / length) : (float) (k == 0);
	}
}

const Tracker tracker_lsh = {
	.name = "lsh",
	.random = true,
	.start = start,
};

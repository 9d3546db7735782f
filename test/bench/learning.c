/*
 * learning.c
 *		What it gains to learn rows in blocks rather than one by one.
 *
 * Two models learn the same rows, one with a block size of 1, one with that which the
 * library chooses.  Passes of the two take turns; medians are compared.
 */
#include <stdio.h>

#include "../unit/data.h"
#include "timing.h"

#define ROWS 2048 /* a pass; the rows of all passes are the same */
#define PASSES 7

/* not counted: the first rows build the basis, and the rotation follows early rows more often */
#define WARM_UP_PASSES 2

enum
{
	ROW_BY_ROW,
	BLOCKS,
	WAYS
};

static const struct
{
	int bits;
	int dims;
} shapes[] = {{32, 784}, {64, 960}, {64, 1536}, {128, 960}, {256, 960}, {256, 1536}, {512, 1536}};

/* Learns all rows, and returns the time. */
static double
learn_pass(Model *model, const float *rows)
{
	const size_t dims = (size_t) model->config.dims;
	const double start = microseconds();

	for (size_t t = 0; t < ROWS; t++)
		model_learn(model, rows + t * dims);
	model_sync(model);
	return microseconds() - start;
}

/* The median time of a row, each way. */
static void
measure(const ModelConfig *config, const float *rows, double *medians)
{
	double times[WAYS][PASSES];
	Model *models[WAYS] = {model_create(config, 1), model_create(config, 0)};

	for (int pass = -WARM_UP_PASSES; pass < PASSES; pass++)
	{
		for (int way = 0; way < WAYS; way++)
		{
			const double time = learn_pass(models[way], rows);

			if (pass >= 0)
				times[way][pass] = time / ROWS;
		}
	}
	for (int way = 0; way < WAYS; way++)
	{
		medians[way] = median(times[way], PASSES);
		model_free(models[way]);
	}
}

int
main(void)
{
	require_linalg();
	printf("| bits | dims | row by row, us/row | blocks, us/row | ratio |\n");
	printf("|-----:|-----:|-------------------:|---------------:|------:|\n");
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
	{
		const ModelConfig config = make_config(shapes[s].dims, shapes[s].bits);
		const size_t	  size = (size_t) ROWS * (size_t) config.dims;
		float			 *rows = math_alloc(size, sizeof(float));
		uint64_t		  state = 20180415;
		double			  medians[WAYS];

		for (size_t i = 0; i < size; i++)
			rows[i] = (float) next_normal(&state);
		measure(&config, rows, medians);
		printf("| %4d | %4d | %18.2f | %14.2f | %5.2f |\n", config.bits, config.dims,
			   medians[ROW_BY_ROW], medians[BLOCKS], medians[ROW_BY_ROW] / medians[BLOCKS]);
		math_free(rows);
	}
	return 0;
}

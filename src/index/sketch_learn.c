/*
 * sketch_learn.c
 *		Learning the model of a sketch index from some of its rows.
 *
 * Some of the rows are not learnt: they are the queries of the calibration.  Some that are learnt are
 * remembered, too, to find the scales of the numbers beside codes.
 */
#include "postgres.h"

#include "../compat.h"
#include "../model/sketcher.h"
#include "sketch_learn.h"

/* the same rows give the same model */
#define SEED 20180415

struct SketchLearner
{
	SketchShape	 shape;
	SketchMetric metric;
	Model		*model;
	int64		 rows;
	int64		 query_step; /* one row of so many plays a query */
	int64		 fit_step;	 /* one of so many is remembered */
	int			 nqueries;
	int			 nfit;
	float		*queries;
	float		*fit;
};

int64
sketch_least_rows(const SketchShape *shape)
{
	return (int64) SKETCH_LEAST_ROWS * Min(shape->projections, shape->dims);
}

SketchLearner *
sketch_learner_create(SketchShape shape, SketchMetric metric, int64 rows)
{
	SketchLearner *learner = palloc0(sizeof(SketchLearner));
	const Size	   row = sizeof(float) * shape.dims;
	ModelConfig	   config;

	sketcher_require_linalg();
	learner->shape = shape;
	learner->metric = metric;
	learner->query_step = Max(rows / SKETCH_QUERIES, 4);
	learner->fit_step = Max(rows / SKETCH_FIT_ROWS, 1);
	learner->queries = palloc_extended(row * SKETCH_QUERIES, MCXT_ALLOC_HUGE);
	learner->fit = palloc_extended(row * SKETCH_FIT_ROWS, MCXT_ALLOC_HUGE);
	config = sketch_config(shape, metric, SEED);
	learner->model = model_create(&config, 0);
	return learner;
}

/* Adds a row to an array of rows that has room for most of them. */
static void
remember(float *rows, int *count, const float *row, int dims)
{
	memcpy(rows + (Size) (*count)++ * dims, row, sizeof(float) * dims);
}

void
sketch_learner_add(SketchLearner *learner, const float *row)
{
	const int	dims = learner->shape.dims;
	const int64 number = learner->rows++;

	/* the second of each step, so that there is none before there is anything to learn */
	if (number % learner->query_step == 1 && learner->nqueries < SKETCH_QUERIES)
	{
		remember(learner->queries, &learner->nqueries, row, dims);
		return;
	}
	if (number % learner->fit_step == 0 && learner->nfit < SKETCH_FIT_ROWS)
		remember(learner->fit, &learner->nfit, row, dims);
	model_learn(learner->model, row);
}

int64
sketch_learner_rows(const SketchLearner *learner)
{
	return learner->rows;
}

SketchModel *
sketch_learner_finish(SketchLearner *learner, float *explained)
{
	SketchModel *model =
		sketch_fit(learner->model, learner->shape, learner->metric, learner->fit, learner->nfit);

	*explained = 1.0F;
	if (learner->shape.projections < learner->shape.dims)
		*explained = (float) model_explained_variance(learner->model);
	return model;
}

SketchCalibration *
sketch_learner_calibration(const SketchLearner *learner, const SketchModel *model, int block)
{
	return sketch_calibration_create(model, learner->queries, learner->nqueries, block);
}

/*
 * merge.c
 *		Two models into one, as if one had seen the rows of both.
 *
 * What each knows of its rows is a few directions with their variances, and the mean.
 * Stacked, with the difference of the means as one direction more, these are a small
 * matrix whose principal directions are the merged basis: exact if the rows have no more
 * than bits dimensions, and the best that the two can tell otherwise.
 */
#include <math.h>
#include <string.h>

#include "directions.h"
#include "memory.h"
#include "model.h"

/*
 * Basis, covariance and rank of the two together, into a.  Within its subspace the merged
 * basis is as near as possible to the anchor's, so that the anchor's rotation and codes
 * keep their meaning.  While the anchor's directions are fewer, those of the other follow,
 * and the way from its mean to the other's, which is the difference.
 */
static void
merge_directions(Model *a, const Model *b, const float *difference, double weight, bool anchor_is_a)
{
	const int bits = a->config.bits;
	const int count = a->rank + b->rank + 1;
	Stack	  stack = stack_create(a->config.dims, count);
	int		 *nearest = math_alloc((size_t) (bits > count ? bits : count), sizeof(int));
	int		  offset = stack_add_model(&stack, 0, anchor_is_a ? a : b, 1.0);

	offset = stack_add_model(&stack, offset, anchor_is_a ? b : a, 1.0);
	stack_add_row(&stack, offset, difference, sqrt(weight));
	for (int i = 0; i < count; i++)
		nearest[i] = i;
	stack_principal(&stack, nearest, a);
	stack_free(&stack);
	math_free(nearest);
}

/* The same one whichever way round the two are given. */
static bool
first_is_larger(const Model *a, const Model *b)
{
	const size_t dims = (size_t) a->config.dims;
	const size_t bits = (size_t) a->config.bits;
	int			 order;

	if (a->rows != b->rows)
		return a->rows > b->rows;
	if (a->scatter != b->scatter)
		return a->scatter > b->scatter;
	order = memcmp(a->mean, b->mean, dims * sizeof(double));
	if (order == 0 && !a->config.tracker->random)
		order = memcmp(a->basis, b->basis, bits * dims * sizeof(float));
	if (order == 0 && !a->config.tracker->random)
		order = memcmp(a->covariance, b->covariance, bits * bits * sizeof(double));
	return order >= 0;
}

static void
forget(Model *model, int64_t rows)
{
	const double factor = pow(model->config.forgetting, (double) rows);

	model->weight *= factor;
	model->scatter *= factor;
	if (!model->config.tracker->random)
	{
		const size_t size = (size_t) model->config.bits * (size_t) model->config.bits;

		for (size_t i = 0; i < size; i++)
			model->covariance[i] *= factor;
		for (size_t i = 0; i < size && model->signs != NULL; i++)
			model->signs[i] *= factor;
	}
}

/* The squared distance of the means, measured with the given power of two. */
static double
squared_distance_of_means(const Model *a, const Model *b, int exponent)
{
	double sum = 0.0;

	for (int k = 0; k < a->config.dims; k++)
	{
		const double distance = ldexp(b->mean[k] - a->mean[k], -exponent);

		sum += distance * distance;
	}
	return sum;
}

/* The power of two for both: the larger one, or one that is large enough for the means. */
static int
common_exponent(const Model *a, const Model *b)
{
	int exponent = b->exponent > a->exponent ? b->exponent : a->exponent;

	if (squared_distance_of_means(a, b, exponent) > MAX_SQUARED_LENGTH)
		frexp(sqrt(squared_distance_of_means(a, b, 0)), &exponent);
	return exponent;
}

/*
 * Merges b into a; b is used up.  Anchored, a is older than b: it keeps its orientation,
 * and its rows have been forgotten a little more with each row of b.
 */
void
model_merge(Model *a, Model *b, bool anchored)
{
	const int dims = a->config.dims;
	bool	  anchor_is_a;
	int		  exponent;
	double	  weight;
	float	 *difference;

	model_settle(a);
	model_settle(b);
	if (b->rows == 0)
		return;
	if (a->rows == 0)
	{
		model_assign(a, b);
		return;
	}
	anchor_is_a = anchored || first_is_larger(a, b);
	if (anchored)
		forget(a, b->rows);
	exponent = common_exponent(a, b);
	model_rescale(a, exponent);
	model_rescale(b, exponent);

	weight = a->config.center ? a->weight * b->weight / (a->weight + b->weight) : 0.0;
	difference = math_alloc((size_t) dims, sizeof(float));
	for (int k = 0; k < dims; k++)
	{
		const double distance = b->mean[k] - a->mean[k];

		a->scatter += weight * ldexp(distance, -exponent) * ldexp(distance, -exponent);
		difference[k] = (float) ldexp(anchor_is_a ? distance : -distance, -exponent);
		if (a->config.center)
			a->mean[k] += distance * (b->weight / (a->weight + b->weight));
	}
	a->scatter += b->scatter;
	a->rows += b->rows;
	a->weight += b->weight;
	if (!a->config.tracker->random)
	{
		merge_directions(a, b, difference, weight, anchor_is_a);
		if (!anchor_is_a)
			model_assign_rotation(a, b);
		model_adapt_rotation(a);
		model_forget_inverse(a);
	}
	/* the distance of the means may be longer than rows may be on average */
	if (a->scatter > MAX_SQUARED_LENGTH * a->weight)
		model_rescale(a, exponent + 1);
	math_free(difference);
	model_sync(a);
}

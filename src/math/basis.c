/*
 * basis.c
 *		The basis W, and the inverse of the covariance: completing them, removing what rounding
 *		has added, and projecting rows.
 */
#include <math.h>
#include <string.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "random.h"
#include "rows.h"

/* basis rows further from orthonormal than this are cleaned; they stay below 1e-5 */
#define MAX_SKEW 1e-6F

/* each pass squares what there is; what single precision leaves may be above the limit */
#define MOST_PASSES 4

/* a row that is longer than others by more than this power of two is scaled down, lest it overflow */
#define FAR_EXPONENT 60

/* what is added to the variances, as a share of their mean, before they are inverted */
#define RIDGE 1e-9

/* and at least: squares of numbers below the range of floats */
#define MIN_RIDGE 1e-80

/* Makes target, the row-th row of the basis, orthogonal to those before it, and 1 long. */
void
orthonormalise_row(const float *basis, int dims, int row, float *target)
{
	float *components = math_alloc((size_t) row + 1, sizeof(float));
	double length;

	for (int pass = 0; pass < 2; pass++)
	{
		if (row > 0)
		{
			multiply_vector_f(false, row, dims, 1.0F, basis, dims, target, 0.0F, components);
			multiply_vector_f(true, row, dims, -1.0F, basis, dims, components, 1.0F, target);
		}
		length = sqrt(squared_length(target, dims));
		for (int k = 0; k < dims; k++)
			target[k] = (float) (target[k] / length);
	}
	math_free(components);
}

/*
 * Fills the basis rows that nothing has been learnt for with random directions, so that
 * there is always a full code.  They carry no variance, and give way to learnt ones.
 */
void
model_complete_basis(Model *model)
{
	const int dims = model->config.dims;

	for (int i = model->rank; i < model->config.bits; i++)
	{
		float *target = model->basis + (size_t) i * (size_t) dims;
		Random random;

		random_start(&random, model->config.seed, (uint64_t) i);
		for (int k = 0; k < dims; k++)
			target[k] = (float) random_normal(&random);
		orthonormalise_row(model->basis, dims, i, target);
	}
	model->complete = true;
}

/*
 * Computes the inverse of the covariance anew; a ridge keeps directions without variance finite.
 * It changes when it is ready: until then a query can be cancelled.
 */
void
model_invert(Model *model)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*inverse = math_alloc(size, sizeof(double));
	double		 trace = 0.0;

	for (int i = 0; i < bits; i++)
		trace += model->covariance[(size_t) i * bits + i];
	memcpy(inverse, model->covariance, size * sizeof(double));
	for (int i = 0; i < bits; i++)
		inverse[(size_t) i * bits + i] += fmax(RIDGE * trace / bits, MIN_RIDGE);
	if (!positive_inverse(bits, inverse))
	{
		/* not even the ridge helps: treat all directions alike */
		memset(inverse, 0, size * sizeof(double));
		for (int i = 0; i < bits; i++)
			inverse[(size_t) i * bits + i] = bits / fmax(trace, MIN_RIDGE);
	}
	model_forget_inverse(model);
	model->inverse = inverse;
}

/* The inverse is not that of the covariance any more: it will be made anew. */
void
model_forget_inverse(Model *model)
{
	if (model->inverse != NULL)
		math_free(model->inverse);
	model->inverse = NULL;
}

/* How far the rows of the basis are from orthonormal, WW' - I, and the largest of it. */
static float
measure_skew(const Model *model, float *skew)
{
	const int	 bits = model->config.bits;
	const int	 dims = model->config.dims;
	const size_t size = (size_t) bits * (size_t) bits;
	float		 largest = 0.0F;

	multiply_f(false, true, bits, bits, dims, 1.0F, model->basis, dims, model->basis, dims, 0.0F,
			   skew, bits);
	for (int i = 0; i < bits; i++)
		skew[(size_t) i * bits + i] -= 1.0F;
	for (size_t i = 0; i < size; i++)
		largest = fmaxf(largest, fabsf(skew[i]));
	return largest;
}

/*
 * Removes what rounding has added: W <- W - (WW' - I)/2 W makes the rows orthonormal again
 * with the least change, and the inverse is computed anew.
 */
void
model_refresh(Model *model)
{
	const int bits = model->config.bits;
	const int dims = model->config.dims;
	float	 *skew = math_alloc((size_t) bits * (size_t) bits, sizeof(float));

	for (int pass = 0; pass < MOST_PASSES && measure_skew(model, skew) > MAX_SKEW; pass++)
	{
		float *change = math_alloc((size_t) bits * (size_t) dims, sizeof(float));

		multiply_f(false, false, bits, dims, bits, 0.5F, skew, bits, model->basis, dims, 0.0F,
				   change, dims);
		for (size_t i = 0; i < (size_t) bits * (size_t) dims; i++)
			model->basis[i] -= change[i];
		math_free(change);
	}
	math_free(skew);
	model_invert(model);
	model->refreshed_rows = model->rows;
}

/* W, bits x dims */
void
model_basis(const Model *model, float *basis)
{
	if (model->config.tracker->expand != NULL)
		model->config.tracker->expand(model, basis);
	else
		memcpy(basis, model->basis,
			   (size_t) model->config.bits * (size_t) model->config.dims * sizeof(float));
}

void
model_projection(const Model *model, float *projection)
{
	const int bits = model->config.bits;
	const int dims = model->config.dims;

	if (model->rotation == NULL)
		model_basis(model, projection);
	else
		multiply_f(false, false, bits, dims, bits, 1.0F, model->rotation, bits, model->basis, dims,
				   0.0F, projection, dims);
}

void
model_project(const Model *model, const float *row, float *centred, float *projected)
{
	const int bits = model->config.bits;
	const int dims = model->config.dims;
	const int far = model_row_exponent(model, row) - FAR_EXPONENT;
	const int exponent = far > model->exponent ? far : model->exponent;
	float	 *y;

	subtract_mean(row, model->mean, centred, dims, ldexp(1.0, -exponent));
	if (model->config.tracker->project != NULL)
		model->config.tracker->project(model, centred, projected);
	else
		multiply_vector_f(false, bits, dims, 1.0F, model->basis, dims, centred, 0.0F, projected);
	if (model->rotation == NULL)
		return;
	y = math_alloc((size_t) bits, sizeof(float));
	memcpy(y, projected, (size_t) bits * sizeof(float));
	multiply_vector_f(false, bits, bits, 1.0F, model->rotation, bits, y, 0.0F, projected);
	math_free(y);
}

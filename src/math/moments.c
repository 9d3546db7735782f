/*
 * moments.c
 *		What a model knows of the projected vectors: their covariance, and shares of the
 *		variance.
 *
 * A tracker with a random basis learns no covariance.  Vectors are then taken to vary alike in
 * all directions.
 */
#include <math.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "rows.h"

/* Sums of squares of each projection, without a rotation. */
static double
trace(const Model *model)
{
	const int bits = model->config.bits;
	double	  sum = 0.0;

	for (int i = 0; i < bits; i++)
		sum += model->covariance[(size_t) i * (size_t) bits + i];
	return sum;
}

double
model_explained_variance(const Model *model)
{
	if (model->config.tracker->random)
		return fmin((double) model->config.bits / model->config.dims, 1.0);
	return model->scatter > 0.0 ? fmin(trace(model) / model->scatter, 1.0) : 0.0;
}

/* max |diag(R C R')/mean - 1|, C the covariance */
double
rotation_balance(const Model *model, const double *rotation)
{
	const int	 bits = model->config.bits;
	const double mean = trace(model) / bits;
	double		*product = math_alloc((size_t) bits * (size_t) bits, sizeof(double));
	double		 worst = 0.0;

	multiply_d(false, false, bits, bits, bits, 1.0, rotation, model->covariance, 0.0, product);
	for (int i = 0; i < bits && mean > 0.0; i++)
	{
		const size_t row = (size_t) i * (size_t) bits;
		const double variance = dot_d(bits, product + row, rotation + row);

		worst = fmax(worst, fabs(variance / mean - 1.0));
	}
	math_free(product);
	return worst;
}

/* The same of the model's own. */
double
model_balance(const Model *model)
{
	const size_t size = (size_t) model->config.bits * (size_t) model->config.bits;
	double		*rotation;
	double		 balance;

	if (model->config.tracker->random)
		return 0.0;
	rotation = math_alloc(size, sizeof(double));
	copy_double(model->rotation, rotation, size);
	balance = rotation_balance(model, rotation);
	math_free(rotation);
	return balance;
}

/* The covariance of the projections, bits x bits, as sums. */
void
model_covariance(const Model *model, double *covariance)
{
	const int	 bits = model->config.bits;
	const int	 dims = model->config.dims;
	const size_t size = (size_t) bits * (size_t) bits;

	if (model->config.tracker->random)
	{
		float *basis = math_alloc((size_t) bits * (size_t) dims, sizeof(float));
		float *products = math_alloc(size, sizeof(float));

		model_basis(model, basis);
		multiply_f(false, true, bits, bits, dims, 1.0F, basis, dims, basis, dims, 0.0F, products,
				   bits);
		for (size_t i = 0; i < size; i++)
			covariance[i] = products[i] * (model->scatter / dims);
		math_free(basis);
		math_free(products);
		return;
	}
	for (size_t i = 0; i < size; i++)
		covariance[i] = model->covariance[i];
}

/*
 * drift.c
 *		How many bits of a code are expected to change from one model to another.
 *
 * Vectors are taken as normal with the covariance that the newer model has learnt: its own
 * in its subspace, and what is left spread evenly over the other directions.  A bit of the
 * old code is the sign of s, one of the new code the sign of u, both linear in the vector:
 * with correlation cos A and old mean h standard deviations from 0 they differ with
 * probability
 *		|Phi(h) - 1/2| + 1/pi * integral from 0 to A of exp(-h^2 / (2 sin^2 t)) dt.
 *
 * Real vectors are not normal: more of their projections lie near 0, where a small turn
 * changes the sign.  A factor for small probabilities makes up for that.
 */
#include <math.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "rows.h"

#define STEPS 64 /* of the integral, an even number */

/* how much denser projections lie near 0 than normal ones do: measured */
#define PEAK 0.3

static double
mismatch(double angle, double offset)
{
	double sum = 0.0;

	/* Simpson's rule; the integrand is 0 at 0 unless there is no offset */
	for (int i = 0; i <= STEPS; i++)
	{
		const double sine = sin(angle * i / STEPS);
		const double value = offset == 0.0 ? 1.0
							 : sine == 0.0 ? 0.0
										   : exp(-offset * offset / (2.0 * sine * sine));

		sum += value * (i == 0 || i == STEPS ? 1.0 : i % 2 == 1 ? 4.0 : 2.0);
	}
	return 0.5 * erf(fabs(offset) / M_SQRT2) + sum * angle / (3.0 * STEPS) / M_PI;
}

/* the second moments of an old and a new projection, by the newer model's covariance */
typedef struct Moments
{
	double old_variance;
	double new_variance;
	double covariance;
} Moments;

/* What the newer model knows, and room for what is computed of it. */
typedef struct Newer
{
	const Model *model;
	double		 rest;		 /* variance of each direction that nothing is known of */
	float		*projection; /* bits x dims, if the basis is random */
	float		*components; /* bits x bits, old projections in the basis, if it is learnt */
	double		*old;
	double		*product;
} Newer;

/* All directions vary alike. */
static Moments
random_moments(const Newer *newer, const float *old, int bit)
{
	const int dims = newer->model->config.dims;
	const float *new = newer->projection + (size_t) bit *(size_t) dims;
	Moments moments;

	moments.old_variance = squared_length(old, dims) * newer->rest;
	moments.new_variance = squared_length(new, dims) * newer->rest;
	moments.covariance = product_of_rows(old, new, dims) * newer->rest;
	return moments;
}

static Moments
learnt_moments(const Newer *newer, const float *row, int bit)
{
	const Model *model = newer->model;
	const int	 bits = model->config.bits;
	const double *new = model->rotation + (size_t) bit *(size_t) bits;
	double	outside = squared_length(row, model->config.dims);
	Moments moments;

	for (int j = 0; j < bits; j++)
	{
		newer->old[j] = newer->components[(size_t) bit * (size_t) bits + j];
		outside -= newer->old[j] * newer->old[j];
	}
	multiply_vector_d(false, bits, bits, 1.0, model->covariance, newer->old, 0.0, newer->product);
	moments.old_variance =
		dot_d(bits, newer->old, newer->product) + fmax(outside, 0.0) * newer->rest;
	moments.covariance = dot_d(bits, new, newer->product);
	multiply_vector_d(false, bits, bits, 1.0, model->covariance, new, 0.0, newer->product);
	moments.new_variance = dot_d(bits, new, newer->product);
	return moments;
}

/* What a probability for normal vectors is for real ones: 0, 1/2 and 1 stay as they are. */
static double
calibrate(double normal)
{
	return normal + PEAK * fmin(normal, 1.0 - normal) * (1.0 - 2.0 * normal);
}

double
model_drift(const Model *before, const Model *after)
{
	const bool	 random = after->config.tracker->random;
	const int	 bits = after->config.bits;
	const int	 dims = after->config.dims;
	const size_t size = (size_t) bits * (size_t) dims;
	const double rest_dims = random ? dims : dims - bits;
	const double unexplained = random ? 1.0 : 1.0 - model_explained_variance(after);
	Newer		 newer = {.model = after};
	float		*projection = math_alloc(size, sizeof(float));
	double		 sum = 0.0;

	newer.rest = rest_dims > 0 ? unexplained * after->scatter / rest_dims : 0.0;
	newer.projection = math_alloc(random ? size : 1, sizeof(float));
	newer.components = math_alloc(random ? 1 : (size_t) bits * (size_t) bits, sizeof(float));
	newer.old = math_alloc((size_t) bits, sizeof(double));
	newer.product = math_alloc((size_t) bits, sizeof(double));
	model_projection(before, projection);
	if (random)
		model_projection(after, newer.projection);
	else
		multiply_f(false, true, bits, bits, dims, 1.0F, projection, dims, after->basis, dims, 0.0F,
				   newer.components, bits);
	for (int i = 0; i < bits; i++)
	{
		const float	 *row = projection + (size_t) i * (size_t) dims;
		const Moments moments =
			random ? random_moments(&newer, row, i) : learnt_moments(&newer, row, i);
		double offset = 0.0;

		for (int k = 0; k < dims; k++)
			offset += row[k] * ldexp(after->mean[k] - before->mean[k], -after->exponent);
		if (moments.old_variance > 0.0 && moments.new_variance > 0.0)
		{
			const double correlation =
				moments.covariance / sqrt(moments.old_variance * moments.new_variance);

			sum += calibrate(mismatch(acos(fmin(fmax(correlation, -1.0), 1.0)),
									  offset / sqrt(moments.old_variance / after->weight)));
		}
	}
	math_free(projection);
	math_free(newer.projection);
	math_free(newer.components);
	math_free(newer.old);
	math_free(newer.product);
	return sum / bits;
}

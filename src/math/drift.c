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
	/* if it is learnt, bits x bits each */
	double *components;	 /* old projections in the basis */
	double *rotation;	 /* new ones */
	double *old_product; /* the old ones times the covariance */
	double *new_product;
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
	const int	  bits = newer->model->config.bits;
	const size_t  offset = (size_t) bit * (size_t) bits;
	const double *old = newer->components + offset;
	const double *new = newer->rotation + offset;
	const double outside = squared_length(row, newer->model->config.dims) - dot_d(bits, old, old);
	Moments		 moments;

	moments.old_variance =
		dot_d(bits, old, newer->old_product + offset) + fmax(outside, 0.0) * newer->rest;
	moments.covariance = dot_d(bits, new, newer->old_product + offset);
	moments.new_variance = dot_d(bits, new, newer->new_product + offset);
	return moments;
}

/* Prepares for a newer model that has learnt its basis. */
static void
prepare_learnt(Newer *newer, const float *projection)
{
	const Model *model = newer->model;
	const int	 bits = model->config.bits;
	const int	 dims = model->config.dims;
	const size_t size = (size_t) bits * (size_t) bits;
	float		*components = math_alloc(size, sizeof(float));

	newer->components = math_alloc(size, sizeof(double));
	newer->rotation = math_alloc(size, sizeof(double));
	newer->old_product = math_alloc(size, sizeof(double));
	newer->new_product = math_alloc(size, sizeof(double));
	multiply_f(false, true, bits, bits, dims, 1.0F, projection, dims, model->basis, dims, 0.0F,
			   components, bits);
	copy_double(components, newer->components, size);
	copy_double(model->rotation, newer->rotation, size);
	multiply_d(false, false, bits, bits, bits, 1.0, newer->components, model->covariance, 0.0,
			   newer->old_product);
	multiply_d(false, false, bits, bits, bits, 1.0, newer->rotation, model->covariance, 0.0,
			   newer->new_product);
	math_free(components);
}

static void
free_learnt(Newer *newer)
{
	math_free(newer->components);
	math_free(newer->rotation);
	math_free(newer->old_product);
	math_free(newer->new_product);
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
	model_projection(before, projection);
	if (random)
	{
		newer.projection = math_alloc(size, sizeof(float));
		model_projection(after, newer.projection);
	}
	else
		prepare_learnt(&newer, projection);
	for (int i = 0; i < bits; i++)
	{
		const float	 *row = projection + (size_t) i * (size_t) dims;
		const Moments moments =
			random ? random_moments(&newer, row, i) : learnt_moments(&newer, row, i);
		double offset = 0.0;

		math_check_cancelled();
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
	if (random)
		math_free(newer.projection);
	else
		free_learnt(&newer);
	return sum / bits;
}

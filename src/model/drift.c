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

#define STEPS 64 /* of the integral, an even number */

/* how much denser projections lie near 0 than normal ones do; src/README.md has the measurements */
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

/* What a probability for normal vectors is for real ones: 0, 1/2 and 1 stay as they are. */
static double
calibrate(double normal)
{
	return normal + PEAK * fmin(normal, 1.0 - normal) * (1.0 - 2.0 * normal);
}

double
model_drift(const Model *before, const Model *after)
{
	const int	 bits = after->config.bits;
	const int	 dims = after->config.dims;
	const size_t size = (size_t) bits * (size_t) dims;
	const double rest_dims = dims - bits;
	const double explained = model_explained_variance(after);
	const double rest = rest_dims > 0 ? (1.0 - explained) * after->scatter / rest_dims : 0.0;
	float		*projection = math_alloc(size, sizeof(float));
	float		*components = math_alloc((size_t) bits * (size_t) bits, sizeof(float));
	double		*old = math_alloc((size_t) bits, sizeof(double));
	double		*product = math_alloc((size_t) bits, sizeof(double));
	double		 sum = 0.0;

	model_projection(before, projection);
	multiply_f(false, true, bits, bits, dims, 1.0F, projection, dims, after->basis, dims, 0.0F,
			   components, bits);
	for (int i = 0; i < bits; i++)
	{
		const double *new = after->rotation + (size_t) i *(size_t) bits;
		const float *row = projection + (size_t) i * (size_t) dims;
		double		 outside = 0.0;
		double		 offset = 0.0;
		double		 old_variance;
		double		 new_variance;
		double		 covariance;

		for (int k = 0; k < dims; k++)
		{
			outside += (double) row[k] * row[k];
			offset += row[k] * ldexp(after->mean[k] - before->mean[k], -after->exponent);
		}
		for (int j = 0; j < bits; j++)
		{
			old[j] = components[(size_t) i * (size_t) bits + j];
			outside -= old[j] * old[j];
		}
		multiply_vector_d(false, bits, bits, 1.0, after->covariance, old, 0.0, product);
		old_variance = dot_d(bits, old, product) + fmax(outside, 0.0) * rest;
		covariance = dot_d(bits, new, product);
		multiply_vector_d(false, bits, bits, 1.0, after->covariance, new, 0.0, product);
		new_variance = dot_d(bits, new, product);
		if (old_variance > 0.0 && new_variance > 0.0)
		{
			const double correlation = covariance / sqrt(old_variance * new_variance);

			sum += calibrate(mismatch(acos(fmin(fmax(correlation, -1.0), 1.0)),
									  offset / sqrt(old_variance / after->weight)));
		}
	}
	math_free(projection);
	math_free(components);
	math_free(old);
	math_free(product);
	return sum / bits;
}

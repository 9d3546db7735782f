/*
 * data.h
 *		Vectors and codes for the tests of models, and memory for the models.
 */
#ifndef UNIFDIAG_DATA_H
#define UNIFDIAG_DATA_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/math/linalg.h"
#include "../../src/math/memory.h"
#include "../../src/math/model.h"
#include "tap.h"

/* what a test does when the mathematics looks for a cancelled query, or NULL; and what holds it off */
static void (*on_look)(void);
static int looks_held;

void
math_check_cancelled(void)
{
	if (on_look != NULL && looks_held == 0)
		on_look();
}

void
math_hold_cancel(void)
{
	looks_held++;
}

void
math_resume_cancel(void)
{
	looks_held--;
}

/* as the server's, it looks for a cancelled query */
void *
math_alloc(size_t count, size_t size)
{
	void *memory;

	math_check_cancelled();
	memory = calloc(count > 0 ? count : 1, size);
	if (memory == NULL)
		abort();
	return memory;
}

void
math_free(void *memory)
{
	free(memory);
}

/* Loads the library that models need, or ends the test. */
static inline void
require_linalg(void)
{
	const char *reason;

	if (!linalg_load(&reason))
	{
		printf("Bail out! %s\n", reason);
		exit(1);
	}
}

/* of the standard normal distribution, by Box and Muller */
static inline double
next_normal(uint64_t *state)
{
	const double u = ((double) (next_random(state) >> 11) + 0.5) / 9007199254740992.0;
	const double v = (double) (next_random(state) >> 11) / 9007199254740992.0;

	return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

/*
 * Rows of rank dimensions mixed into dims, with falling variances and a mean that is not
 * zero: what a learner meets in practice.
 */
static inline float *
make_rows(int rows, int dims, int rank, uint64_t seed)
{
	float  *data = math_alloc((size_t) rows * (size_t) dims, sizeof(float));
	double *mixing = math_alloc((size_t) rank * (size_t) dims, sizeof(double));
	double *row = math_alloc((size_t) dims, sizeof(double));

	for (int i = 0; i < rank * dims; i++)
		mixing[i] = next_normal(&seed) / (1.0 + i / dims);
	for (int t = 0; t < rows; t++)
	{
		for (int k = 0; k < dims; k++)
			row[k] = 3.0 + 0.1 * k;
		for (int i = 0; i < rank; i++)
		{
			const double factor = next_normal(&seed);

			for (int k = 0; k < dims; k++)
				row[k] += factor * mixing[i * dims + k];
		}
		for (int k = 0; k < dims; k++)
			data[(size_t) t * (size_t) dims + k] = (float) row[k];
	}
	math_free(mixing);
	math_free(row);
	return data;
}

static inline ModelConfig
make_config(int dims, int bits)
{
	const ModelConfig config = {.dims = dims,
								.bits = bits,
								.tracker = &tracker_opast,
								.rotation = &rotation_unifdiag,
								.stable = true,
								.center = true,
								.forgetting = 1.0,
								.seed = 0};

	return config;
}

static inline Model *
learn_rows(const ModelConfig *config, int block_size, const float *data, int first, int last)
{
	Model *model = model_create(config, block_size);

	for (int t = first; t < last; t++)
		model_learn(model, data + (size_t) t * (size_t) config->dims);
	model_sync(model);
	return model;
}

/* the largest |W W' - I| */
static inline double
basis_skew(const Model *model)
{
	const int dims = model->config.dims;
	double	  skew = 0.0;

	for (int i = 0; i < model->config.bits; i++)
	{
		for (int j = 0; j <= i; j++)
		{
			double product = i == j ? -1.0 : 0.0;

			for (int k = 0; k < dims; k++)
				product += (double) model->basis[i * dims + k] * model->basis[j * dims + k];
			skew = fmax(skew, isfinite(product) ? fabs(product) : INFINITY);
		}
	}
	return skew;
}

/* rotations are rounded to single precision: four times what is measured */
#define MAX_ROTATION_SKEW 3e-7

/* the largest |R R' - I| */
static inline double
rotation_skew(const double *rotation, int bits)
{
	double skew = 0.0;

	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j <= i; j++)
		{
			double product = i == j ? -1.0 : 0.0;

			for (int k = 0; k < bits; k++)
				product += rotation[i * bits + k] * rotation[j * bits + k];
			skew = fmax(skew, isfinite(product) ? fabs(product) : INFINITY);
		}
	}
	return skew;
}

static inline double
model_rotation_skew(const Model *model)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*rotation = math_alloc(size, sizeof(double));
	double		 skew;

	for (size_t i = 0; i < size; i++)
		rotation[i] = model->rotation[i];
	skew = rotation_skew(rotation, bits);
	math_free(rotation);
	return skew;
}

/* The share of bits in which the codes of two models' rows differ. */
static inline double
code_difference(const Model *a, const float *rows_a, const Model *b, const float *rows_b, int rows)
{
	const int dims = a->config.dims;
	const int bits = a->config.bits;
	float	 *centred = math_alloc((size_t) dims, sizeof(float));
	float	 *projected = math_alloc((size_t) bits * 2, sizeof(float));
	double	  different = 0.0;

	for (int t = 0; t < rows; t++)
	{
		model_project(a, rows_a + (size_t) t * (size_t) dims, centred, projected);
		model_project(b, rows_b + (size_t) t * (size_t) dims, centred, projected + bits);
		for (int i = 0; i < bits; i++)
			different += (projected[i] >= 0.0F) != (projected[bits + i] >= 0.0F);
	}
	math_free(centred);
	math_free(projected);
	return different / ((double) rows * bits);
}

#endif /* UNIFDIAG_DATA_H */

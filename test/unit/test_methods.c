/*
 * test_methods.c
 *		The other trackers and rotations: what each promises, what all have in common.
 */
#include <float.h>

#include "data.h"

#define ROWS 6000
#define DIMS 40
#define BITS 16

/* every combination that makes sense, by its number; false behind the last */
static bool
combination(int number, ModelConfig *config)
{
	for (int t = 0; t < tracker_count; t++)
	{
		for (int r = 0; r < rotation_count; r++)
		{
			if (rotation_makes_sense(trackers[t], rotations[r]) && number-- == 0)
			{
				config->tracker = trackers[t];
				config->rotation = rotations[r];
				return true;
			}
		}
	}
	return false;
}

static const char *
name_of(const ModelConfig *config)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s, %s", config->tracker->name, config->rotation->name);
	return name;
}

static bool
same_doubles(const double *a, const double *b, size_t count)
{
	return a == NULL || memcmp(a, b, count * sizeof(double)) == 0;
}

/* Looking at a model between rows must not change what it becomes. */
static void
test_looking(const ModelConfig *config, const float *data)
{
	Model *model = learn_rows(config, 0, data, 0, ROWS);
	Model *watched = model_create(config, 0);
	double difference;

	for (int t = 0; t < ROWS; t++)
	{
		model_learn(watched, data + (size_t) t * DIMS);
		if (t % 7 == 0)
			model_sync(watched);
	}
	model_sync(watched);
	difference = code_difference(model, data, watched, data, ROWS);
	ok(difference <= 0.001, "%s: %.5f of the bits differ if somebody looks", name_of(config),
	   difference);
	model_free(model);
	model_free(watched);
}

static void
test_copy(const ModelConfig *config, const float *data)
{
	Model *model = learn_rows(config, 0, data, 0, 1000);
	Model *copy = model_copy(model);
	bool   same;

	for (int t = 1000; t < 1500; t++)
	{
		model_learn(model, data + (size_t) t * DIMS);
		model_learn(copy, data + (size_t) t * DIMS);
	}
	model_sync(model);
	model_sync(copy);
	same = same_doubles(model->mean, copy->mean, DIMS) &&
		   same_doubles(model->covariance, copy->covariance, (size_t) BITS * BITS) &&
		   (model->rotation == NULL ||
			memcmp(model->rotation, copy->rotation, sizeof(float) * BITS * BITS) == 0) &&
		   same_doubles(model->signs, copy->signs, (size_t) BITS * BITS);
	ok(same && code_difference(model, data, copy, data, ROWS) == 0.0,
	   "%s: a copy goes on like the original", name_of(config));
	model_free(model);
	model_free(copy);
}

static void
test_scale(const ModelConfig *config, const float *data)
{
	/* frequent directions make much of rounding: only what is exact leaves codes as they are */
	const bool	 exact = config->tracker->patient;
	const double factors[] = {exact ? 0x1p-20 : 1e-6, exact ? 0x1p100 : 1e30, 1.0};
	const double shifts[] = {0.0, 0.0, exact ? 0.0 : 50.0};
	float		*other = math_alloc((size_t) ROWS * DIMS, sizeof(float));
	Model		*model = learn_rows(config, 0, data, 0, ROWS);
	double		 worst = 0.0;

	for (int i = 0; i < 3; i++)
	{
		Model *changed;

		for (int k = 0; k < ROWS * DIMS; k++)
			other[k] = (float) (data[k] * factors[i] + shifts[i]);
		changed = learn_rows(config, 0, other, 0, ROWS);
		worst = fmax(worst, code_difference(model, data, changed, other, ROWS));
		model_free(changed);
	}
	ok(worst <= 0.002, "%s: multiplied or shifted vectors change %.5f of the bits", name_of(config),
	   worst);
	model_free(model);
	free(other);
}

static void
test_merging(const ModelConfig *config, const float *data)
{
	Model *whole = learn_rows(config, 0, data, 0, ROWS);
	Model *ab = learn_rows(config, 0, data, 0, 2000);
	Model *ba = learn_rows(config, 0, data, 2000, ROWS);
	Model *large = model_copy(ba);
	Model *a = model_copy(ab);
	Model *b = model_copy(ba);
	double kept;

	model_merge(ab, b, false);
	model_merge(ba, a, false);
	kept = code_difference(large, data, ab, data, ROWS);
	ok(ab->rows == ROWS &&
		   fabs(ab->scatter / whole->scatter * ldexp(1.0, 2 * (ab->exponent - whole->exponent)) -
				1.0) < 1e-5,
	   "%s: merging loses no variance", name_of(config));
	ok(code_difference(ab, data, ba, data, ROWS) <= 0.001, "%s: a with b is b with a",
	   name_of(config));
	ok(kept < 0.15, "%s: %.4f of the larger one's bits change", name_of(config), kept);
	model_free(whole);
	model_free(ab);
	model_free(ba);
	model_free(large);
	model_free(a);
	model_free(b);
}

/* value k of row t, of the kinds of data that break careless arithmetic */
static float
awkward_value(int kind, int t, int k, uint64_t *state)
{
	const double normal = next_normal(state);

	switch (kind)
	{
		case 0:
			return 7.5F;
		case 1:
			return t % 2 == 0 ? (float) k : 1.0F;
		case 2:
			return (float) (normal * 1e-41);
		case 3:
			return normal > 0.0 ? FLT_MAX : -FLT_MAX;
		case 4:
			return (float) (normal * (t < 100 ? 1e-30 : 1e37));
		case 5:
			return k == t % DIMS ? 1.0F : 0.0F;
		case 6:
			return t < 150 ? 3e38F : -3e38F;
		default:
			return k == 5 ? (float) normal : 0.0F;
	}
}

static bool
is_usable(const Model *model, const float *data, int rows)
{
	bool finite = isfinite(model->scatter) && isfinite(model_balance(model)) &&
				  isfinite(model_explained_variance(model)) && isfinite(model_drift(model, model));

	if (model->rotation != NULL)
		finite &= model_rotation_skew(model) < MAX_ROTATION_SKEW && basis_skew(model) < 1e-5;
	/* NaN would compare as a difference between the model and itself */
	return finite && code_difference(model, data, model, data, rows) == 0.0;
}

static void
test_awkward_data(ModelConfig config)
{
	const int counts[] = {1, 2, 15, 16, 17, 300};
	float	 *data = math_alloc((size_t) 300 * DIMS, sizeof(float));
	bool	  usable = true;

	for (int kind = 0; kind < 8; kind++)
	{
		uint64_t state = 4;

		for (int i = 0; i < 300 * DIMS; i++)
			data[i] = awkward_value(kind, i / DIMS, i % DIMS, &state);
		for (int i = 0; i < 6; i++)
		{
			for (int options = 0; options < 6; options++)
			{
				const double forgetting[] = {1.0, 0.7, 1e-310};
				Model		*model;
				Model		*other;

				config.center = (options & 1) == 0;
				config.forgetting = forgetting[options / 2];
				model = learn_rows(&config, 0, data, 0, counts[i]);
				other = learn_rows(&config, 0, data, counts[i], 300);
				if (!is_usable(model, data, counts[i]))
				{
					printf("# kind %d, %d rows, options %d\n", kind, counts[i], options);
					usable = false;
				}
				model_merge(model, other, false);
				if (!is_usable(model, data, 300))
				{
					printf("# kind %d, %d rows merged, options %d\n", kind, counts[i], options);
					usable = false;
				}
				model_free(model);
				model_free(other);
			}
		}
	}
	ok(usable, "%s: finite and usable on awkward data", name_of(&config));
	free(data);
}

/*
 * Frequent directions promise that no direction's scatter is underestimated by more than what
 * lies outside of the best bits directions, divided by bits, and none overestimated.
 */
static void
test_frequent_directions(const float *data)
{
	ModelConfig config = make_config(DIMS, BITS);
	double	   *scatter = math_alloc((size_t) DIMS * DIMS, sizeof(double));
	double	   *values = math_alloc((size_t) DIMS, sizeof(double));
	double	   *mean = math_alloc((size_t) DIMS, sizeof(double));
	const int	rows = ROWS / BITS * BITS;
	double		tail = 0.0;
	double		worst;
	double		best;
	Model	   *model;

	config.tracker = &tracker_osh;
	model = learn_rows(&config, 0, data, 0, rows);
	for (int i = 0; i < rows * DIMS; i++)
		mean[i % DIMS] += (double) data[i] / rows;
	for (int t = 0; t < rows; t++)
	{
		for (int i = 0; i < DIMS; i++)
		{
			for (int j = 0; j < DIMS; j++)
				scatter[i * DIMS + j] +=
					(data[t * DIMS + i] - mean[i]) * (data[t * DIMS + j] - mean[j]);
		}
	}
	/* scatter minus W' C W, whose eigenvalues must be between 0 and the bound */
	for (int i = 0; i < DIMS; i++)
	{
		for (int j = 0; j < DIMS; j++)
		{
			double sketched = 0.0;

			for (int k = 0; k < BITS; k++)
			{
				for (int l = 0; l < BITS; l++)
					sketched += model->basis[k * DIMS + i] * model->covariance[k * BITS + l] *
								model->basis[l * DIMS + j];
			}
			scatter[i * DIMS + j] -= ldexp(sketched, 2 * model->exponent);
		}
	}
	symmetric_eigen(DIMS, scatter, values);
	worst = values[0];
	best = values[DIMS - 1];
	tail = ldexp(model->scatter, 2 * model->exponent) / BITS;
	ok(worst > -1e-3 * tail, "frequent directions overestimate nothing: %g", worst / tail);
	ok(best < tail, "and underestimate by at most the bound: %g of it", best / tail);
	model_free(model);
	free(scatter);
	free(values);
	free(mean);
}

/* The structured projection is that of the matrix it stands for, whose rows are orthonormal. */
static void
test_hadamard(int dims, int bits)
{
	ModelConfig config = make_config(dims, bits);
	float	   *data = make_rows(50, dims, dims, 13);
	float	   *basis = math_alloc((size_t) bits * (size_t) dims, sizeof(float));
	float	   *centred = math_alloc((size_t) dims, sizeof(float));
	float	   *projected = math_alloc((size_t) bits, sizeof(float));
	double		worst = 0.0;
	double		largest = 0.0;
	double		skew = 0.0;
	Model	   *model;

	config.tracker = &tracker_hadamard;
	config.rotation = &rotation_none;
	model = learn_rows(&config, 0, data, 0, 50);
	model_basis(model, basis);
	for (int t = 0; t < 50; t++)
	{
		model_project(model, data + (size_t) t * (size_t) dims, centred, projected);
		for (int i = 0; i < bits; i++)
		{
			double sum = 0.0;

			for (int k = 0; k < dims; k++)
				sum += (double) basis[i * dims + k] * centred[k];
			worst = fmax(worst, fabs(sum - projected[i]));
			largest = fmax(largest, fabs(sum));
		}
	}
	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j < i; j++)
		{
			double sum = 0.0;

			for (int k = 0; k < dims; k++)
				sum += (double) basis[i * dims + k] * basis[j * dims + k];
			skew = fmax(skew, fabs(sum));
		}
	}
	ok(worst < 1e-5 * largest, "hadamard, %d to %d: equals its matrix", dims, bits);
	/* with a power of two nothing is cut off */
	ok(skew < ((dims & (dims - 1)) == 0 ? 1e-5 : 0.9), "and has rows at right angles: %.2g", skew);
	model_free(model);
	free(data);
	free(basis);
	free(centred);
	free(projected);
}

/* The mean distance of the rows, in the basis, from their own signs, both of length 1. */
static double
quantization_error(const Model *model, const float *rotation, const float *data)
{
	const int bits = model->config.bits;
	float	 *y = math_alloc((size_t) bits, sizeof(float));
	double	  sum = 0.0;

	for (int t = 0; t < ROWS; t++)
	{
		double absolute = 0.0;
		double squares = 0.0;

		for (int i = 0; i < bits; i++)
		{
			y[i] = 0.0F;
			for (int k = 0; k < DIMS; k++)
				y[i] +=
					(float) (model->basis[i * DIMS + k] * (data[t * DIMS + k] - model->mean[k]));
		}
		for (int i = 0; i < bits; i++)
		{
			double p = 0.0;

			for (int j = 0; j < bits; j++)
				p += rotation[i * bits + j] * y[j];
			absolute += fabs(p);
			squares += p * p;
		}
		sum += 2.0 - 2.0 * absolute / sqrt(squares * bits);
	}
	free(y);
	return sum / ROWS;
}

static void
test_rotations(const float *data)
{
	ModelConfig config = make_config(DIMS, BITS);
	Model	   *model;
	Model	   *random;

	config.rotation = &rotation_random;
	random = learn_rows(&config, 0, data, 0, ROWS);
	config.rotation = &rotation_isohash;
	model = learn_rows(&config, 0, data, 0, ROWS);
	ok(model_balance(model) < 0.05, "isohash balances the bits: %.4f", model_balance(model));
	model_free(model);
	config.rotation = &rotation_itq;
	model = learn_rows(&config, 0, data, 0, ROWS);
	{
		const double learnt = quantization_error(model, model->rotation, data);
		const double before = quantization_error(random, random->rotation, data);

		ok(learnt < 0.97 * before, "itq quantizes better than a random rotation: %.4f, %.4f",
		   learnt, before);
	}
	model_free(model);
	model_free(random);
}

int
main(void)
{
	float	   *data;
	ModelConfig config = make_config(DIMS, BITS);

	require_linalg();
	data = make_rows(ROWS, DIMS, DIMS, 12);
	for (int number = 0; combination(number, &config); number++)
	{
		test_looking(&config, data);
		test_copy(&config, data);
		test_scale(&config, data);
		test_merging(&config, data);
		test_awkward_data(config);
	}
	test_frequent_directions(data);
	test_hadamard(64, 16);
	test_hadamard(40, 40);
	test_hadamard(1, 1);
	test_rotations(data);
	free(data);
	return done_testing();
}

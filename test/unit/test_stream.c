/*
 * test_stream.c
 *		What comes in over time: long streams, rows in other units, codes made before others, and
 *		data that breaks careless arithmetic.
 */
#include <float.h>

#include "data.h"

static void
test_long_stream(const Rotation *rotation)
{
	const int	rows = 1000000;
	const int	cycle = 5000;
	float	   *data = make_rows(cycle, 24, 24, 2);
	ModelConfig config = make_config(24, 8);
	double		worst = 0.0;
	Model	   *model;

	config.rotation = rotation;
	model = model_create(&config, 0);
	for (int t = 0; t < rows; t++)
	{
		model_learn(model, data + (size_t) (t % cycle) * 24);
		if (t % 1000 == 999)
		{
			model_sync(model);
			worst = fmax(worst, basis_skew(model));
		}
	}
	/* with rounding not removed it was 3e-6 */
	ok(worst < 2.5e-6, "%s: orthonormal to %.1e over a million rows", rotation->name, worst);
	worst = model_rotation_skew(model);
	ok(worst < MAX_ROTATION_SKEW, "and so is the rotation, to %.1e", worst);
	model_free(model);
	free(data);
}

/* Codes do not change when all vectors are multiplied or shifted. */
static void
test_invariance(const Rotation *rotation, double tolerance)
{
	const int	 rows = 5000;
	const int	 dims = 48;
	const double factors[] = {1e-6, 1e6, 1e-30, 1e30, 1.0};
	const double shifts[] = {0.0, 0.0, 0.0, 0.0, 100.0};
	ModelConfig	 config = make_config(dims, 16);
	float		*data = make_rows(rows, dims, dims, 3);
	float		*other = math_alloc((size_t) rows * (size_t) dims, sizeof(float));

	config.rotation = rotation;
	for (int i = 0; i < 5; i++)
	{
		Model *model;
		Model *changed;
		double difference;

		for (int k = 0; k < rows * dims; k++)
		{
			const double shift = shifts[i] * (1 + k % dims);

			other[k] = (float) (data[k] * factors[i] + shift);
			/* a shift costs digits: without it the rows shall lack the same ones */
			if (shift != 0.0)
				data[k] = (float) (other[k] - shift);
		}
		model = learn_rows(&config, 0, data, 0, rows);
		changed = learn_rows(&config, 0, other, 0, rows);
		difference = code_difference(model, data, changed, other, rows);
		ok(difference <= tolerance, "%s: times %g plus %g: %.5f of the bits differ", rotation->name,
		   factors[i], shifts[i], difference);
		model_free(model);
		model_free(changed);
	}
	free(data);
	free(other);
}

/* The share of bits that differ between codes made on arrival and by the final model. */
static double
changed_bits(const ModelConfig *config, const float *data, int rows)
{
	const int dims = config->dims;
	const int bits = config->bits;
	Model	 *model = model_create(config, 0);
	float	 *centred = math_alloc((size_t) dims, sizeof(float));
	float	 *arrival = math_alloc((size_t) rows * (size_t) bits, sizeof(float));
	float	 *final = math_alloc((size_t) bits, sizeof(float));
	double	  changed = 0.0;

	for (int t = 0; t < rows; t++)
	{
		if (t >= bits)
		{
			model_sync(model);
			model_project(model, data + t * dims, centred, arrival + t * bits);
		}
		model_learn(model, data + t * dims);
	}
	model_sync(model);
	for (int t = bits; t < rows; t++)
	{
		model_project(model, data + t * dims, centred, final);
		for (int i = 0; i < bits; i++)
			changed += (arrival[t * bits + i] >= 0.0F) != (final[i] >= 0.0F);
	}
	model_free(model);
	free(centred);
	free(arrival);
	free(final);
	return changed / ((double) (rows - bits) * bits);
}

/*
 * Where all directions vary alike, the paper's rotation jumps most, and the other two must
 * not.
 */
static void
test_stability(void)
{
	const int	rows = 10000;
	const int	dims = 60;
	float	   *data = math_alloc((size_t) rows * (size_t) dims, sizeof(float));
	ModelConfig config = make_config(dims, 32);
	uint64_t	state = 11;
	double		paper;
	double		stable;
	double		neighbour;

	for (int i = 0; i < rows * dims; i++)
		data[i] = (float) (next_normal(&state) * (1.0 + 0.01 * (i % dims)));
	stable = changed_bits(&config, data, rows);
	config.stable = false;
	paper = changed_bits(&config, data, rows);
	config.rotation = &rotation_neighbour;
	neighbour = changed_bits(&config, data, rows);
	ok(stable < paper / 2.0, "equal variances: %.4f of the bits change, %.4f by Algorithm 1",
	   stable, paper);
	ok(neighbour < paper / 2.0, "%.4f with neighbour", neighbour);
	free(data);
}

static bool
is_usable(const Model *model, const float *data, int rows)
{
	const int bits = model->config.bits;
	bool	  finite = isfinite(model->scatter) && isfinite(model_balance(model));

	for (int i = 0; i < bits * bits; i++)
		finite &= isfinite(model->covariance[i]) && isfinite(model->rotation[i]);
	/* NaN would compare as a difference between the model and itself */
	return finite && basis_skew(model) < 1e-5 && model_rotation_skew(model) < MAX_ROTATION_SKEW &&
		   code_difference(model, data, model, data, rows) == 0.0;
}

/* value(t, k) of row t for every kind of awkward data */
static float
awkward_value(const char *kind, int t, int k, uint64_t *state)
{
	const double normal = next_normal(state);

	if (strcmp(kind, "constant rows") == 0)
		return 7.5F;
	if (strcmp(kind, "zero rows") == 0)
		return 0.0F;
	if (strcmp(kind, "two different rows") == 0)
		return t % 2 == 0 ? (float) k : 1.0F;
	if (strcmp(kind, "rank 3") == 0)
		return (float) ((t * 7 % 11) * k + (t * 5 % 13) * (k % 3) + (t * 3 % 17) * (k % 5));
	if (strcmp(kind, "denormal numbers") == 0)
		return (float) (normal * 1e-41);
	if (strcmp(kind, "the largest numbers") == 0)
		return normal > 0.0 ? FLT_MAX : -FLT_MAX;
	if (strcmp(kind, "small, then the largest") == 0)
		return (float) (normal * (t < 100 ? 1e-30 : 1e37));
	if (strcmp(kind, "the largest, then small") == 0)
		return (float) (normal * (t < 100 ? 1e37 : 1e-30));
	if (strcmp(kind, "one element only") == 0)
		return k == 5 ? (float) normal : 0.0F;
	return (float) normal;
}

static void
test_awkward_data(void)
{
	const char *const kinds[] = {"constant rows",			"zero rows",
								 "two different rows",		"rank 3",
								 "denormal numbers",		"the largest numbers",
								 "small, then the largest", "the largest, then small",
								 "one element only",		"normal numbers"};
	const int		  counts[] = {1, 2, 5, 16, 17, 300};
	const int		  dims = 20;
	float			 *data = math_alloc((size_t) 300 * (size_t) dims, sizeof(float));

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
	{
		uint64_t state = 4;
		bool	 usable = true;

		for (int t = 0; t < 300; t++)
		{
			for (int k = 0; k < dims; k++)
				data[t * dims + k] = awkward_value(kinds[kind], t, k, &state);
		}
		for (int i = 0; i < 6; i++)
		{
			for (int options = 0; options < 8; options++)
			{
				ModelConfig config = make_config(dims, options & 1 ? 16 : dims);
				Model	   *model;

				config.center = (options & 2) == 0;
				config.forgetting = options & 4 ? 0.7 : 1.0;
				config.stable = (options & 1) == 0;
				model = learn_rows(&config, 0, data, 0, counts[i]);
				usable &= is_usable(model, data, counts[i]);
				model_free(model);
			}
		}
		ok(usable, "%s: finite, orthonormal, usable", kinds[kind]);
	}
	free(data);
}

int
main(void)
{
	require_linalg();
	test_long_stream(&rotation_unifdiag);
	test_long_stream(&rotation_neighbour);
	test_invariance(&rotation_unifdiag, 0.001);
	/* which rows are near may turn on rounding, and a step of the rotation with it */
	test_invariance(&rotation_neighbour, 0.003);
	test_stability();
	test_awkward_data();
	return done_testing();
}

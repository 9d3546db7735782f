/*
 * test_merge.c
 *		Merging models, and the expected drift between two.
 */
#include "data.h"

/* share of the rows' variance about their mean that lies in the model's subspace */
static double
explained(const Model *model, const float *data, int rows)
{
	const int dims = model->config.dims;
	double	 *mean = math_alloc((size_t) dims, sizeof(double));
	double	  all = 0.0;
	double	  inside = 0.0;

	for (int i = 0; i < rows * dims; i++)
		mean[i % dims] += (double) data[i] / rows;
	for (int t = 0; t < rows; t++)
	{
		for (int k = 0; k < dims; k++)
			all += pow(data[t * dims + k] - mean[k], 2);
		for (int i = 0; i < model->config.bits; i++)
		{
			double y = 0.0;

			for (int k = 0; k < dims; k++)
				y += model->basis[i * dims + k] * (data[t * dims + k] - mean[k]);
			inside += y * y;
		}
	}
	free(mean);
	return inside / all;
}

static double
relative_difference(double a, double b)
{
	return fabs(a - b) / fmax(fabs(a), 1e-300);
}

static bool
same_summary(const Model *a, const Model *b)
{
	double worst =
		relative_difference(ldexp(a->scatter, 2 * a->exponent), ldexp(b->scatter, 2 * b->exponent));

	for (int k = 0; k < a->config.dims; k++)
		worst = fmax(worst, relative_difference(a->mean[k], b->mean[k]));
	return a->rows == b->rows && worst < 1e-6;
}

static void
test_parts(const Rotation *rotation, int dims, int bits, int rank, const char *what)
{
	const int	rows = 8000;
	const int	parts = 4;
	ModelConfig config = make_config(dims, bits);
	float	   *data = make_rows(rows, dims, rank, 6);
	Model	   *serial;
	Model	   *merged;
	double		ratio;

	config.rotation = rotation;
	serial = learn_rows(&config, 0, data, 0, rows);
	merged = learn_rows(&config, 0, data, 0, rows / parts);
	for (int i = 1; i < parts; i++)
	{
		Model *part = learn_rows(&config, 0, data, i * rows / parts, (i + 1) * rows / parts);

		model_merge(merged, part, false);
		model_free(part);
	}
	ratio = explained(merged, data, rows) / explained(serial, data, rows);
	ok(ratio > 0.99, "%s: four parts explain %.4f of what the whole does", what, ratio);
	ok(same_summary(serial, merged), "%s: rows, mean and total variance are the same", what);
	ok(basis_skew(merged) < 1e-5 && model_rotation_skew(merged) < MAX_ROTATION_SKEW,
	   "%s: orthonormal", what);
	ok(merged->rank == (rank < bits ? rank : bits), "%s: rank %d", what, merged->rank);
	model_free(serial);
	model_free(merged);
	free(data);
}

static void
test_symmetry(const Rotation *rotation, int rows_a, int rows_b)
{
	ModelConfig config = make_config(30, 8);
	float	   *data = make_rows(rows_a + rows_b, 30, 30, 7);
	double		worst = 0.0;
	Model	   *ab;
	Model	   *ba;
	Model	   *a;
	Model	   *b;

	config.rotation = rotation;
	ab = learn_rows(&config, 0, data, 0, rows_a);
	ba = learn_rows(&config, 0, data, rows_a, rows_a + rows_b);
	a = model_copy(ab);
	b = model_copy(ba);
	model_merge(ab, b, false);
	model_merge(ba, a, false);
	for (int i = 0; i < 8 * 30; i++)
		worst = fmax(worst, fabs((double) ab->basis[i] - ba->basis[i]));
	ok(worst < 1e-5 && same_summary(ab, ba), "%d and %d rows: a with b is b with a", rows_a,
	   rows_b);
	ok(code_difference(ab, data, ba, data, rows_a + rows_b) < 0.001, "and gives the same codes");
	model_free(ab);
	model_free(ba);
	model_free(a);
	model_free(b);
	free(data);
}

/* Merging a little into much keeps the codes of the larger one. */
static void
test_anchor(const Rotation *rotation, bool anchored, int rows_a, int rows_b)
{
	ModelConfig config = make_config(60, 16);
	float	   *data = make_rows(rows_a + rows_b, 60, 60, 8);
	Model	   *model;
	Model	   *before;
	Model	   *part;
	double		difference;

	config.rotation = rotation;
	model = learn_rows(&config, 0, data, 0, rows_a);
	before = model_copy(model);
	part = learn_rows(&config, 0, data, rows_a, rows_a + rows_b);
	model_merge(model, part, anchored);
	difference = code_difference(before, data, model, data, rows_a);
	ok(difference < 0.02, "%d rows merged into %d%s: %.4f of the bits change", rows_b, rows_a,
	   anchored ? ", anchored" : "", difference);
	model_free(model);
	model_free(before);
	model_free(part);
	free(data);
}

/* Rows are kept for the rotation while it turns: not in one that has settled by being merged. */
static void
test_settled(void)
{
	ModelConfig config = make_config(30, 8);
	float	   *data = make_rows(5000, 30, 30, 16);
	Model	   *a;
	Model	   *b;

	config.rotation = &rotation_neighbour;
	a = learn_rows(&config, 0, data, 0, 3000);
	b = learn_rows(&config, 0, data, 3000, 5000);
	ok(a->recent_rows > 0 && b->recent_rows > 0, "young models remember rows");
	model_merge(a, b, false);
	ok(a->recent_rows == 0 && a->recent == NULL, "merged to an old one they do not");
	model_free(a);
	model_free(b);
	free(data);
}

/* What the sums of signs are made of is forgotten with the rows, too. */
static void
test_forgotten_signs(void)
{
	ModelConfig config = make_config(30, 8);
	float	   *data = make_rows(3000, 30, 30, 17);
	Model	   *a;
	Model	   *b;
	double		before = 0.0;
	double		after = 0.0;

	config.rotation = &rotation_itq;
	config.forgetting = 0.999;
	a = learn_rows(&config, 0, data, 0, 1000);
	b = learn_rows(&config, 0, data, 1000, 3000);
	for (int i = 0; i < 8 * 8; i++)
		before += pow(ldexp(a->signs[i], a->exponent), 2);
	model_merge(a, b, true);
	for (int i = 0; i < 8 * 8; i++)
		after += pow(ldexp(a->signs[i], a->exponent), 2);
	/* each time that R follows, a tenth goes as well */
	ok(fabs(sqrt(after / before) / (0.9 * pow(0.999, 2000)) - 1.0) < 1e-6,
	   "sums of signs are forgotten by as much as rows: %.4f", sqrt(after / before));
	model_free(a);
	model_free(b);
	free(data);
}

static void
test_empty(void)
{
	const ModelConfig config = make_config(30, 8);
	float			 *data = make_rows(100, 30, 30, 9);
	Model			 *model = learn_rows(&config, 0, data, 0, 100);
	Model			 *copy = model_copy(model);
	Model			 *empty = model_create(&config, 0);
	Model			 *first_empty = model_create(&config, 0);
	Model			 *second_empty = model_create(&config, 0);

	model_merge(copy, empty, false);
	ok(copy->rows == 100 && code_difference(copy, data, model, data, 100) == 0.0,
	   "an empty model changes nothing");
	model_merge(empty, copy, false);
	ok(same_summary(empty, model) && code_difference(empty, data, model, data, 100) == 0.0,
	   "merging into an empty model gives the other");
	model_merge(first_empty, second_empty, false);
	ok(first_empty->rows == 0, "two empty models are empty");
	model_free(model);
	model_free(copy);
	model_free(empty);
	model_free(first_empty);
	model_free(second_empty);
	free(data);
}

static void
test_drift(const Rotation *rotation)
{
	const int	dims = 60;
	const int	rows = 12000;
	ModelConfig config = make_config(dims, 16);
	float	   *data = make_rows(rows, dims, dims, 10);
	Model	   *after;

	config.rotation = rotation;
	/* a shift of the mean as well as other directions */
	for (int i = 2000 * dims; i < rows * dims; i++)
		data[i] += (float) (0.3 * (i % dims) / dims);
	after = learn_rows(&config, 0, data, 0, rows);
	ok(model_drift(after, after) < 1e-3, "no drift from a model to itself");
	for (int first = 100; first < rows; first *= 4)
	{
		Model		*before = learn_rows(&config, 0, data, 0, first);
		const double expected = model_drift(before, after);
		const double measured = code_difference(before, data, after, data, rows);

		ok(expected / measured < 1.5 && measured / expected < 1.5,
		   "after %d rows: expected drift %.4f, measured %.4f", first, expected, measured);
		model_free(before);
	}
	model_free(after);
	free(data);
}

int
main(void)
{
	const Rotation *const tried[] = {&rotation_unifdiag, &rotation_neighbour};

	require_linalg();
	for (int i = 0; i < 2; i++)
	{
		const Rotation *rotation = tried[i];

		printf("# %s\n", rotation->name);
		test_parts(rotation, 50, 16, 50, "full rank");
		test_parts(rotation, 50, 16, 16, "rank of the basis");
		test_parts(rotation, 50, 16, 5, "rank 5");
		test_symmetry(rotation, 1000, 3000);
		test_symmetry(rotation, 1000, 1000);
		test_symmetry(rotation, 3, 4);
		test_anchor(rotation, false, 5000, 500);
		test_anchor(rotation, true, 3000, 3000);
		test_drift(rotation);
	}
	test_settled();
	test_forgotten_signs();
	test_empty();
	return done_testing();
}

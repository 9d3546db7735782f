/*
 * test_sketch.c
 *		Sketches against plain sums in double precision: codes, numbers, estimates and their
 *		standard errors, and ranks; and rows that nobody would expect.
 */
#include "sketches.h"

/* queries whose errors are measured */
#define QUERIES 40

/* The value that a code has for a projection: an odd number. */
static int
code_value(const SketchShape *shape, const uint64_t *words, int i)
{
	const int segment = shape->words / shape->levels;
	int		  value = 0;

	for (int level = 0; level < shape->levels; level++)
		value = 2 * value + (words[level * segment + i / 64] >> (i % 64) & 1 ? 1 : -1);
	return value;
}

/* Is it the largest n there is, which stands for all larger ones? */
static bool
is_cut(uint32_t number)
{
	return number >> 19 == 8191;
}

/* Codes and numbers of some rows by the formulae; counts what is wrong. */
static int
wrong_sketches(const Sketches *made)
{
	/* squared cosines of normal deviates with these rounded to 1 to 4 bits, and some less */
	static const double		least_cosine[] = {0.0, 0.80, 0.90, 0.97};
	const SketchParameters *parameters = &made->model->parameters;
	const SketchShape	   *shape = &parameters->shape;
	const double			scale = ldexp(1.0, -parameters->exponent);
	int						wrong = 0;

	for (int t = 0; t < made->count; t += 50)
	{
		const float	   *row = made->rows + (size_t) t * (size_t) made->dims;
		const uint64_t *words = made->words + (size_t) t * (size_t) shape->words;
		const uint32_t	number = made->numbers[t];
		const double	f = ldexp(1.0 + (number >> 8 & 127) / 128.0,
								  (int) (number >> 15 & 15) - 15 + parameters->f_exponent);
		const double	n_stored = ldexp(1.0 + (number >> 19 & 255) / 256.0,
										 (int) (number >> 27) - 31 + parameters->n_exponent);
		const double	e = ldexp(1.0 + (number & 15) / 16.0,
								  (int) (number >> 4 & 15) - 15 + parameters->e_exponent);
		double			length = 0.0;
		double			with_mean = 0.0;
		double			inside = 0.0;
		double			product = 0.0;
		double			square = 0.0;
		double			n;
		double			u2;
		double			v2;
		double			error;

		for (int k = 0; k < made->dims; k++)
		{
			const double centred = scale * ((double) row[k] - made->model->mean[k]);

			length += centred * centred;
			with_mean += centred * scale * made->model->mean[k];
		}
		for (int i = 0; i < shape->projections; i++)
		{
			const int value = code_value(shape, words, i);
			double	  p = 0.0;

			for (int k = 0; k < made->dims; k++)
				p += (double) made->model->projection[(size_t) i * (size_t) made->dims + k] *
					 scale * ((double) row[k] - made->model->mean[k]);
			inside += p * p;
			product += p * value;
			square += value * value;
			/* signs are right, but of projections that rounding may have turned */
			wrong += fabs(p) > 1e-5 * sqrt(length) && (p > 0.0) != (value > 0);
		}
		n = parameters->metric == SKETCH_IP ? -with_mean : length;
		u2 = length * ((inside * square / (product * product) - 1.0 + 0.0117) /
						   fmax(shape->projections - 1, 1.0) +
					   2.6e-6);
		v2 = shape->projections < made->dims ? fmax(length - inside, 0.0) : 0.0;
		error = sqrt(u2 + parameters->lambda * v2);
		/* what f's rounding does to near queries is made good */
		if (parameters->metric != SKETCH_IP)
			n *= 2.0 * f * product / sqrt(inside * length) - 1.0;
		n -= parameters->n_low;
		wrong +=
			!(n_stored <= n * 1.00001 + 1e-9) || !(n_stored >= n / 1.004 - 1e-9 || is_cut(number));
		wrong += !(fabs(f * product / sqrt(inside * length) - 1.0) <= 1.0 / 256 + 1e-4);
		wrong += !(e >= error * 0.999 &&
				   e <= fmax(error * 1.07, ldexp(1.001, parameters->e_exponent - 15)));
		wrong += !(product * product >= least_cosine[shape->levels - 1] * square * inside) &&
				 made->dims > 8;
		for (int i = shape->projections; i < 64 * (shape->words / shape->levels); i++)
			wrong += words[i / 64] >> (i % 64) & 1;
	}
	return wrong;
}

/* Errors of estimates divided by their standard errors: mean, standard deviation, the largest. */
typedef struct Errors
{
	double mean;
	double deviation;
	double largest;
} Errors;

static Errors
measure_errors(const Sketches *made, const float *queries)
{
	const SketchParameters *parameters = &made->model->parameters;
	double					sum = 0.0;
	double					squares = 0.0;
	Errors					errors = {.largest = 0.0};

	for (int j = 0; j < QUERIES; j++)
	{
		const float *row = queries + (size_t) j * (size_t) made->dims;
		SketchQuery *query = sketch_query(made->model, row, 1.0);

		for (int t = 0; t < made->count; t++)
		{
			const double rounding =
				query->unit * query->n_weight *
				ldexp(1.0, (int) (made->numbers[t] >> 27) - 31 - 8 + parameters->n_exponent);
			double estimate;
			double error;

			sketch_estimate(query, made->words + (size_t) t * (size_t) parameters->shape.words,
							made->numbers[t], &estimate, &error);
			estimate -= true_measure(
				parameters->metric, made->rows + (size_t) t * (size_t) made->dims, row, made->dims);
			/* n is rounded down, which matters where there is hardly any other error, and cut */
			if (estimate < 0.0)
				estimate = is_cut(made->numbers[t]) ? 0.0 : fmin(estimate + rounding, 0.0);
			sum += estimate / error;
			squares += estimate / error * (estimate / error);
			errors.largest = fmax(errors.largest, fabs(estimate / error));
		}
		math_free(query);
	}
	errors.mean = sum / QUERIES / made->count;
	errors.deviation = sqrt(squares / QUERIES / made->count - errors.mean * errors.mean);
	return errors;
}

/* Rows as queries, of which the row itself is not at the distance 0, or less as n is rounded down. */
static int
wrong_selves(const Sketches *made)
{
	const SketchParameters *parameters = &made->model->parameters;
	int						wrong = 0;

	for (int t = 0; t < made->count; t += 20)
	{
		SketchQuery *query =
			sketch_query(made->model, made->rows + (size_t) t * (size_t) made->dims, 1.0);
		double estimate;
		double error;

		sketch_estimate(query, made->words + (size_t) t * (size_t) parameters->shape.words,
						made->numbers[t], &estimate, &error);
		wrong +=
			!(estimate < query->unit * (1e-4 * query->base + 1e-6)) ||
			!(estimate > -query->unit * (query->base / 200.0 + 1e-6) || is_cut(made->numbers[t]));
		math_free(query);
	}
	return wrong;
}

/* Ranks by a kernel, for a query and all rows; counts those that are not the estimate's. */
static int
wrong_ranks(const Sketches *made, const float *row, double allowed)
{
	const SketchShape *shape = &made->model->parameters.shape;
	SketchQuery		  *query = sketch_query(made->model, row, allowed);
	HammingMatch *matches = math_alloc((size_t) made->count + MATCH_ROOM, sizeof(HammingMatch));
	uint64_t *columns = math_alloc((size_t) made->count * (size_t) shape->words, sizeof(uint64_t));
	const uint8_t **starts = math_alloc((size_t) shape->words, sizeof(uint8_t *));
	SketchColumns	sketches = {.columns = starts,
								.ncolumns = (size_t) shape->words,
								.numbers = (const uint8_t *) made->numbers,
								.count = (size_t) made->count,
								.score = &query->score,
								.radius = SKETCH_RANKS,
								.payload = (const uint8_t *) columns};
	int				wrong = 0;

	for (int column = 0; column < shape->words; column++)
	{
		starts[column] = (const uint8_t *) (columns + (size_t) column * (size_t) made->count);
		for (int t = 0; t < made->count; t++)
			columns[(size_t) column * (size_t) made->count + t] =
				made->words[(size_t) t * (size_t) shape->words + column];
	}
	wrong += sketch_kernel_best()->within(&sketches, matches) != (size_t) made->count;
	for (int t = 0; t < made->count; t++)
	{
		const uint32_t rank = matches[t].distance;
		double		   estimate;
		double		   error;
		double		   expected;
		double		   rounding;

		sketch_estimate(query, made->words + (size_t) t * (size_t) shape->words, made->numbers[t],
						&estimate, &error);
		expected = (estimate - allowed * error - query->least) * query->ranks_per_unit;
		expected = fmin(sqrt(fmax(expected, 0.0)), SKETCH_RANKS);
		/* of floats up to the square of the last rank, seen in the rank */
		rounding = fmin(100.0 / fmax(expected, 1.0), 10.0);
		if (made->numbers[t] == SKETCH_UNKNOWN || !sketch_query_usable(query))
			expected = 0.0;
		wrong += !(fabs(rank + 0.5 - expected) <= 0.5 + rounding) && rank != SKETCH_RANKS;
		/* a rank is a bound from below */
		wrong += rank > 0 && rank < SKETCH_RANKS &&
				 !(sketch_bound(query, rank) <=
				   estimate - allowed * error + rounding * 2.0 * rank / query->ranks_per_unit);
	}
	math_free(query);
	math_free(matches);
	math_free(columns);
	math_free(starts);
	return wrong;
}

/* Everything for one kind of vectors and one shape of codes. */
static void
test_metric(int dims, int bits, int rank, SketchMetric metric)
{
	float	*data = make_rows(ROWS + QUERIES, dims, rank, 7);
	Sketches made;
	Errors	 errors;
	int		 wrong = 0;

	for (int t = 0; t < ROWS + QUERIES && metric == SKETCH_COSINE; t++)
		(void) sketch_normalise(data + (size_t) t * (size_t) dims, dims);
	made = make_sketches(data, ROWS, dims, bits, metric);
	ok(sketch_parameters_valid(&made.model->parameters), "%s, %d dimensions, %d bits: valid",
	   metric_names[metric], dims, bits);
	ok(wrong_sketches(&made) == 0, "%s, %d dimensions, %d bits: codes and numbers",
	   metric_names[metric], dims, bits);
	for (int j = 0; j < QUERIES; j += 8)
		wrong += wrong_ranks(&made, data + (size_t) (ROWS + j) * (size_t) dims, j % 3 - 0.5);
	ok(wrong == 0, "%s, %d dimensions, %d bits: ranks are bounds", metric_names[metric], dims,
	   bits);
	errors = measure_errors(&made, data + (size_t) ROWS * (size_t) dims);
	/*
	 * A bit or two leave much outside, of which the error takes all directions to have the same
	 * share; in one dimension there is none but rounding.
	 */
	ok((fabs(errors.mean) < 0.15 && errors.deviation < (bits < 8 ? 7.0 : 1.2) &&
		errors.deviation > 0.5 && errors.largest < (bits < 8 ? 40.0 : 6.0)) ||
		   dims == 1,
	   "%s, %d dimensions, %d bits: errors of %.2f +- %.2f, at most %.1f", metric_names[metric],
	   dims, bits, errors.mean, errors.deviation, errors.largest);
	/* rounding may turn a projection of the query that is nearly between two numbers */
	ok(metric == SKETCH_IP || wrong_selves(&made) <= 1,
	   "%s, %d dimensions, %d bits: a row is at no distance from itself", metric_names[metric],
	   dims, bits);
	free_sketches(&made);
}

static void
test_shapes(void)
{
	static const int cases[][5] = {
		/* dims, bits, projections, levels, words */
		{960, 256, 256, 1, 4}, {960, 100, 100, 1, 2}, {784, 784, 832, 1, 13}, {100, 256, 128, 2, 4},
		{100, 100, 128, 1, 2}, {100, 192, 192, 1, 3}, {50, 256, 64, 4, 4},	  {50, 640, 128, 4, 8},
		{1, 1, 64, 1, 1},	   {1, 64, 64, 1, 1},	  {3, 2, 2, 1, 1},		  {300, 512, 512, 1, 8},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const SketchShape shape = sketch_shape(cases[i][0], cases[i][1]);

		ok(shape.projections == cases[i][2] && shape.levels == cases[i][3] &&
			   shape.words == cases[i][4],
		   "%d dimensions, %d bits: %d projections of %d bits in %d words", cases[i][0],
		   cases[i][1], shape.projections, shape.levels, shape.words);
	}
}

/* Estimates and ranks that are numbers, for rows and queries of all sizes. */
static bool
all_finite(const Sketches *made, const float *row)
{
	SketchQuery *query = sketch_query(made->model, row, 1.5);
	bool		 finite = wrong_ranks(made, row, 1.5) == 0;

	for (int t = 0; t < made->count; t++)
	{
		double estimate;
		double error;

		sketch_estimate(query,
						made->words + (size_t) t * (size_t) made->model->parameters.shape.words,
						made->numbers[t], &estimate, &error);
		finite &= isfinite(estimate) && isfinite(error) && error >= 0.0;
	}
	math_free(query);
	return finite;
}

static void
test_strange_rows(SketchMetric metric)
{
	static const float sizes[] = {1.0F, 1e-30F, 1e-38F, 1e30F, 3e38F, 0.0F};
	const int		   dims = 70;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
	{
		/* all alike, and with one other row of any size; zero rows; queries of any size */
		float	*rows = math_alloc((size_t) 40 * (size_t) dims, sizeof(float));
		Sketches made;
		bool	 finite = true;

		for (int k = 0; k < 40 * dims; k++)
			rows[k] = k < 30 * dims ? sizes[s] : 0.0F;
		made = make_sketches(rows, 30, dims, 64, metric);
		made.count = 40;
		finite &= sketch_parameters_valid(&made.model->parameters);
		for (size_t q = 0; q < sizeof(sizes) / sizeof(sizes[0]); q++)
		{
			float		   row[70];
			uint64_t	   words[2];
			uint32_t	   number;
			SketchEncoder *encoder = sketch_encoder_create(made.model, 1);

			for (int k = 0; k < dims; k++)
				row[k] = k % 2 == 0 ? sizes[q] : -sizes[q];
			if (metric != SKETCH_COSINE || sketch_normalise(row, dims))
			{
				made.count = 30;
				finite &= all_finite(&made, row);
				sketch_encode(encoder, row, 1, words, &number);
				made.words[0] = words[0];
				made.numbers[0] = number;
				finite &= all_finite(&made, row);
			}
			sketch_encoder_free(encoder);
		}
		ok(finite, "%s: rows all of %g", metric_names[metric], (double) sizes[s]);
		free_sketches(&made);
	}
}

static void
test_special_numbers(void)
{
	const int	   dims = 20;
	float		  *rows = make_rows(500, dims, 10, 3);
	Sketches	   made = make_sketches(rows, 500, dims, 128, SKETCH_COSINE);
	SketchEncoder *encoder = sketch_encoder_create(made.model, 1);
	SketchQuery	  *query = sketch_query(made.model, rows, 2.0);
	float		   zero[20] = {0.0F};
	uint64_t	   words[2] = {1, 1};
	uint32_t	   number;
	double		   far;
	double		   estimate;
	double		   error;
	bool		   last = true;

	ok(!sketch_normalise(zero, dims), "a zero row cannot be made one long");
	sketch_encode(encoder, zero, 1, words, &number);
	ok(number == SKETCH_FAR, "a zero row is far by cosine distance");
	sketch_estimate(query, words, number, &far, &error);
	for (int t = 0; t < 250; t++)
	{
		sketch_estimate(query, made.words + (size_t) t * 2, made.numbers[t], &estimate, &error);
		/* as far as the farthest but for those on the other side */
		last &= made.numbers[t] != SKETCH_UNKNOWN && estimate - 2.0 * error < far * 2.0;
	}
	ok(last, "no row is much farther than far");
	for (int k = 0; k < dims; k++)
		zero[k] = 1e30F;
	made.model->parameters.metric = SKETCH_L2;
	sketch_encode(encoder, zero, 1, words, &number);
	ok(number == SKETCH_UNKNOWN, "a row beyond all scales is unknown");
	sketch_encoder_free(encoder);
	math_free(query);
	free_sketches(&made);
}

/* One row at a time gives the sketches that blocks give. */
static void
test_single_rows(void)
{
	const int	   dims = 96;
	Sketches	   made = make_sketches(make_rows(500, dims, 40, 3), 500, dims, 64, SKETCH_L2);
	SketchEncoder *encoder = sketch_encoder_create(made.model, 1);
	int			   different = 0;

	for (int t = 0; t < 500; t++)
	{
		uint64_t word;
		uint32_t number;

		sketch_encode(encoder, made.rows + (size_t) t * (size_t) dims, 1, &word, &number);
		different += __builtin_popcountll(word ^ made.words[t]);
		different += number >> 19 != made.numbers[t] >> 19;
	}
	ok(different <= 2, "one row at a time: %d bits differ by rounding", different);
	sketch_encoder_free(encoder);
	free_sketches(&made);
}

/* A sketch made in a block is found to be that of its row alone, and no other row's is. */
static void
test_matches(int dims, int bits, SketchMetric metric)
{
	const int count = 2000;
	Sketches  made = make_sketches(make_rows(count, dims, dims / 2, 5), count, dims, bits, metric);
	const int words = made.model->parameters.shape.words;
	SketchEncoder *encoder = sketch_encoder_create(made.model, 1);
	int			   own = 0;
	int			   others = 0;

	for (int t = 0; t < count; t++)
	{
		const float *row = made.rows + (size_t) t * (size_t) dims;
		const int	 other = (t + 1) % count;

		own +=
			sketch_matches(encoder, row, made.words + (size_t) t * (size_t) words, made.numbers[t]);
		others += sketch_matches(encoder, row, made.words + (size_t) other * (size_t) words,
								 made.numbers[other]);
	}
	ok(own == count && others == 0, "%d dimensions, %d bits, %s: %d of %d rows match, %d others",
	   dims, bits, metric_names[metric], own, count, others);
	sketch_encoder_free(encoder);
	free_sketches(&made);
}

int
main(void)
{
	require_linalg();
	test_shapes();
	test_matches(16, 256, SKETCH_L2);
	test_matches(96, 64, SKETCH_L2);
	test_matches(96, 256, SKETCH_COSINE);
	test_matches(64, 64, SKETCH_IP);
	for (SketchMetric metric = SKETCH_L2; metric <= SKETCH_IP; metric++)
	{
		test_metric(200, 64, 200, metric);
		test_metric(200, 100, 40, metric);
		test_metric(100, 128, 100, metric);
		test_metric(100, 256, 100, metric);
		test_metric(60, 192, 60, metric);
		test_metric(50, 256, 50, metric);
		test_metric(10, 300, 10, metric);
		test_metric(2, 1, 2, metric);
		test_metric(200, 1, 200, metric);
		test_strange_rows(metric);
	}
	test_metric(1, 1, 1, SKETCH_L2);
	test_metric(1, 256, 1, SKETCH_L2);
	test_special_numbers();
	test_single_rows();
	return done_testing();
}

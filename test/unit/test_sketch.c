/*
 * test_sketch.c
 *		Sketches against plain sums in double precision: codes, numbers, estimates and their
 *		standard errors, and ranks; and rows that nobody would expect.
 */
#include "sketches.h"

/* queries whose errors are measured */
#define QUERIES 40

static const SketchErrors one_error = {1.0F, 1.0F};

/* The value that a code has for a projection, by so many of its bits: an odd number. */
static int
code_value(const SketchShape *shape, const uint64_t *words, int levels, int i)
{
	int value = 0;

	for (int level = 0; level < levels; level++)
		value = 2 * value + (words[level * shape->words + i / 64] >> (i % 64) & 1 ? 1 : -1);
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
	const SketchParameters *parameters = &made->model->parameters;
	const SketchShape	   *shape = &parameters->shape;
	const double			scale = ldexp(1.0, -parameters->exponent);
	int						wrong = 0;

	for (int t = 0; t < made->count; t += 50)
	{
		const float	   *row = made->rows + (size_t) t * (size_t) made->dims;
		const uint64_t *words = code_of(made, t);
		SketchFine		fine;
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
		double			fine_product = 0.0;
		double			fine_square = 0.0;
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
			const int sign = code_value(shape, words, 1, i);
			const int value = code_value(shape, words, SKETCH_LEVELS, i);
			double	  p = 0.0;

			for (int k = 0; k < made->dims; k++)
				p += (double) made->model->projection[(size_t) i * (size_t) made->dims + k] *
					 scale * ((double) row[k] - made->model->mean[k]);
			inside += p * p;
			product += p * sign;
			fine_product += p * value;
			fine_square += value * value;
			/* signs are right, but of projections that rounding may have turned */
			wrong += fabs(p) > 1e-5 * sqrt(length) && (p > 0.0) != (sign > 0);
		}
		n = parameters->metric == SKETCH_IP ? -with_mean : length;
		u2 = length * ((inside * shape->projections / (product * product) - 1.0 + 0.0117) /
						   fmax(shape->projections - 1, 1.0) +
					   2.6e-6);
		v2 = shape->projections < made->dims ? fmax(length - inside, 0.0) : 0.0;
		error = sqrt(u2 + parameters->lambda * v2);
		memcpy(&fine, words + SKETCH_LEVELS * shape->words, sizeof(fine));
		wrong += !(fabs(fine.n - n) <= 1e-5 * (length + fabs(n)));
		wrong += !(fabs(fine.f * fine_product / sqrt(inside * length) - 1.0) <= 1e-4);
		wrong +=
			!(fabs(fine.inside -
				   length * (inside * fine_square / (fine_product * fine_product) - 1.0 + 0.0011) /
					   fmax(shape->projections - 1, 1.0)) <= 1e-5 * length);
		wrong += !(fabs(fine.outside - v2) <= 1e-5 * length);
		/* of normal deviates rounded to three bits the squared cosine is .965 */
		wrong += !(fine_product * fine_product >= 0.9 * fine_square * inside) && made->dims > 8;
		/* what f's rounding does to near queries is made good */
		if (parameters->metric != SKETCH_IP)
			n *= 2.0 * f * product / sqrt(inside * length) - 1.0;
		n -= parameters->n_low;
		wrong +=
			!(n_stored <= n * 1.00001 + 1e-9) || !(n_stored >= n / 1.004 - 1e-9 || is_cut(number));
		wrong += !(fabs(f * product / sqrt(inside * length) - 1.0) <= 1.0 / 256 + 1e-4);
		wrong += !(e >= error * 0.999 &&
				   e <= fmax(error * 1.07, ldexp(1.001, parameters->e_exponent - 15)));
		for (int i = shape->projections; i < 64 * shape->words; i++)
		{
			for (int level = 0; level < SKETCH_LEVELS; level++)
				wrong += words[level * shape->words + i / 64] >> (i % 64) & 1;
		}
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
measure_errors(const Sketches *made, const float *queries, bool is_fine)
{
	const SketchParameters *parameters = &made->model->parameters;
	double					sum = 0.0;
	double					squares = 0.0;
	Errors					errors = {.largest = 0.0};

	for (int j = 0; j < QUERIES; j++)
	{
		const float *row = queries + (size_t) j * (size_t) made->dims;
		SketchQuery *query = sketch_query(made->model, row, one_error);

		for (int t = 0; t < made->count; t++)
		{
			const double rounding =
				query->unit * query->n_weight *
				ldexp(1.0, (int) (made->numbers[t] >> 27) - 31 - 8 + parameters->n_exponent);
			const SketchEstimate estimate =
				is_fine ? sketch_fine_estimate(query, code_of(made, t))
						: sketch_coarse_estimate(query, code_of(made, t), made->numbers[t]);
			double excess =
				estimate.measure - true_measure(parameters->metric,
												made->rows + (size_t) t * (size_t) made->dims, row,
												made->dims);

			/* n is rounded down, which matters where there is hardly any other error, and cut */
			if (excess < 0.0 && !is_fine)
				excess = is_cut(made->numbers[t]) ? 0.0 : fmin(excess + rounding, 0.0);
			excess /= estimate.error;
			sum += excess;
			squares += excess * excess;
			errors.largest = fmax(errors.largest, fabs(excess));
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
	int wrong = 0;

	for (int t = 0; t < made->count; t += 20)
	{
		SketchQuery *query =
			sketch_query(made->model, made->rows + (size_t) t * (size_t) made->dims, one_error);
		const double coarse =
			sketch_coarse_estimate(query, code_of(made, t), made->numbers[t]).measure;
		const double fine = sketch_fine_estimate(query, code_of(made, t)).measure;

		wrong +=
			!(coarse < query->unit * (1e-4 * query->base + 1e-6)) ||
			!(coarse > -query->unit * (query->base / 200.0 + 1e-6) || is_cut(made->numbers[t]));
		wrong += !(fabs(fine) < query->unit * (1e-4 * query->base + 1e-6));
		math_free(query);
	}
	return wrong;
}

/* The rank that an estimate should have, as a number. */
static double
expected_rank(const SketchQuery *query, SketchEstimate estimate, double allowed)
{
	const double above = estimate.measure - allowed * estimate.error - query->least;

	if (!sketch_query_usable(query))
		return 0.0;
	return fmin(sqrt(fmax(above * query->ranks_per_unit, 0.0)), SKETCH_RANKS);
}

/*
 * Ranks by a kernel, for a query and all rows, and those after a second look; counts those that are not
 * the estimates'.
 */
static int
wrong_ranks(const Sketches *made, const float *row, double allowed)
{
	const SketchShape *shape = &made->model->parameters.shape;
	const SketchErrors errors = {(float) allowed, (float) allowed};
	SketchQuery		  *query = sketch_query(made->model, row, errors);
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
			columns[(size_t) column * (size_t) made->count + t] = code_of(made, t)[column];
	}
	wrong += sketch_kernel_best()->within(&sketches, matches) != (size_t) made->count;
	for (int t = 0; t < made->count; t++)
	{
		const uint32_t rank = matches[t].distance;
		const uint32_t refined = refined_rank(query, code_of(made, t), made->numbers[t], rank);
		const SketchEstimate coarse =
			sketch_coarse_estimate(query, code_of(made, t), made->numbers[t]);
		const SketchEstimate fine = sketch_fine_estimate(query, code_of(made, t));
		const bool			 is_known = made->numbers[t] != SKETCH_UNKNOWN;
		const double		 expected = is_known ? expected_rank(query, coarse, allowed) : 0.0;
		/* of floats up to the square of the last rank, seen in the rank */
		const double rounding = fmin(100.0 / fmax(expected, 1.0), 10.0);

		wrong += !(fabs(rank + 0.5 - expected) <= 0.5 + rounding) &&
				 !(rank == SKETCH_RANKS && expected >= SKETCH_RANKS - rounding);
		/* a rank is a bound from below */
		wrong += rank > 0 && rank < SKETCH_RANKS &&
				 !(sketch_bound(query, rank) <= coarse.measure - allowed * coarse.error +
													rounding * 2.0 * rank / query->ranks_per_unit);
		if (is_known && made->numbers[t] != SKETCH_FAR)
			wrong += !(fabs(refined + 0.5 -
							fmax(rank + 0.5, expected_rank(query, fine, allowed))) <= 0.51);
		else
			wrong += refined != rank;
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
	/*
	 * A bit or two leave much outside, of which the error takes all directions to have the same
	 * share; in one dimension there is none but rounding.
	 */
	for (int is_fine = 0; is_fine < 2 && dims > 1; is_fine++)
	{
		const Errors errors = measure_errors(&made, data + (size_t) ROWS * (size_t) dims, is_fine);

		ok(fabs(errors.mean) < (bits < 8 ? 0.3 : 0.15) &&
			   errors.deviation < (bits < 8 ? 15.0 : 1.2) && errors.deviation > 0.5 &&
			   errors.largest < (bits < 8 ? 40.0 : 6.0),
		   "%s, %d dimensions, %d bits, look %d: errors of %.2f +- %.2f, at most %.1f",
		   metric_names[metric], dims, bits, is_fine + 1, errors.mean, errors.deviation,
		   errors.largest);
	}
	/* rounding may turn a projection of the query that is nearly between two numbers */
	if (metric != SKETCH_IP)
		ok(wrong_selves(&made) <= 1,
		   "%s, %d dimensions, %d bits: a row is at no distance from itself", metric_names[metric],
		   dims, bits);
	free_sketches(&made);
}

static void
test_shapes(void)
{
	static const int cases[][4] = {
		/* dims, bits, projections, words */
		{960, 256, 256, 4}, {960, 100, 100, 2}, {784, 784, 832, 13}, {100, 256, 256, 4},
		{100, 100, 128, 2}, {50, 50, 64, 1},	{1, 1, 64, 1},		 {3, 2, 2, 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const SketchShape shape = sketch_shape(cases[i][0], cases[i][1]);

		ok(shape.projections == cases[i][2] && shape.words == cases[i][3] &&
			   sketch_code_words(&shape) == 3 * cases[i][3] + 2,
		   "%d dimensions, %d bits: %d projections in %d words", cases[i][0], cases[i][1],
		   shape.projections, shape.words);
	}
}

/* Estimates and ranks that are numbers, for rows and queries of all sizes. */
static bool
all_finite(const Sketches *made, const float *row)
{
	SketchQuery *query = sketch_query(made->model, row, (SketchErrors) {1.5F, 1.5F});
	bool		 finite = wrong_ranks(made, row, 1.5) == 0;

	for (int t = 0; t < made->count; t++)
	{
		const SketchEstimate coarse =
			sketch_coarse_estimate(query, code_of(made, t), made->numbers[t]);
		const SketchEstimate fine = sketch_fine_estimate(query, code_of(made, t));

		finite &= isfinite(coarse.measure) && isfinite(coarse.error) && coarse.error >= 0.0;
		finite &= made->numbers[t] == SKETCH_UNKNOWN ||
				  (isfinite(fine.measure) && isfinite(fine.error) && fine.error >= 0.0);
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
			uint64_t	   code[2 * SKETCH_LEVELS + SKETCH_FINE_WORDS];
			uint32_t	   number;
			SketchEncoder *encoder = sketch_encoder_create(made.model, 1);

			for (int k = 0; k < dims; k++)
				row[k] = k % 2 == 0 ? sizes[q] : -sizes[q];
			if (metric != SKETCH_COSINE || sketch_normalise(row, dims))
			{
				made.count = 30;
				finite &= all_finite(&made, row);
				sketch_encode(encoder, row, 1, code, &number);
				memcpy(made.words, code,
					   sizeof(uint64_t) *
						   (size_t) sketch_code_words(&made.model->parameters.shape));
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
	SketchQuery	  *query = sketch_query(made.model, rows, (SketchErrors) {2.0F, 2.0F});
	float		   zero[20] = {0.0F};
	uint64_t	   code[2 * SKETCH_LEVELS + SKETCH_FINE_WORDS] = {1, 1};
	uint32_t	   number;
	int			   farther = 0;

	ok(!sketch_normalise(zero, dims), "a zero row cannot be scaled to length 1");
	sketch_encode(encoder, zero, 1, code, &number);
	ok(number == SKETCH_FAR, "a zero row is far by cosine distance");
	for (int t = 0; t < 500; t++)
		farther +=
			expected_rank(query, sketch_coarse_estimate(query, code_of(&made, t), made.numbers[t]),
						  2.0) >
			expected_rank(query, sketch_coarse_estimate(query, code, number), 2.0);
	ok(farther < 25, "%d of 500 rows, on the other side, are farther than far", farther);
	for (int k = 0; k < dims; k++)
		zero[k] = 1e30F;
	made.model->parameters.metric = SKETCH_L2;
	sketch_encode(encoder, zero, 1, code, &number);
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
		uint64_t code[SKETCH_LEVELS + SKETCH_FINE_WORDS];
		uint32_t number;

		sketch_encode(encoder, made.rows + (size_t) t * (size_t) dims, 1, code, &number);
		for (int level = 0; level < SKETCH_LEVELS; level++)
			different += __builtin_popcountll(code[level] ^ code_of(&made, t)[level]);
		different += number >> 19 != made.numbers[t] >> 19;
	}
	ok(different <= 6, "one row at a time: %d bits differ by rounding", different);
	sketch_encoder_free(encoder);
	free_sketches(&made);
}

/* A sketch made in a block is found to be that of its row alone, and no other row's is. */
static void
test_matches(int dims, int bits, SketchMetric metric)
{
	const int count = 2000;
	Sketches  made = make_sketches(make_rows(count, dims, dims / 2, 5), count, dims, bits, metric);
	SketchEncoder *encoder = sketch_encoder_create(made.model, 1);
	int			   own = 0;
	int			   others = 0;

	for (int t = 0; t < count; t++)
	{
		const float *row = made.rows + (size_t) t * (size_t) dims;
		const int	 other = (t + 1) % count;

		own += sketch_matches(encoder, row, code_of(&made, t), made.numbers[t]);
		others += sketch_matches(encoder, row, code_of(&made, other), made.numbers[other]);
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

/*
 * sketch_query.c
 *		Queries: projections rounded to weights, and the factors by which kernels and estimates
 *		turn sketches into distances.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../code/sketch_columns.h"
#include "../wide.h"
#include "memory.h"
#include "rows.h"
#include "sketch_parts.h"

/* sums that are added up side by side, since the compiler may not reorder the terms of one */
#define LANES 32

const double sketch_recalls[SKETCH_RECALLS] = {0.80, 0.85, 0.90, 0.95, 0.98, 0.99, 0.995, 0.999};

/* recalls beyond the last are taken to be at most this far from 1 */
#define LEAST_MISS 1e-6

/* a query farther away than this, squared, sees all rows at the same distance: no estimates */
#define MAX_QUERY_LENGTH 0x1p40

/* the largest weights, and the largest of a code's numbers: all are odd, from this with minus to this */
#define MAX_WEIGHT ((1 << SKETCH_PLANES) - 1)
#define MAX_FINE_WEIGHT ((1 << SKETCH_FINE_PLANES) - 1)
#define MAX_NUMBER ((1 << SKETCH_LEVELS) - 1)

/* what the first look may miss of what may be missed */
#define COARSE_SHARE 0.25

/* Where a miss lies among those that a model knows: the index of the next smaller one, and how far. */
static double
place_of(double miss, int *next)
{
	*next = 1;
	miss = fmax(miss, LEAST_MISS);
	if (miss >= 1.0 - sketch_recalls[0])
		return 0.0;
	while (*next < SKETCH_RECALLS - 1 && miss < 1.0 - sketch_recalls[*next])
		(*next)++;
	/* errors grow with the logarithm of what may be missed */
	return log((1.0 - sketch_recalls[*next - 1]) / miss) /
		   log((1.0 - sketch_recalls[*next - 1]) / (1.0 - sketch_recalls[*next]));
}

SketchErrors
sketch_errors(const SketchParameters *parameters, double recall, bool cautious)
{
	const SketchErrors *known = cautious ? parameters->cautious_errors : parameters->errors;
	const double		miss = 1.0 - recall;
	int					next;
	const double		coarse = place_of(COARSE_SHARE * miss, &next);
	SketchErrors		errors;
	double				fine;

	errors.coarse =
		(float) (known[next - 1].coarse + coarse * (known[next].coarse - known[next - 1].coarse));
	fine = place_of((1.0 - COARSE_SHARE) * miss, &next);
	errors.fine = (float) (known[next - 1].fine + fine * (known[next].fine - known[next - 1].fine));
	return errors;
}

/* The memory behind a query: what it points to. */
typedef struct Arrays
{
	uint64_t *planes;
	uint64_t *fine_planes;
	uint8_t	 *tables;
} Arrays;

/* The tables of a word from the rounded projections that its bits stand for. */
static void
make_tables(const uint8_t *rounded, int count, uint8_t *tables)
{
	for (size_t i = 0; i < 64; i++)
	{
		/* bits after the last one are 0 in codes and weights */
		const int	 weight = (int) i < count ? rounded[i] : 0;
		const size_t bit = i % 4;
		/* the lower halves of all bytes come first */
		uint8_t *table = tables + (i / 4 % 2 * 8 + i / 8) * 16;

		for (int entry = 0; entry < 16; entry++)
			table[entry] =
				(uint8_t) (table[entry] + (entry >> bit & 1 ? MAX_WEIGHT - weight : weight));
	}
}

/* The planes of a word from the same. */
static void
make_planes(const uint8_t *rounded, int count, int nplanes, uint64_t *planes)
{
	for (int i = 0; i < count && i < 64; i++)
	{
		for (int t = 0; t < nplanes; t++)
			planes[t] |= (uint64_t) (rounded[i] >> t & 1) << i;
	}
}

/*
 * For an inner product, the query's part along the mean is left out, since rows know their
 * product with it; only if that is positive, lest n's bound become one from above.  Lengths are
 * relative to the query's own: it may have any length.
 */
void
sketch_centre_query(const SketchModel *model, const float *row, float *centred, SketchQuery *query)
{
	const SketchParameters *parameters = &model->parameters;
	const int				dims = parameters->shape.dims;

	if (parameters->metric == SKETCH_IP)
	{
		const double square = squared_length(model->mean, dims);
		const double product = product_of_rows(model->mean, row, dims);
		const double along = product > 0.0 ? product / square : 0.0;
		int			 exponent;

		(void) frexp(sqrt(squared_length(row, dims)), &exponent);
		for (int k = 0; k < dims; k++)
			centred[k] = (float) ldexp(row[k] - along * model->mean[k], -exponent);
		query->unit = ldexp(1.0, parameters->exponent + exponent);
		query->base = -product / query->unit;
		query->n_weight = ldexp(along, parameters->exponent - exponent);
		query->product_factor = 1.0;
	}
	else
	{
		sketch_centre(model, row, centred);
		query->unit = ldexp(1.0, 2 * parameters->exponent);
		query->base = squared_length(centred, dims);
		query->n_weight = 1.0;
		query->product_factor = 2.0;
	}
}

/*
 * How weights and numbers make products.  Weights are scaled so as to be right for a row that is the
 * query itself, with its code: by_weights is the product of both.
 */
static SketchFactors
factors_of(const SketchQuery *query, int projections, double scale, double by_weights,
		   double with_numbers, int most)
{
	SketchFactors factors = {.start = 0.0};

	if (by_weights > 0.0 && scale > 0.0)
		factors.factor = 2.0 * query->product_factor * scale * with_numbers / by_weights;
	factors.start = factors.factor / 2.0 * projections * most;
	return factors;
}

/* The weights for the first look: planes, tables and factors. */
static void
weigh_signs(const SketchShape *shape, const float *projected, double scale, SketchQuery *query,
			const Arrays *arrays)
{
	const int			 projections = shape->projections;
	uint8_t				*weights = math_alloc((size_t) projections, 1);
	const SketchProducts signs = quantise_signs(projected, projections);
	double				 by_weights = 0.0;

	(void) quantise(projected, projections, SKETCH_PLANES, weights);
	for (int column = 0; column < shape->words; column++)
	{
		const int first = column * 64;

		make_planes(weights + first, projections - first, SKETCH_PLANES,
					arrays->planes + (size_t) column * SKETCH_PLANES);
		make_tables(weights + first, projections - first,
					arrays->tables + (size_t) column * SKETCH_TABLE);
	}
	for (int i = 0; i < projections; i++)
		by_weights += abs(2 * weights[i] - MAX_WEIGHT);
	query->coarse =
		factors_of(query, projections, scale, by_weights, signs.with_numbers, MAX_WEIGHT);
	math_free(weights);
}

/* The same for the second look, which needs no tables. */
static void
weigh_numbers(const SketchShape *shape, const float *projected, double scale, SketchQuery *query,
			  const Arrays *arrays)
{
	const int	   projections = shape->projections;
	uint8_t		  *weights = math_alloc((size_t) projections, 1);
	uint8_t		  *numbers = math_alloc((size_t) projections, 1);
	SketchProducts whole;
	double		   by_weights = 0.0;

	(void) quantise(projected, projections, SKETCH_FINE_PLANES, weights);
	whole = quantise(projected, projections, SKETCH_LEVELS, numbers);
	for (int column = 0; column < shape->words; column++)
	{
		const int first = column * 64;

		make_planes(weights + first, projections - first, SKETCH_FINE_PLANES,
					arrays->fine_planes + (size_t) column * SKETCH_FINE_PLANES);
	}
	for (int i = 0; i < projections; i++)
		by_weights += (2.0 * weights[i] - MAX_FINE_WEIGHT) * (2.0 * numbers[i] - MAX_NUMBER);
	query->fine = factors_of(query, projections, scale, by_weights, whole.with_numbers,
							 MAX_FINE_WEIGHT * MAX_NUMBER);
	math_free(weights);
	math_free(numbers);
}

/* The factors of estimates from a query's projections, and its planes and tables. */
static void
make_factors(const SketchModel *model, const float *projected, double length, SketchQuery *query,
			 const Arrays *arrays)
{
	const SketchParameters *parameters = &model->parameters;
	const SketchShape	   *shape = &parameters->shape;
	const double			inside = squared_length(projected, shape->projections);
	const double			scale = inside > 0.0 ? sqrt(length / inside) : 0.0;
	double					outside = 0.0;

	if (is_partial(shape))
		outside = fmax(length - inside, 0.0) / (shape->dims - shape->projections);
	weigh_signs(shape, projected, scale, query, arrays);
	weigh_numbers(shape, projected, scale, query, arrays);
	query->e_factor =
		query->product_factor * sqrt(length * (1.0 - parameters->outside) +
									 outside / parameters->lambda * parameters->outside);
	query->inside = query->product_factor * query->product_factor * length;
	query->outside = query->product_factor * query->product_factor * outside;
}

/*
 * The range of measures that ranks are about, and the factors in ranks.  If there is no such range, all
 * factors and ranks stay 0.
 */
static void
make_score(SketchQuery *query, double length)
{
	const SketchParameters *parameters = &query->parameters;
	const double			low = query->base + query->n_weight * parameters->n_low;
	const double			n_unit = ldexp(query->n_weight, parameters->n_exponent);
	const double			reach = query->product_factor * sqrt(length * parameters->longest);
	const double			least = parameters->metric == SKETCH_IP ? low - reach : 0.0;
	const double			range = low - least + 2.0 * n_unit + reach;
	const double			ranks = (double) SKETCH_RANKS * SKETCH_RANKS / range;
	const double			f_unit = ldexp(ranks, parameters->f_exponent);
	const double			e_unit = ldexp(ranks, parameters->e_exponent);

	if (!(range > 0.0))
		return;
	query->least = least * query->unit;
	query->ranks_per_unit = ranks / query->unit;
	query->score.start = (float) ((low - least) * ranks);
	query->score.n_factor = (float) (n_unit * ranks);
	query->score.f_start = (float) (query->coarse.start * f_unit);
	query->score.f_factor = (float) (query->coarse.factor * f_unit);
	query->score.e_factor = (float) (query->errors.coarse * query->e_factor * e_unit);
}

/*
 * The query's projections.  Not by BLAS: loading the library takes ten times as long as a search, and whoever
 * only searches does without it.
 */
WIDE static void
project_query(const SketchModel *model, const float *centred, float *projected)
{
	const int	 dims = model->parameters.shape.dims;
	const int	 whole = dims - dims % LANES;
	const float *direction = model->projection;

	for (int i = 0; i < model->parameters.shape.projections; i++, direction += dims)
	{
		float sums[LANES] = {0.0F};
		float sum = 0.0F;

		/* with pointers, so that the compiler sees that lanes are neighbours */
		for (const float *a = direction, *b = centred; b < centred + whole; a += LANES, b += LANES)
		{
			for (int lane = 0; lane < LANES; lane++)
				sums[lane] += a[lane] * b[lane];
		}
		for (int k = whole; k < dims; k++)
			sum += direction[k] * centred[k];
		for (int lane = 0; lane < LANES; lane++)
			sum += sums[lane];
		projected[i] = sum;
	}
}

SketchQuery *
sketch_query(const SketchModel *model, const float *row, SketchErrors errors)
{
	const SketchShape *shape = &model->parameters.shape;
	const size_t	   words = (size_t) shape->words;
	SketchQuery		  *query = math_alloc(
		  sizeof(SketchQuery) + words * (8 * (SKETCH_PLANES + SKETCH_FINE_PLANES) + SKETCH_TABLE), 1);
	Arrays arrays = {.planes = (uint64_t *) (query + 1)};
	float *centred = math_alloc((size_t) shape->dims, sizeof(float));
	double length;

	arrays.fine_planes = arrays.planes + words * SKETCH_PLANES;
	arrays.tables = (uint8_t *) (arrays.fine_planes + words * SKETCH_FINE_PLANES);
	query->parameters = model->parameters;
	query->errors = errors;
	query->fine_planes = arrays.fine_planes;
	query->score.planes = arrays.planes;
	query->score.tables = arrays.tables;
	query->ranks_per_unit = 1.0;
	query->least = -INFINITY;
	sketch_centre_query(model, row, centred, query);
	length = squared_length(centred, shape->dims);
	if (!(length <= MAX_QUERY_LENGTH))
		query->base = 0.0;
	else
	{
		float *projected = math_alloc((size_t) shape->projections, sizeof(float));

		project_query(model, centred, projected);
		make_factors(model, projected, length, query, &arrays);
		make_score(query, length);
		math_free(projected);
	}
	math_free(centred);
	return query;
}

bool
sketch_query_usable(const SketchQuery *query)
{
	return isfinite(query->least);
}

double
sketch_bound(const SketchQuery *query, uint32_t rank)
{
	return rank == 0 ? -INFINITY : query->least + (double) rank * rank / query->ranks_per_unit;
}

/* The second look's estimate, given what the query and the code disagree in. */
static SketchEstimate
fine_estimate(const SketchQuery *query, const uint64_t *code, uint32_t disagreement)
{
	const SketchFine fine = sketch_code_fine(&query->parameters.shape, code);
	const double	 product =
		fine.f * (query->fine.start - query->fine.factor * (double) disagreement);

	return (SketchEstimate) {
		.measure = query->unit * (query->base + query->n_weight * fine.n - product),
		.error = query->unit * sqrt(fine.inside * query->inside + fine.outside * query->outside)};
}

uint32_t
sketch_refine(const SketchQuery *query, const uint64_t *code, uint32_t disagreement, uint32_t rank)
{
	const SketchEstimate estimate = fine_estimate(query, code, disagreement);
	const double		 bound = estimate.measure - query->errors.fine * estimate.error;
	const double		 square = (bound - query->least) * query->ranks_per_unit;

	/* whatever is no number changes nothing */
	if (!sketch_query_usable(query) || !(square > (double) rank * rank))
		return rank;
	return square < (double) SKETCH_RANKS * SKETCH_RANKS ? (uint32_t) sqrt(square) : SKETCH_RANKS;
}

SketchEstimate
sketch_coarse_estimate(const SketchQuery *query, const uint64_t *code, uint32_t number)
{
	const SketchParameters *parameters = &query->parameters;
	const double			n = parameters->n_low + ldexp(number_n(number), parameters->n_exponent);
	const double			f = ldexp(number_f(number), parameters->f_exponent);
	const double			e = ldexp(number_e(number), parameters->e_exponent);
	uint64_t				sum = 0;

	for (int column = 0; column < parameters->shape.words; column++)
	{
		const uint64_t *planes = query->score.planes + (size_t) column * SKETCH_PLANES;

		for (int t = 0; t < SKETCH_PLANES; t++)
			sum += (uint64_t) __builtin_popcountll(code[column] ^ planes[t]) << t;
	}
	return (SketchEstimate) {
		.measure = query->unit * (query->base + query->n_weight * n -
								  f * (query->coarse.start - query->coarse.factor * (double) sum)),
		.error = query->unit * query->e_factor * e};
}

static uint32_t
count_bits(uint64_t word)
{
	return (uint32_t) __builtin_popcountll(word);
}

SketchEstimate
sketch_fine_estimate(const SketchQuery *query, const uint64_t *code)
{
	const size_t words = (size_t) query->parameters.shape.words;

	return fine_estimate(query, code,
						 fine_disagreement(code, words, query->fine_planes, count_bits));
}

/*
 * sketch_query.c
 *		Queries: projections rounded to weights, and the factors by which kernels and estimates
 *		turn sketches into distances.
 */
#include <math.h>
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

/* the largest weight: weights are odd numbers from this with minus to this */
#define MAX_WEIGHT ((1 << SKETCH_PLANES) - 1)

/* Errors grow with the logarithm of what may be missed. */
double
sketch_errors(const SketchParameters *parameters, double recall, bool cautious)
{
	const float *errors = cautious ? parameters->cautious_errors : parameters->errors;
	const double miss = fmax(1.0 - recall, LEAST_MISS);
	int			 i = 1;

	if (recall <= sketch_recalls[0])
		return errors[0];
	while (i < SKETCH_RECALLS - 1 && recall > sketch_recalls[i])
		i++;
	return errors[i - 1] + (errors[i] - errors[i - 1]) * log((1.0 - sketch_recalls[i - 1]) / miss) /
							   log((1.0 - sketch_recalls[i - 1]) / (1.0 - sketch_recalls[i]));
}

/* The memory behind a query: what its score points to. */
typedef struct Arrays
{
	uint64_t *planes;
	uint8_t	 *tables;
	uint8_t	 *shifts;
} Arrays;

/* The planes and tables of a word from the rounded projections that its bits stand for. */
static void
make_word(const uint8_t *rounded, int count, uint64_t *planes, uint8_t *tables)
{
	for (size_t i = 0; i < 64; i++)
	{
		/* bits behind the last one are 0 in codes and weights */
		const int	 weight = (int) i < count ? rounded[i] : 0;
		const size_t bit = i % 4;
		/* the lower halves of all bytes come first */
		uint8_t *table = tables + (i / 4 % 2 * 8 + i / 8) * 16;

		for (int t = 0; t < SKETCH_PLANES; t++)
			planes[t] |= (uint64_t) (weight >> t & 1) << i;
		for (int entry = 0; entry < 16; entry++)
			table[entry] =
				(uint8_t) (table[entry] + (entry >> bit & 1 ? MAX_WEIGHT - weight : weight));
	}
}

static void
make_weights(const SketchShape *shape, const uint8_t *rounded, const Arrays *arrays)
{
	const int segment = segment_words(shape);

	for (int column = 0; column < shape->words; column++)
	{
		const int first = column % segment * 64;

		make_word(rounded + first, shape->projections - first,
				  arrays->planes + (size_t) column * SKETCH_PLANES,
				  arrays->tables + (size_t) column * SKETCH_TABLE);
		arrays->shifts[column] = (uint8_t) (shape->levels - 1 - column / segment);
	}
}

/*
 * For an inner product, the query's part along the mean is left out, since rows know their
 * product with it; only if that is positive, lest n's bound become one from above.  Lengths are
 * relative to the query's own: it may be as long as it likes.
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

/* The factors of estimates from a query's projections, and its planes and tables. */
static void
make_factors(const SketchModel *model, const float *projected, double length, SketchQuery *query,
			 const Arrays *arrays)
{
	const SketchParameters *parameters = &model->parameters;
	const SketchShape	   *shape = &parameters->shape;
	const double			inside = squared_length(projected, shape->projections);
	uint8_t				   *weights = math_alloc((size_t) shape->projections, 1);
	uint8_t				   *code = math_alloc((size_t) shape->projections, 1);
	double					outside = 0.0;
	double					by_weights = 0.0;
	double					with_numbers;
	double					with_themselves;

	if (is_partial(shape))
		outside = fmax(length - inside, 0.0) / (shape->dims - shape->projections);
	quantise(projected, shape->projections, SKETCH_PLANES, weights, &with_numbers,
			 &with_themselves);
	make_weights(shape, weights, arrays);
	/* weights are scaled so as to be right for a row that is the query itself, with its code */
	quantise(projected, shape->projections, shape->levels, code, &with_numbers, &with_themselves);
	for (int i = 0; i < shape->projections; i++)
		by_weights += (2 * weights[i] - MAX_WEIGHT) * (2.0 * code[i] - ((1 << shape->levels) - 1));
	math_free(weights);
	math_free(code);
	if (by_weights > 0.0 && inside > 0.0)
		query->f_factor =
			2.0 * query->product_factor * sqrt(length / inside) * with_numbers / by_weights;
	query->f_start =
		query->f_factor / 2.0 * MAX_WEIGHT * shape->projections * ((1 << shape->levels) - 1);
	query->e_factor =
		query->product_factor * sqrt(length * (1.0 - parameters->outside) +
									 outside / parameters->lambda * parameters->outside);
}

/*
 * The range of measures that ranks are about, and the factors in ranks; errors is the number of
 * standard errors allowed for.  If there is no such range, all factors and ranks stay 0.
 */
static void
make_score(SketchQuery *query, double length, double errors)
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
	query->score.f_start = (float) (query->f_start * f_unit);
	query->score.f_factor = (float) (query->f_factor * f_unit);
	query->score.e_factor = (float) (errors * query->e_factor * e_unit);
}

/*
 * The query's projections.  Not by BLAS: loading the library takes ten times as long as a search, and whoever
 * only searches does without it.
 */
WIDE static void
project_query(const SketchModel *model, const float *centred, float *projected)
{
	const int dims = model->parameters.shape.dims;

	for (int i = 0; i < model->parameters.shape.projections; i++)
	{
		const float *direction = model->projection + (size_t) i * (size_t) dims;
		float		 sums[LANES] = {0.0F};
		float		 sum = 0.0F;
		int			 k = 0;

		for (; k + LANES <= dims; k += LANES)
		{
			for (int lane = 0; lane < LANES; lane++)
				sums[lane] += direction[k + lane] * centred[k + lane];
		}
		for (; k < dims; k++)
			sum += direction[k] * centred[k];
		for (int lane = 0; lane < LANES; lane++)
			sum += sums[lane];
		projected[i] = sum;
	}
}

SketchQuery *
sketch_query(const SketchModel *model, const float *row, double errors)
{
	const SketchShape *shape = &model->parameters.shape;
	const size_t	   words = (size_t) shape->words;
	SketchQuery		  *query =
		math_alloc(sizeof(SketchQuery) + words * (8 * SKETCH_PLANES + SKETCH_TABLE + 1), 1);
	Arrays arrays = {.planes = (uint64_t *) (query + 1)};
	float *centred = math_alloc((size_t) shape->dims, sizeof(float));
	double length;

	arrays.tables = (uint8_t *) (arrays.planes + words * SKETCH_PLANES);
	arrays.shifts = arrays.tables + words * SKETCH_TABLE;
	query->parameters = model->parameters;
	query->score.planes = arrays.planes;
	query->score.tables = arrays.tables;
	query->score.shifts = arrays.shifts;
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
		make_score(query, length, errors);
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

void
sketch_estimate(const SketchQuery *query, const uint64_t *words, uint32_t number, double *estimate,
				double *error)
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
			sum += (uint64_t) __builtin_popcountll(words[column] ^ planes[t])
				   << (t + query->score.shifts[column]);
	}
	*estimate = query->unit * (query->base + query->n_weight * n -
							   f * (query->f_start - query->f_factor * (double) sum));
	*error = query->unit * query->e_factor * e;
}

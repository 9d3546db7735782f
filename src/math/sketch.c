/*
 * sketch.c
 *		Models of sketches: their shape, and fitting the scales of numbers to some rows.
 */
#include "sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "linalg.h"
#include "memory.h"
#include "random.h"
#include "rows.h"
#include "sketch_parts.h"

/* rows that are projected at a time */
#define BLOCK 64

/* powers of two between the largest f or e of the sample and the largest that can be stored */
#define HEADROOM 4

/* how much farther than the sample's n the scale goes, as a share of their range */
#define MARGIN 0.25

/* next to no row exceeds this share of the sample */
#define NEARLY_ALL 0.999

/* the least that the part outside counts, if the sample has nothing there */
#define MIN_LAMBDA 1e-6

/* a share outside the subspace that is next to nothing */
#define LEAST_OUTSIDE 1e-3

/* odds of being outside, in those of the sample's farthest row, of which pictures had up to 9.6 */
#define STRANGE_ODDS 30.0

/* n, f and e of rows that are about 1 long are not beyond these powers of two */
#define MAX_EXPONENT 120

/* normal deviates that a share of sketch_recalls does not exceed */
static const SketchErrors normal_errors[SKETCH_RECALLS] = {
	{0.84F, 0.84F}, {1.04F, 1.04F}, {1.28F, 1.28F}, {1.65F, 1.65F},
	{2.05F, 2.05F}, {2.33F, 2.33F}, {2.58F, 2.58F}, {3.09F, 3.09F},
};

SketchShape
sketch_shape(int dims, int bits)
{
	const int words = (bits + 63) / 64;

	return (
		SketchShape) {.dims = dims, .projections = bits < dims ? bits : 64 * words, .words = words};
}

/* If the code is about the whole space, there is nothing to learn but the mean. */
ModelConfig
sketch_config(SketchShape shape, SketchMetric metric, int64_t seed)
{
	const bool partial = is_partial(&shape);

	return (ModelConfig) {.dims = shape.dims,
						  .bits = partial ? shape.projections : 1,
						  .tracker = partial ? &tracker_opast : &tracker_lsh,
						  .rotation = partial ? &rotation_random : &rotation_none,
						  .stable = true,
						  .center = true,
						  .forgetting = 1.0,
						  .seed = seed,
						  .normalize = metric == SKETCH_COSINE};
}

bool
sketch_normalise(float *row, int dims)
{
	double largest = 0.0;
	double scale;

	for (int k = 0; k < dims; k++)
		largest = fmax(largest, fabs((double) row[k]));
	if (largest == 0.0)
		return false;
	/* squares of floats stay within double precision */
	scale = 1.0 / sqrt(squared_length(row, dims));
	for (int k = 0; k < dims; k++)
		row[k] = (float) (row[k] * scale);
	return true;
}

bool
sketch_parameters_valid(const SketchParameters *parameters)
{
	const SketchShape *shape = &parameters->shape;
	const float		   positive[] = {parameters->longest, parameters->lambda};

	if (shape->dims < 1 || shape->dims > MODEL_MAX_DIMS || shape->projections < 1 ||
		shape->words != (shape->projections + 63) / 64 || parameters->metric < SKETCH_L2 ||
		parameters->metric > SKETCH_IP || abs(parameters->exponent) > MODEL_MAX_EXPONENT ||
		abs(parameters->n_exponent) > MAX_EXPONENT || abs(parameters->f_exponent) > MAX_EXPONENT ||
		abs(parameters->e_exponent) > MAX_EXPONENT || !isfinite(parameters->n_low) ||
		!(parameters->outside >= 0.0F && parameters->outside <= 1.0F) ||
		!(parameters->most_outside >= 0.0F && parameters->most_outside <= 1.0F))
		return false;
	for (size_t i = 0; i < sizeof(positive) / sizeof(positive[0]); i++)
	{
		if (!(positive[i] > 0.0F && isfinite(positive[i])))
			return false;
	}
	for (int i = 0; i < SKETCH_RECALLS; i++)
	{
		const SketchErrors *errors = &parameters->errors[i];
		const SketchErrors *cautious = &parameters->cautious_errors[i];

		if (!isfinite(errors->coarse) || !isfinite(errors->fine) || !isfinite(cautious->coarse) ||
			!isfinite(cautious->fine))
			return false;
	}
	return true;
}

static int
compare_numbers(const void *a, const void *b)
{
	const double x = *(const double *) a;
	const double y = *(const double *) b;

	return (x > y) - (x < y);
}

void
sort_numbers(double *numbers, int count)
{
	qsort(numbers, (size_t) count, sizeof(double), compare_numbers);
}

double
quantile(const double *sorted, int count, double share)
{
	const int index = (int) ceil(share * count) - 1;

	return sorted[index < 0 ? 0 : index];
}

/*
 * Random directions of the vectors' space in one of as many dimensions as there are
 * projections: the columns of the projection are orthonormal, so that it keeps all lengths.
 */
static void
random_frame(float *projection, const SketchShape *shape, int64_t seed)
{
	const int dims = shape->dims;
	const int size = shape->projections;
	float	 *frame = math_alloc((size_t) dims * (size_t) size, sizeof(float));
	float	 *products = math_alloc((size_t) BLOCK * (size_t) dims, sizeof(float));

	for (int from = 0; from < dims; from += BLOCK)
	{
		const int count = dims - from < BLOCK ? dims - from : BLOCK;
		float	 *block = frame + (size_t) from * (size_t) size;

		for (int i = 0; i < count; i++)
		{
			Random random;

			random_start(&random, seed, (uint64_t) from + (uint64_t) i);
			for (int k = 0; k < size; k++)
				block[(size_t) i * (size_t) size + k] = (float) random_normal(&random);
		}
		/* twice: the second pass removes what rounding left of the first */
		for (int pass = 0; pass < 2 && from > 0; pass++)
		{
			multiply_f(false, true, count, from, size, 1.0F, block, size, frame, size, 0.0F,
					   products, from);
			multiply_f(false, false, count, size, from, -1.0F, products, from, frame, size, 1.0F,
					   block, size);
		}
		for (int i = 0; i < count; i++)
			orthonormalise_row(block, size, i, block + (size_t) i * (size_t) size);
	}
	for (int i = 0; i < size; i++)
	{
		for (int k = 0; k < dims; k++)
			projection[(size_t) i * (size_t) dims + k] = frame[(size_t) k * (size_t) size + i];
	}
	math_free(frame);
	math_free(products);
}

/* What is known of the sample's rows. */
typedef struct Sample
{
	SketchParts *parts;	  /* of each row */
	double		*numbers; /* room for one of each */
	int			 count;
} Sample;

/* Sets the model's exponent, so that the longest of the centred rows are about 1 long. */
static void
fit_exponent(SketchModel *model, const float *rows, Sample *sample, const double *mean)
{
	const int dims = model->parameters.shape.dims;
	double	  longest;

	for (int t = 0; t < sample->count; t++)
		sample->numbers[t] = squared_distance(rows + (size_t) t * (size_t) dims, mean, dims);
	sort_numbers(sample->numbers, sample->count);
	longest = sqrt(quantile(sample->numbers, sample->count, NEARLY_ALL));
	/* rows that are all alike: others will differ from them by about as much as they are large */
	for (int k = 0; k < dims && longest == 0.0; k++)
		longest = fabs(mean[k]);
	if (longest > 0.0)
		(void) frexp(longest, &model->parameters.exponent);
	if (model->parameters.exponent < MODEL_MIN_EXPONENT)
		model->parameters.exponent = MODEL_MIN_EXPONENT;
}

/* The share of a row's squared length outside the subspace up to which it is like the sample's rows. */
static double
most_outside(double largest)
{
	const double outside = STRANGE_ODDS * largest;

	return fmax(outside / (outside + 1.0 - largest), LEAST_OUTSIDE);
}

/* Projects the sample's rows, and finds the typical ratio of errors outside and inside. */
static void
fit_lambda(SketchModel *model, const float *rows, Sample *sample)
{
	const SketchShape *shape = &model->parameters.shape;
	const int		   dims = shape->dims;
	const int		   projections = shape->projections;
	float			  *centred = math_alloc((size_t) BLOCK * (size_t) dims, sizeof(float));
	float			  *projected = math_alloc((size_t) BLOCK * (size_t) projections, sizeof(float));
	uint8_t			  *rounded = math_alloc((size_t) projections, 1);
	double			   share = 0.0;
	int				   known = 0;

	for (int from = 0; from < sample->count; from += BLOCK)
	{
		const int count = sample->count - from < BLOCK ? sample->count - from : BLOCK;

		for (int t = 0; t < count; t++)
			sketch_centre(model, rows + (size_t) (from + t) * (size_t) dims,
						  centred + (size_t) t * (size_t) dims);
		multiply_f(false, true, count, projections, dims, 1.0F, centred, dims, model->projection,
				   dims, 0.0F, projected, projections);
		for (int t = 0; t < count; t++)
		{
			SketchParts *parts = &sample->parts[from + t];

			*parts = sketch_parts(model, centred + (size_t) t * (size_t) dims,
								  projected + (size_t) t * (size_t) projections, rounded);
			if (is_partial(shape) && parts->length > 0.0)
				sample->numbers[known++] = parts->outside / parts->length / (dims - projections);
		}
	}
	sort_numbers(sample->numbers, known);
	model->parameters.lambda =
		(float) fmax(known > 0 ? quantile(sample->numbers, known, 0.5) : 0.0, MIN_LAMBDA);
	model->parameters.most_outside =
		(float) most_outside(known > 0 ? sample->numbers[known - 1] * (dims - projections) : 0.0);
	for (int t = 0; t < sample->count; t++)
	{
		const double outside = model->parameters.lambda * sample->parts[t].outside;

		share += outside > 0.0 ? outside / (sample->parts[t].coarse.inside + outside) : 0.0;
	}
	model->parameters.outside = (float) (share / sample->count);
	math_free(centred);
	math_free(projected);
	math_free(rounded);
}

/* The exponent of the largest number that can be stored, if it is the power of two below this. */
static int
power_below(double number)
{
	int exponent = 0;

	(void) frexp(number, &exponent);
	return exponent - 1 < -MAX_EXPONENT ? -MAX_EXPONENT : exponent - 1;
}

/* Sets the scales of n, f and e. */
static void
fit_scales(SketchParameters *parameters, Sample *sample)
{
	double low;
	double range;

	for (int t = 0; t < sample->count; t++)
		sample->numbers[t] = sample->parts[t].coarse.f;
	sort_numbers(sample->numbers, sample->count);
	parameters->f_exponent =
		power_below(quantile(sample->numbers, sample->count, NEARLY_ALL)) + HEADROOM;

	for (int t = 0; t < sample->count; t++)
		sample->numbers[t] =
			sqrt(sample->parts[t].coarse.inside + parameters->lambda * sample->parts[t].outside);
	sort_numbers(sample->numbers, sample->count);
	parameters->e_exponent =
		power_below(quantile(sample->numbers, sample->count, NEARLY_ALL)) + HEADROOM;

	for (int t = 0; t < sample->count; t++)
		sample->numbers[t] = sample->parts[t].length;
	sort_numbers(sample->numbers, sample->count);
	parameters->longest = (float) quantile(sample->numbers, sample->count, NEARLY_ALL);
	if (!(parameters->longest > 0.0F))
		parameters->longest = 1.0F;

	for (int t = 0; t < sample->count; t++)
		sample->numbers[t] = sample->parts[t].n;
	sort_numbers(sample->numbers, sample->count);
	low = sample->numbers[0];
	range = quantile(sample->numbers, sample->count, NEARLY_ALL) - low;
	/* rows that are all as far from the mean */
	if (!(range > 1e-3 * parameters->longest))
		range = parameters->longest;
	/* squared distances are counted from 0, products from somewhat below the least */
	low = parameters->metric == SKETCH_IP ? low - MARGIN * range : 0.0;
	parameters->n_low = (float) low;
	parameters->n_exponent = power_below(sample->numbers[0] + (1.0 + MARGIN) * range - low);
}

SketchModel *
sketch_fit(Model *learnt, SketchShape shape, SketchMetric metric, const float *rows, int count)
{
	const size_t dims = (size_t) shape.dims;
	const size_t size = dims * ((size_t) shape.projections + 1);
	SketchModel *model = math_alloc(sizeof(SketchModel) + size * sizeof(float), 1);
	float		*mean = (float *) (model + 1);
	float		*projection = mean + dims;
	Sample		 sample = {.parts = math_alloc((size_t) count, sizeof(SketchParts)),
						   .numbers = math_alloc((size_t) count, sizeof(double)),
						   .count = count};

	model->parameters.shape = shape;
	model->parameters.metric = metric;
	model->mean = mean;
	model->projection = projection;
	memcpy(model->parameters.errors, normal_errors, sizeof(normal_errors));
	memcpy(model->parameters.cautious_errors, normal_errors, sizeof(normal_errors));
	model_sync(learnt);
	for (size_t k = 0; k < dims; k++)
		mean[k] = (float) learnt->mean[k];
	if (is_partial(&shape))
		model_projection(learnt, projection);
	else
		random_frame(projection, &shape, learnt->config.seed);
	fit_exponent(model, rows, &sample, learnt->mean);
	fit_lambda(model, rows, &sample);
	fit_scales(&model->parameters, &sample);
	math_free(sample.parts);
	math_free(sample.numbers);
	return model;
}

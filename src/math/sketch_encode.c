/*
 * sketch_encode.c
 *		Sketches of rows: centring and projecting by blocks, rounding projections to codes, and
 *		packing what is needed of a row beside its code into one number.
 */
#include <math.h>
#include <string.h>

#include "../code/sketch_columns.h"
#include "linalg.h"
#include "memory.h"
#include "rows.h"
#include "sketch_parts.h"

/*
 * What rounding a query to SKETCH_PLANES bits and f to its mantissa adds to the error, in squares
 * of lengths: of normal deviates, and of a number that may lie anywhere between two others.
 */
#define QUERY_ROUNDING 0.0117
#define F_ROUNDING 2.6e-6

/* one of so many projections may have another sign than is computed now: rounding, on another CPU */
#define DIFFERENT_SIGNS 32

struct SketchEncoder
{
	const SketchModel *model;
	float			  *centred;	  /* block x dims */
	float			  *projected; /* block x projections */
	uint8_t			  *rounded;	  /* projections */
};

void
sketch_centre(const SketchModel *model, const float *row, float *centred)
{
	const double scale = ldexp(1.0, -model->parameters.exponent);

	for (int k = 0; k < model->parameters.shape.dims; k++)
		centred[k] = (float) (scale * ((double) row[k] - (double) model->mean[k]));
}

/* In double precision: the sums may cancel. */
double
sketch_mean_product(const SketchModel *model, const float *centred)
{
	return ldexp(product_of_rows(model->mean, centred, model->parameters.shape.dims),
				 -model->parameters.exponent);
}

/* The parts of a row, given the products of its rounded projections with them and with themselves. */
static SketchParts
parts_of_products(const SketchModel *model, const float *centred, const float *projected,
				  double with_numbers, double with_themselves)
{
	const SketchShape *shape = &model->parameters.shape;
	const double	   inside = squared_length(projected, shape->projections);
	const int		   others = shape->projections > 1 ? shape->projections - 1 : 1;
	SketchParts		   parts = {.length = squared_length(centred, shape->dims)};

	parts.n =
		model->parameters.metric == SKETCH_IP ? -sketch_mean_product(model, centred) : parts.length;
	/* the angles within the subspace are taken for those of the vectors: f b is |x| long, not |p| */
	parts.f = with_numbers > 0.0 ? sqrt(inside * parts.length) / with_numbers : 0.0;
	/* |x|^2 (1/cos^2 - 1) = |x|^2 |p|^2 |b|^2/<b, p>^2 - |x|^2 = |f b|^2 - |x|^2 */
	parts.inside = fmax(parts.f * parts.f * with_themselves - parts.length, 0.0);
	parts.inside =
		(parts.inside + QUERY_ROUNDING * parts.length) / others + F_ROUNDING * parts.length;
	parts.outside = is_partial(shape) ? fmax(parts.length - inside, 0.0) : 0.0;
	return parts;
}

SketchParts
sketch_parts(const SketchModel *model, const float *centred, const float *projected,
			 uint8_t *rounded)
{
	double with_numbers;
	double with_themselves;

	quantise(projected, model->parameters.shape.projections, model->parameters.shape.levels,
			 rounded, &with_numbers, &with_themselves);
	return parts_of_products(model, centred, projected, with_numbers, with_themselves);
}

/*
 * A number as a small float, whose largest power of two is 2^exponent; what is too small becomes
 * the least.  Its bits, rounded down but for an excess below 1; more bits if it is too large.
 */
static double
pack_float(double number, int exponent, int bits, int exponent_bits, double excess)
{
	const int	 least = 1 - (1 << exponent_bits);
	const double steps = 1 << (bits - exponent_bits);
	const double share = ldexp(number, -exponent);
	int			 power;
	double		 mantissa;

	if (!(share > ldexp(1.0, least)))
		return 0.0;
	mantissa = 2.0 * frexp(share, &power) - 1.0;
	return (power - 1 - least) * steps + floor(mantissa * steps + excess);
}

/*
 * n of a row beside its f, as both are packed.  A larger n may be cut, and the bound still is one.
 * n makes good what rounding f does to a query that is the row itself: n + n - 2 n f'/f = 0.
 */
static uint32_t
pack_n(const SketchParameters *parameters, const SketchParts *parts, uint32_t f)
{
	double n = parts->n;

	if (parameters->metric != SKETCH_IP && f > 0)
		n *= 2.0 * ldexp(number_f(f << SKETCH_E_BITS), parameters->f_exponent) / parts->f - 1.0;
	n = pack_float(n - parameters->n_low, parameters->n_exponent, SKETCH_N_BITS, SKETCH_N_EXPONENT,
				   0.0);
	return (uint32_t) fmin(n, (1 << SKETCH_N_BITS) - 1);
}

uint32_t
sketch_number(const SketchParameters *parameters, const SketchParts *parts)
{
	const double error = sqrt(parts->inside + parameters->lambda * parts->outside);
	/* f is rounded to the nearest, e up, and n down */
	const double f =
		pack_float(parts->f, parameters->f_exponent, SKETCH_F_BITS, SKETCH_F_EXPONENT, 0.5);
	const double e =
		pack_float(error, parameters->e_exponent, SKETCH_E_BITS, SKETCH_E_EXPONENT, 1.0);

	/* an n below the least may not be raised */
	if (!(parts->length <= MAX_SQUARED_LENGTH) || parts->n < parameters->n_low ||
		f >= (1 << SKETCH_F_BITS) || e >= (1 << SKETCH_E_BITS))
		return SKETCH_UNKNOWN;
	/* no known row has the number 0 */
	return pack_n(parameters, parts, (uint32_t) f) << (SKETCH_F_BITS + SKETCH_E_BITS) |
		   (uint32_t) fmax(f, 1.0) << SKETCH_E_BITS | (uint32_t) e;
}

/* The code: a segment for each bit of the rounded projections, the highest first. */
static void
pack_code(const SketchShape *shape, const uint8_t *rounded, uint64_t *words)
{
	for (int level = 0; level < shape->levels; level++)
	{
		const int bit = shape->levels - 1 - level;
		uint64_t *segment = words + (size_t) level * (size_t) segment_words(shape);

		for (int from = 0; from < shape->projections; from += 64)
		{
			const int count = shape->projections - from < 64 ? shape->projections - from : 64;
			uint64_t  word = 0;

			for (int i = 0; i < count; i++)
				word |= (uint64_t) ((rounded[from + i] >> bit) & 1) << i;
			segment[from / 64] = word;
		}
	}
}

SketchEncoder *
sketch_encoder_create(const SketchModel *model, int block)
{
	const SketchShape *shape = &model->parameters.shape;
	SketchEncoder	  *encoder = math_alloc(1, sizeof(SketchEncoder));

	encoder->model = model;
	encoder->centred = math_alloc((size_t) block * (size_t) shape->dims, sizeof(float));
	encoder->projected = math_alloc((size_t) block * (size_t) shape->projections, sizeof(float));
	encoder->rounded = math_alloc((size_t) shape->projections, 1);
	return encoder;
}

void
sketch_encoder_free(SketchEncoder *encoder)
{
	math_free(encoder->centred);
	math_free(encoder->projected);
	math_free(encoder->rounded);
	math_free(encoder);
}

/* Is it a zero vector?  Its cosine distance from any other is not defined. */
static bool
is_zero(const float *row, int dims)
{
	for (int k = 0; k < dims; k++)
	{
		if (row[k] != 0.0F)
			return false;
	}
	return true;
}

void
sketch_encode(SketchEncoder *encoder, const float *rows, int count, uint64_t *words,
			  uint32_t *numbers)
{
	const SketchModel *model = encoder->model;
	const SketchShape *shape = &model->parameters.shape;
	const int		   dims = shape->dims;
	const int		   projections = shape->projections;

	for (int t = 0; t < count; t++)
		sketch_centre(model, rows + (size_t) t * (size_t) dims,
					  encoder->centred + (size_t) t * (size_t) dims);
	multiply_f(false, true, count, projections, dims, 1.0F, encoder->centred, dims,
			   model->projection, dims, 0.0F, encoder->projected, projections);
	for (int t = 0; t < count; t++)
	{
		const SketchParts parts =
			sketch_parts(model, encoder->centred + (size_t) t * (size_t) dims,
						 encoder->projected + (size_t) t * (size_t) projections, encoder->rounded);

		pack_code(shape, encoder->rounded, words + (size_t) t * (size_t) shape->words);
		if (model->parameters.metric == SKETCH_COSINE &&
			is_zero(rows + (size_t) t * (size_t) dims, dims))
			numbers[t] = SKETCH_FAR;
		else
			numbers[t] = sketch_number(&model->parameters, &parts);
	}
}

/* The projections as a code has rounded them: odd numbers. */
static int
rounded_projection(const SketchShape *shape, const uint64_t *words, int projection)
{
	int rounded = 0;

	for (int level = 0; level < shape->levels; level++)
	{
		const uint64_t *segment = words + (size_t) level * (size_t) segment_words(shape);

		rounded = 2 * rounded + (int) ((segment[projection / 64] >> (projection % 64)) & 1);
	}
	return 2 * rounded - ((1 << shape->levels) - 1);
}

/* Are two packed floats at most one step apart? */
static bool
nearly_equal(uint32_t a, uint32_t b)
{
	return a <= b + 1 && b <= a + 1;
}

/*
 * Where two codes are about as near to a row, rounding decides which one it gets.  So what is compared is
 * not the code but the number that belongs to it.
 */
bool
sketch_matches(SketchEncoder *encoder, const float *row, const uint64_t *words, uint32_t number)
{
	const SketchModel *model = encoder->model;
	const SketchShape *shape = &model->parameters.shape;
	const uint32_t	   f = (number >> SKETCH_E_BITS) & ((1 << SKETCH_F_BITS) - 1);
	double			   with_numbers = 0.0;
	double			   with_themselves = 0.0;
	int				   other_signs = 0;
	SketchParts		   parts;
	uint32_t		   expected;

	if (number == SKETCH_UNKNOWN)
		return true;
	if (model->parameters.metric == SKETCH_COSINE && is_zero(row, shape->dims))
		return number == SKETCH_FAR;
	sketch_centre(model, row, encoder->centred);
	multiply_f(false, true, 1, shape->projections, shape->dims, 1.0F, encoder->centred, shape->dims,
			   model->projection, shape->dims, 0.0F, encoder->projected, shape->projections);
	for (int i = 0; i < shape->projections; i++)
	{
		const double projection = encoder->projected[i];
		const int	 rounded = rounded_projection(shape, words, i);

		with_numbers += rounded * projection;
		with_themselves += (double) rounded * rounded;
		other_signs += (rounded > 0) != (projection >= 0.0);
	}
	parts = parts_of_products(model, encoder->centred, encoder->projected, with_numbers,
							  with_themselves);
	expected = sketch_number(&model->parameters, &parts);
	return other_signs <= shape->projections / DIFFERENT_SIGNS + 1 &&
		   nearly_equal(f, (expected >> SKETCH_E_BITS) & ((1 << SKETCH_F_BITS) - 1)) &&
		   nearly_equal(number & ((1 << SKETCH_E_BITS) - 1),
						expected & ((1 << SKETCH_E_BITS) - 1)) &&
		   nearly_equal(number >> (SKETCH_F_BITS + SKETCH_E_BITS),
						pack_n(&model->parameters, &parts, f));
}

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
 * What rounding a query to SKETCH_PLANES bits, or to SKETCH_FINE_PLANES, and f to its mantissa adds to
 * the error, in squares of lengths: of normal deviates, and of a number that may lie anywhere between
 * two others.
 */
#define QUERY_ROUNDING 0.0117
#define FINE_QUERY_ROUNDING 0.0011
#define F_ROUNDING 2.6e-6

/* what single precision leaves of the second look's error, at the least */
#define FINE_ROUNDING 1e-9

/* how far the numbers of the second look may be from what is computed now, as a share of lengths */
#define FINE_TOLERANCE 1e-4

/* squared length outside the subspace that does not matter, as that of a row next to the mean */
#define LITTLE_OUTSIDE 1e-6

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

/*
 * What rounding leaves, given the products of the rounded projections with them and with themselves.
 * The angles within the subspace are taken for those of the vectors: f b is |x| long, not |p|.
 */
static SketchRounding
rounding_of(double length, double inside, int others, SketchProducts products)
{
	SketchRounding rounding = {.f = 0.0};

	if (products.with_numbers > 0.0)
		rounding.f = sqrt(inside * length) / products.with_numbers;
	/* |x|^2 (1/cos^2 - 1) = |x|^2 |p|^2 |b|^2/<b, p>^2 - |x|^2 = |f b|^2 - |x|^2 */
	rounding.inside =
		fmax(rounding.f * rounding.f * products.with_themselves - length, 0.0) / others;
	return rounding;
}

/* The parts of a row, given what its projections are rounded to in products. */
static SketchParts
parts_of_products(const SketchModel *model, const float *centred, const float *projected,
				  SketchProducts signs, SketchProducts whole)
{
	const SketchShape *shape = &model->parameters.shape;
	const double	   inside = squared_length(projected, shape->projections);
	const int		   others = shape->projections > 1 ? shape->projections - 1 : 1;
	SketchParts		   parts = {.length = squared_length(centred, shape->dims)};

	parts.n =
		model->parameters.metric == SKETCH_IP ? -sketch_mean_product(model, centred) : parts.length;
	parts.outside = is_partial(shape) ? fmax(parts.length - inside, 0.0) : 0.0;
	parts.coarse = rounding_of(parts.length, inside, others, signs);
	parts.coarse.inside += parts.length * (QUERY_ROUNDING / others + F_ROUNDING);
	parts.fine = rounding_of(parts.length, inside, others, whole);
	parts.fine.inside += parts.length * (FINE_QUERY_ROUNDING / others + FINE_ROUNDING);
	return parts;
}

SketchParts
sketch_parts(const SketchModel *model, const float *centred, const float *projected,
			 uint8_t *rounded)
{
	const int projections = model->parameters.shape.projections;

	return parts_of_products(model, centred, projected, quantise_signs(projected, projections),
							 quantise(projected, projections, SKETCH_LEVELS, rounded));
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
 * n makes good what rounding f does to a query that is the row itself: n + n - 2 n f'/f = 0.  Not for
 * the least f, to which also what is much smaller is rounded.
 */
static uint32_t
pack_n(const SketchParameters *parameters, const SketchParts *parts, uint32_t f)
{
	double n = parts->n;

	if (parameters->metric != SKETCH_IP && f > 1)
		n *= 2.0 * ldexp(number_f(f << SKETCH_E_BITS), parameters->f_exponent) / parts->coarse.f -
			 1.0;
	n = pack_float(n - parameters->n_low, parameters->n_exponent, SKETCH_N_BITS, SKETCH_N_EXPONENT,
				   0.0);
	return (uint32_t) fmin(n, (1 << SKETCH_N_BITS) - 1);
}

/* The number of these parts; SKETCH_UNKNOWN if the model has no room for them. */
static uint32_t
sketch_number(const SketchParameters *parameters, const SketchParts *parts)
{
	const double error = sqrt(parts->coarse.inside + parameters->lambda * parts->outside);
	/* f is rounded to the nearest, e up, and n down */
	const double f =
		pack_float(parts->coarse.f, parameters->f_exponent, SKETCH_F_BITS, SKETCH_F_EXPONENT, 0.5);
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

/*
 * Is so much of the row outside the subspace that it is unlike those the model was fitted to?  Then its
 * neighbours agree with it where the sketch does not see it, and estimates would be too large.
 */
static bool
is_strange(const SketchParameters *parameters, const SketchParts *parts)
{
	return parts->outside > parameters->most_outside * parts->length + LITTLE_OUTSIDE;
}

/* The code: words for each bit of the rounded projections, the highest first, and the fine numbers. */
static void
pack_code(const SketchShape *shape, const uint8_t *rounded, const SketchParts *parts,
		  uint64_t *code)
{
	const SketchFine fine = {.n = (float) parts->n,
							 .f = (float) parts->fine.f,
							 .inside = (float) parts->fine.inside,
							 .outside = (float) parts->outside};

	for (int level = 0; level < SKETCH_LEVELS; level++)
	{
		const int bit = SKETCH_LEVELS - 1 - level;
		uint64_t *words = code + (size_t) level * (size_t) shape->words;

		for (int from = 0; from < shape->projections; from += 64)
		{
			const int count = shape->projections - from < 64 ? shape->projections - from : 64;
			uint64_t  word = 0;

			for (int i = 0; i < count; i++)
				word |= (uint64_t) ((rounded[from + i] >> bit) & 1) << i;
			words[from / 64] = word;
		}
	}
	memcpy(code + (size_t) SKETCH_LEVELS * (size_t) shape->words, &fine, sizeof(fine));
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

		pack_code(shape, encoder->rounded, &parts,
				  words + (size_t) t * (size_t) sketch_code_words(shape));
		if (model->parameters.metric == SKETCH_COSINE &&
			is_zero(rows + (size_t) t * (size_t) dims, dims))
			numbers[t] = SKETCH_FAR;
		else if (is_strange(&model->parameters, &parts))
			numbers[t] = SKETCH_UNKNOWN;
		else
			numbers[t] = sketch_number(&model->parameters, &parts);
	}
}

/* A projection as a code has rounded it: an odd number. */
static int
rounded_projection(const SketchShape *shape, const uint64_t *code, int projection)
{
	int rounded = 0;

	for (int level = 0; level < SKETCH_LEVELS; level++)
	{
		const uint64_t *words = code + (size_t) level * (size_t) shape->words;

		rounded = 2 * rounded + (int) ((words[projection / 64] >> (projection % 64)) & 1);
	}
	return 2 * rounded - ((1 << SKETCH_LEVELS) - 1);
}

/* Are two packed floats at most one step apart? */
static bool
nearly_equal(uint32_t a, uint32_t b)
{
	return a <= b + 1 && b <= a + 1;
}

/* Is this the number of these parts, but for rounding? */
static bool
number_matches(const SketchParameters *parameters, const SketchParts *parts, uint32_t number)
{
	const uint32_t expected = sketch_number(parameters, parts);
	const uint32_t f = (number >> SKETCH_E_BITS) & ((1 << SKETCH_F_BITS) - 1);

	return nearly_equal(f, (expected >> SKETCH_E_BITS) & ((1 << SKETCH_F_BITS) - 1)) &&
		   nearly_equal(number & ((1 << SKETCH_E_BITS) - 1),
						expected & ((1 << SKETCH_E_BITS) - 1)) &&
		   nearly_equal(number >> (SKETCH_F_BITS + SKETCH_E_BITS), pack_n(parameters, parts, f));
}

/* Are these the fine numbers of these parts, but for rounding? */
static bool
fine_matches(const SketchParts *parts, const SketchFine *fine)
{
	const double tolerance = FINE_TOLERANCE * parts->length;

	return fabs(fine->n - parts->n) <= tolerance + FINE_TOLERANCE * fabs(parts->n) &&
		   fabs(fine->f - parts->fine.f) <= FINE_TOLERANCE * parts->fine.f &&
		   fabs(fine->inside - parts->fine.inside) <= tolerance &&
		   fabs(fine->outside - parts->outside) <= tolerance;
}

/*
 * Where two codes are about as near to a row, rounding decides which one it gets.  So what is compared is
 * not the code but the numbers that belong to it.
 */
bool
sketch_matches(SketchEncoder *encoder, const float *row, const uint64_t *words, uint32_t number)
{
	const SketchModel *model = encoder->model;
	const SketchShape *shape = &model->parameters.shape;
	const SketchFine   fine = sketch_code_fine(shape, words);
	SketchProducts	   signs = {.with_themselves = shape->projections};
	SketchProducts	   whole = {.with_numbers = 0.0};
	int				   other_signs = 0;
	SketchParts		   parts;

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

		signs.with_numbers += rounded > 0 ? projection : -projection;
		whole.with_numbers += rounded * projection;
		whole.with_themselves += (double) rounded * rounded;
		other_signs += (rounded > 0) != (projection >= 0.0);
	}
	parts = parts_of_products(model, encoder->centred, encoder->projected, signs, whole);
	return other_signs <= shape->projections / DIFFERENT_SIGNS + 1 &&
		   number_matches(&model->parameters, &parts, number) && fine_matches(&parts, &fine);
}

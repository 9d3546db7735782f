/*
 * sketch_parts.h
 *		What the files that make and read sketches share.
 */
#ifndef UNIFDIAG_SKETCH_PARTS_H
#define UNIFDIAG_SKETCH_PARTS_H

#include <string.h>

#include "sketch.h"

/* What a row's numbers have of its rounded projections, in the model's lengths. */
typedef struct SketchRounding
{
	double f;
	double inside; /* u squared: the error's part from rounding projections */
} SketchRounding;

/* What a row's numbers are made of, in the model's lengths. */
typedef struct SketchParts
{
	double		   length; /* squared, of the centred row */
	double		   n;
	double		   outside; /* v squared: what of the row is outside the subspace */
	SketchRounding coarse;	/* to signs */
	SketchRounding fine;	/* to SKETCH_LEVELS bits */
} SketchParts;

/*
 * Rounds numbers to odd ones from 1 - 2^levels to 2^levels - 1, times a step that brings them as
 * near as possible in direction; levels are 2 to 6.  Stores (odd + 2^levels - 1)/2, and returns the
 * products of the rounded numbers with the numbers and with themselves.
 */
typedef struct SketchProducts
{
	double with_numbers;
	double with_themselves;
} SketchProducts;

extern SketchProducts quantise(const float *numbers, int count, int levels, uint8_t *rounded);

/* The same of their signs, which need not be stored. */
extern SketchProducts quantise_signs(const float *numbers, int count);

/* The parts of a row from its projections and itself, centred; rounded are the projections. */
extern SketchParts sketch_parts(const SketchModel *model, const float *centred,
								const float *projected, uint8_t *rounded);

/* centred = 2^-exponent (row - mean) */
extern void sketch_centre(const SketchModel *model, const float *row, float *centred);

/* The same of a query, and what estimates have of it: unit, base, n_weight, product_factor. */
extern void
sketch_centre_query(const SketchModel *model, const float *row, float *centred, SketchQuery *query);

/* mean . row, of a centred row, in the model's lengths */
extern double sketch_mean_product(const SketchModel *model, const float *centred);

/* Sorts numbers, and the one that a share of them does not exceed. */
extern void	  sort_numbers(double *numbers, int count);
extern double quantile(const double *sorted, int count, double share);

/* What a code says for the second look. */
static inline SketchFine
sketch_code_fine(const SketchShape *shape, const uint64_t *code)
{
	SketchFine fine;

	memcpy(&fine, code + (size_t) SKETCH_LEVELS * (size_t) shape->words, sizeof(fine));
	return fine;
}

/* Is the code about a part of the vectors' space only? */
static inline bool
is_partial(const SketchShape *shape)
{
	return shape->projections < shape->dims;
}

#endif /* UNIFDIAG_SKETCH_PARTS_H */

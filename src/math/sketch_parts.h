/*
 * sketch_parts.h
 *		What the files that make and read sketches share.
 */
#ifndef UNIFDIAG_SKETCH_PARTS_H
#define UNIFDIAG_SKETCH_PARTS_H

#include "sketch.h"

/* What a row's number is made of, in the model's lengths. */
typedef struct SketchParts
{
	double length; /* squared, of the centred row */
	double n;
	double f;
	double inside;	/* u squared: the error's part from rounding projections */
	double outside; /* v squared: what of the row is outside the subspace */
} SketchParts;

/*
 * Rounds numbers to odd ones from 1 - 2^levels to 2^levels - 1, times a step that brings them as
 * near as possible in direction.  Stores (odd + 2^levels - 1)/2, and returns the products of the
 * rounded numbers with the numbers and with themselves.
 */
extern void quantise(const float *numbers, int count, int levels, uint8_t *rounded,
					 double *with_numbers, double *with_themselves);

/* The parts of a row from its projections and itself, centred; rounded are the projections. */
extern SketchParts sketch_parts(const SketchModel *model, const float *centred,
								const float *projected, uint8_t *rounded);

/* The number of these parts; SKETCH_UNKNOWN if the model has no room for them. */
extern uint32_t sketch_number(const SketchParameters *parameters, const SketchParts *parts);

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

/* words of one of a code's levels */
static inline int
segment_words(const SketchShape *shape)
{
	return shape->words / shape->levels;
}

/* Is the code about a part of the vectors' space only? */
static inline bool
is_partial(const SketchShape *shape)
{
	return shape->projections < shape->dims;
}

#endif /* UNIFDIAG_SKETCH_PARTS_H */

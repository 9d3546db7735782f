/*
 * sketch.h
 *		Sketches: a sketch is a short code of a vector with a number.  They give an estimate of the
 *		vector's distance from any query, with its standard error.  A search takes a first estimate
 *		from the signs in the code.  For a row that may be near it takes a second one from all of it.
 *
 * What is estimated is a measure that grows with the distance: its square for L2, twice the
 * distance for cosine, and the distance itself, the negative product, for inner products.
 * Vectors must be finite.  For cosine the caller scales them to length 1 (sketch_normalise), queries
 * too.  The formulae are in README.md ("Sketches").
 *
 * The life of a model: sketch_shape tells how many projections there are; a Model of
 * sketch_config learns rows; sketch_fit makes a SketchModel of it and of some rows; a
 * SketchEncoder makes sketches of all rows, and a SketchCalibration, which looks at the same rows,
 * finds how many standard errors a search has to allow for.  A SketchModel is its parameters
 * and two arrays, which is all there is to store.
 */
#ifndef UNIFDIAG_SKETCH_H
#define UNIFDIAG_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../code/sketch_kernels.h"
#include "model.h"

/* nearest rows for which a calibration makes sure that they are found */
#define SKETCH_NEIGHBOURS 10

/* recalls for which a model knows the standard errors needed; sketch_recalls has them */
#define SKETCH_RECALLS 8
extern const double sketch_recalls[SKETCH_RECALLS];

typedef enum SketchMetric
{
	SKETCH_L2 = 0,
	SKETCH_COSINE = 1,
	SKETCH_IP = 2
} SketchMetric;

/* What a code is made of. */
typedef struct SketchShape
{
	int32_t dims;
	int32_t projections; /* of a row; more than dims if there are bits to spare */
	int32_t words;		 /* 64-bit words of their signs */
} SketchShape;

/*
 * What is stored in the code's last words, for the second look: of the row, in the model's lengths,
 * n, f of the whole code, and the squared errors from rounding projections and from what is outside
 * the subspace.
 */
typedef struct SketchFine
{
	float n;
	float f;
	float inside;
	float outside;
} SketchFine;

#define SKETCH_FINE_WORDS ((int) (sizeof(SketchFine) / sizeof(uint64_t)))

/* The words of a code: SKETCH_LEVELS bits of each projection, the signs first, and a SketchFine. */
static inline int
sketch_code_words(const SketchShape *shape)
{
	return SKETCH_LEVELS * shape->words + SKETCH_FINE_WORDS;
}

/* And of a code's words, how many those of signs are. */
static inline int
sketch_sign_words(int code_words)
{
	return (code_words - SKETCH_FINE_WORDS) / SKETCH_LEVELS;
}

/* Standard errors: of the estimate by signs, and of that by the whole code. */
typedef struct SketchErrors
{
	float coarse;
	float fine;
} SketchErrors;

/*
 * What is stored of a model beside its arrays.  Lengths are those of vectors times 2^-exponent,
 * so that numbers are near 1.  No padding: bytes of equal models are equal.
 */
typedef struct SketchParameters
{
	SketchShape shape;
	int32_t		metric;
	int32_t		exponent;
	int32_t		n_exponent; /* the largest n, f and e are below 2^(exponent + 1) */
	int32_t		f_exponent;
	int32_t		e_exponent;
	float		n_low;		  /* what n is counted from */
	float		longest;	  /* squared distance from the mean that next to no row exceeds */
	float		lambda;		  /* part of the error outside the subspace relative to that inside */
	float		outside;	  /* share of the part outside in a typical row's squared error */
	float		most_outside; /* share of a row's squared length outside; with more it is unknown */

	/*
	 * Standard errors to allow for, for each of sketch_recalls; if the nearest rows may be
	 * nearer than those of the calibration were (the table has grown), the cautious ones.
	 */
	SketchErrors errors[SKETCH_RECALLS];
	SketchErrors cautious_errors[SKETCH_RECALLS];
} SketchParameters;

typedef struct SketchModel
{
	SketchParameters parameters;
	const float		*mean;		 /* dims */
	const float		*projection; /* projections x dims */
} SketchModel;

/* The shape of codes of at most so many signs, rounded up to whole words if more than dims. */
extern SketchShape sketch_shape(int dims, int bits);

/* How a Model is configured that sketch_fit can use; rows are learnt with model_learn. */
extern ModelConfig sketch_config(SketchShape shape, SketchMetric metric, int64_t seed);

/*
 * A model from one that has learnt (it is brought in sync) and some of its rows, at least one.
 * Errors are those of normal deviates until a calibration has finished.  One block of memory:
 * free it with math_free.
 */
extern SketchModel *
sketch_fit(Model *learnt, SketchShape shape, SketchMetric metric, const float *rows, int count);

/* Scales a row to length 1, in place; false, and unchanged, if it is zero. */
extern bool sketch_normalise(float *row, int dims);

/* Are these parameters that sketch_fit can have made?  For those who read them from a disk. */
extern bool sketch_parameters_valid(const SketchParameters *parameters);

/* Makes sketches of rows; the model must outlive it.  Room for blocks of up to block rows. */
typedef struct SketchEncoder SketchEncoder;

extern SketchEncoder *sketch_encoder_create(const SketchModel *model, int block);
extern void			  sketch_encoder_free(SketchEncoder *encoder);

/*
 * Sketches of count rows, at most block: sketch_code_words each, one row after the other, and a
 * number each.  A zero row with cosine distance is SKETCH_FAR.
 */
extern void sketch_encode(SketchEncoder *encoder, const float *rows, int count, uint64_t *words,
						  uint32_t *numbers);

/* Is this a sketch of the row, but for rounding?  Nothing is known against one that is unknown. */
extern bool
sketch_matches(SketchEncoder *encoder, const float *row, const uint64_t *words, uint32_t number);

/*
 * How a query's rounded projections and a row's make their product: f (start - factor T), where T is
 * what they disagree in.
 */
typedef struct SketchFactors
{
	double start;
	double factor;
} SketchFactors;

/* A query, ready for kernels. */
typedef struct SketchQuery
{
	SketchScore		score;
	const uint64_t *fine_planes; /* SKETCH_FINE_PLANES for each word of signs */
	SketchErrors	errors;		 /* that it allows for */

	/* a rank above 0 stands for measures from least + rank^2 / ranks_per_unit on */
	double least;
	double ranks_per_unit;

	/* factors of the estimates, in the model's lengths */
	double		  unit; /* the measure of 1 */
	double		  base;
	double		  n_weight;
	double		  product_factor;
	SketchFactors coarse;
	SketchFactors fine;
	double		  e_factor; /* of one standard error of the first estimate, */
	double		  inside;	/* and of the squared errors of the second */
	double		  outside;

	SketchParameters parameters;
} SketchQuery;

/*
 * Standard errors to allow for so that a share of the nearest rows, below 1, is found: by both looks
 * together, of which the first may miss a quarter of what may be missed.
 */
extern SketchErrors sketch_errors(const SketchParameters *parameters, double recall, bool cautious);

/* A query that allows for so many standard errors.  One block of memory: free it with math_free. */
extern SketchQuery *sketch_query(const SketchModel *model, const float *query, SketchErrors errors);

/* Has it estimates?  If not, since it is too far from all rows, all ranks are 0. */
extern bool sketch_query_usable(const SketchQuery *query);

/* The lower bound of the measure that a rank stands for: minus infinity for 0. */
extern double sketch_bound(const SketchQuery *query, uint32_t rank);

/*
 * The second look at a row whose number is neither SKETCH_UNKNOWN nor SKETCH_FAR: its rank by the
 * whole code, or the rank by its signs if that is larger.  The disagreement is a kernel's.
 */
extern uint32_t
sketch_refine(const SketchQuery *query, const uint64_t *code, uint32_t disagreement, uint32_t rank);

/* A measure as estimated, and its standard error. */
typedef struct SketchEstimate
{
	double measure;
	double error;
} SketchEstimate;

/* By a sketch's signs and its number, and by the whole code. */
extern SketchEstimate
sketch_coarse_estimate(const SketchQuery *query, const uint64_t *code, uint32_t number);
extern SketchEstimate sketch_fine_estimate(const SketchQuery *query, const uint64_t *code);

/* Finds the standard errors needed, by looking at all rows for the nearest of some queries. */
typedef struct SketchCalibration SketchCalibration;

/* Queries are count rows, copied; they may be rows of the table: each leaves itself out once. */
extern SketchCalibration *
sketch_calibration_create(const SketchModel *model, const float *queries, int count, int block);
extern void sketch_calibration_free(SketchCalibration *calibration);

/* Looks at a block of rows and their sketches. */
extern void sketch_calibrate(SketchCalibration *calibration, const float *rows, int count,
							 const uint64_t *words, const uint32_t *numbers);

/* Sets the errors of the parameters, if enough rows have been looked at. */
extern void
sketch_calibration_finish(const SketchCalibration *calibration, SketchParameters *parameters);

#endif /* UNIFDIAG_SKETCH_H */

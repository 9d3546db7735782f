/*
 * sketcher_check.c
 *		Refuses values that learning cannot have made, and that learning, merging or writing
 *		could not handle.
 *
 * The bounds hold for every model that we write, and for everything learnt from or merged of
 * models within them; so a value that was accepted is never refused later.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "../math/linalg.h"
#include "../math/rows.h"
#include "sketcher.h"

/* how far a row of an orthogonal matrix may be from length 1 before it is damage */
#define LENGTH_TOLERANCE 1e-2

/* likewise the sum of squares of W W' - I; below 1 restoring W converges */
#define SKEW_TOLERANCE 0.25

/* what rounding may add to sums */
#define SLACK 1.01

/* sums below this are nothing but rounding */
#define TINY 1e-200

/* the mean of floats may be rounded upwards */
#define MAX_MEAN (FLT_MAX * (1.0 + 0x1p-30))

void
report_damage(const char *what)
{
	ereport(ERROR, errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			errmsg("sketcher is damaged: %s", what));
}

/* The header's numbers.  Comparisons are such that NaN fails them. */
void
sketcher_check_counts(const Model *model)
{
	const bool empty = model->rows == 0;

	if (model->rows < 0 || model->rows > MODEL_MAX_ROWS || model->rotated_rows < 0 ||
		model->rotated_rows > model->rows)
		report_damage("impossible number of rows");
	/* a row has weight 1 when it is new, and never more */
	if (!(model->weight >= (empty ? 0.0 : 1.0) && model->weight <= (double) model->rows))
		report_damage("impossible weight");
	if (!(model->scatter >= 0.0 &&
		  model->scatter <= SLACK * MAX_SQUARED_LENGTH * (double) model->weight))
		report_damage("impossible scatter");
	if (model->exponent < (empty ? 0 : MODEL_MIN_EXPONENT) ||
		model->exponent > (empty ? 0 : MODEL_MAX_EXPONENT))
		report_damage("impossible exponent");
	if (model->rank < 0 ||
		model->rank > (empty || model->config.tracker->random ? 0 : model->config.bits))
		report_damage("impossible rank");
}

static void
check_mean(const Model *model)
{
	const double most = model->config.center ? MAX_MEAN : 0.0;

	for (int k = 0; k < model->config.dims; k++)
	{
		if (!(fabs(model->mean[k]) <= most))
			report_damage("impossible mean");
	}
}

static void
check_length(double squared_length)
{
	if (!(fabs(squared_length - 1.0) <= LENGTH_TOLERANCE))
		report_damage("rows that should have length 1 do not");
}

static void
check_covariance(const Model *model)
{
	const size_t bits = (size_t) model->config.bits;
	/* what a patient tracker has learnt is forgotten later than the scatter */
	const double most = model->config.tracker->patient
							? SLACK * MAX_SQUARED_LENGTH * (double) model->rows
							: SLACK * model->scatter + TINY;

	for (size_t i = 0; i < bits; i++)
	{
		if (!(model->covariance[i * bits + i] >= 0.0))
			report_damage("a variance is negative");
		for (size_t j = 0; j <= i; j++)
		{
			if (!(fabs(model->covariance[i * bits + j]) <= most))
				report_damage("a covariance is larger than its rows");
		}
	}
}

/* Rows, waiting to be learnt or remembered: none is longer than the vectors' scale allows. */
static void
check_rows(const Model *model)
{
	const int dims = model->config.dims;

	for (int t = 0; t < model->waiting; t++)
	{
		if (!(squared_length(model->block + (size_t) t * (size_t) dims, dims) <=
			  SLACK * MAX_SQUARED_LENGTH))
			report_damage("a row is longer than its exponent allows");
	}
	for (int t = 0; t < model->recent_rows; t++)
	{
		const double largest = (double) model->recent_scales[t] * INT8_MAX;

		if (!(largest >= 0.0 && largest <= SLACK * sqrt(MAX_SQUARED_LENGTH)))
			report_damage("a row is longer than its exponent allows");
	}
}

static void
check_rotation(const Model *model)
{
	const size_t bits = (size_t) model->config.bits;

	for (size_t i = 0; i < bits; i++)
	{
		check_length(squared_length(model->rotation + i * bits, (int) bits));
	}
	/* each row adds at most its length to a sum of signs */
	for (size_t i = 0; i < bits * bits && model->signs != NULL; i++)
	{
		if (!(fabs(model->signs[i]) <= SLACK * sqrt(MAX_SQUARED_LENGTH) * (double) model->rows))
			report_damage("a sum of signs is larger than its rows");
	}
}

/* The arrays of a model that has rows, in time that their size takes. */
void
sketcher_check_arrays(const Model *model)
{
	const int bits = model->config.bits;
	const int dims = model->config.dims;

	check_mean(model);
	for (int i = 0; i < bits && model->config.tracker->expand == NULL; i++)
		check_length(squared_length(model->basis + (size_t) i * (size_t) dims, dims));
	if (model->config.tracker->random)
		return;
	check_covariance(model);
	check_rotation(model);
	check_rows(model);
}

/*
 * The rows of basis and rotation are at right angles.  That takes as long as hashing a few rows for
 * each bit, so it is left out where values are read that have come in long ago.
 */
void
sketcher_check_angles(const Model *model)
{
	const int	 bits = model->config.bits;
	const int	 dims = model->config.dims;
	const size_t size = (size_t) bits * (size_t) bits;
	float		*of_basis;
	float		*of_rotation;
	double		 basis_skew = 0.0;
	double		 rotation_skew = 0.0;

	if (model->rows == 0 || model->config.tracker->random)
		return;
	of_basis = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(float) * size);
	of_rotation = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(float) * size);
	multiply_f(false, true, bits, bits, dims, 1.0F, model->basis, dims, model->basis, dims, 0.0F,
			   of_basis, bits);
	multiply_f(false, true, bits, bits, bits, 1.0F, model->rotation, bits, model->rotation, bits,
			   0.0F, of_rotation, bits);
	for (size_t i = 0; i < size; i++)
	{
		const double expected = i % ((size_t) bits + 1) == 0 ? 1.0 : 0.0;

		basis_skew += (of_basis[i] - expected) * (of_basis[i] - expected);
		rotation_skew += (of_rotation[i] - expected) * (of_rotation[i] - expected);
	}
	if (!(basis_skew <= SKEW_TOLERANCE && rotation_skew <= SKEW_TOLERANCE))
		report_damage("rows that should be at right angles are not");
	pfree(of_basis);
	pfree(of_rotation);
}

/*
 * sketch_calibrate.c
 *		How many standard errors a search must allow for, so that a share of the nearest rows is
 *		found: measured on the nearest rows of some queries, among all rows.
 */
#include <math.h>
#include <string.h>

#include "linalg.h"
#include "memory.h"
#include "rows.h"
#include "sketch_parts.h"

/* errors needed are not believed beyond this: a sketch that is so wrong has no error to speak of */
#define MAX_ERRORS 1000.0

/* One of the nearest rows: its measure, as it is and as estimated by both looks. */
typedef struct Neighbour
{
	double		   measure;
	SketchEstimate coarse;
	SketchEstimate fine;
} Neighbour;

/* A query with the nearest rows so far, the nearest first. */
typedef struct Probe
{
	SketchQuery *query;
	bool		 left_out; /* the row that is the query itself */
	int			 count;
	Neighbour	 nearest[SKETCH_NEIGHBOURS];
} Probe;

struct SketchCalibration
{
	const SketchModel *model;
	int				   count;
	Probe			  *probes;
	float			  *queries;	 /* count x dims */
	float			  *centred;	 /* the same, centred */
	float			  *rows;	 /* block x dims, centred */
	float			  *products; /* block x count */
};

SketchCalibration *
sketch_calibration_create(const SketchModel *model, const float *queries, int count, int block)
{
	const size_t	   dims = (size_t) model->parameters.shape.dims;
	SketchCalibration *calibration = math_alloc(1, sizeof(SketchCalibration));

	calibration->model = model;
	calibration->count = count;
	calibration->probes = math_alloc((size_t) count, sizeof(Probe));
	calibration->queries = math_alloc((size_t) count * dims, sizeof(float));
	calibration->centred = math_alloc((size_t) count * dims, sizeof(float));
	calibration->rows = math_alloc((size_t) block * dims, sizeof(float));
	calibration->products = math_alloc((size_t) block * (size_t) count, sizeof(float));
	memcpy(calibration->queries, queries, (size_t) count * dims * sizeof(float));
	for (int j = 0; j < count; j++)
	{
		SketchQuery *query =
			sketch_query(model, queries + (size_t) j * dims, (SketchErrors) {1.0F, 1.0F});

		sketch_centre_query(model, queries + (size_t) j * dims,
							calibration->centred + (size_t) j * dims, query);
		calibration->probes[j].query = query;
	}
	return calibration;
}

void
sketch_calibration_free(SketchCalibration *calibration)
{
	for (int j = 0; j < calibration->count; j++)
		math_free(calibration->probes[j].query);
	math_free(calibration->probes);
	math_free(calibration->queries);
	math_free(calibration->centred);
	math_free(calibration->rows);
	math_free(calibration->products);
	math_free(calibration);
}

/* Keeps a row among the nearest of a query. */
static void
keep_neighbour(Probe *probe, Neighbour neighbour)
{
	int place = probe->count < SKETCH_NEIGHBOURS ? probe->count++ : SKETCH_NEIGHBOURS - 1;

	for (; place > 0 && probe->nearest[place - 1].measure > neighbour.measure; place--)
		probe->nearest[place] = probe->nearest[place - 1];
	probe->nearest[place] = neighbour;
}

void
sketch_calibrate(SketchCalibration *calibration, const float *rows, int count,
				 const uint64_t *words, const uint32_t *numbers)
{
	const SketchModel *model = calibration->model;
	const SketchShape *shape = &model->parameters.shape;
	const bool		   is_product = model->parameters.metric == SKETCH_IP;
	const size_t	   dims = (size_t) shape->dims;
	const size_t	   row_bytes = dims * sizeof(float);

	for (int t = 0; t < count; t++)
		sketch_centre(model, rows + (size_t) t * dims, calibration->rows + (size_t) t * dims);
	multiply_f(false, true, count, calibration->count, shape->dims, is_product ? -1.0F : -2.0F,
			   calibration->rows, shape->dims, calibration->centred, shape->dims, 0.0F,
			   calibration->products, calibration->count);
	for (int t = 0; t < count; t++)
	{
		const float	   *row = rows + (size_t) t * dims;
		const uint64_t *code = words + (size_t) t * (size_t) sketch_code_words(shape);
		const float	   *centred = calibration->rows + (size_t) t * dims;
		const double	n = is_product ? -sketch_mean_product(model, centred)
									   : squared_length(centred, shape->dims);

		/* of rows that are fetched in any case, and of those that come last, there is no error */
		if (numbers[t] == SKETCH_UNKNOWN || numbers[t] == SKETCH_FAR)
			continue;
		for (int j = 0; j < calibration->count; j++)
		{
			Probe	 *probe = &calibration->probes[j];
			Neighbour neighbour;

			neighbour.measure =
				probe->query->unit *
				(probe->query->n_weight * n + probe->query->base +
				 calibration->products[(size_t) t * (size_t) calibration->count + j]);
			if (!sketch_query_usable(probe->query))
				continue;
			if (probe->count == SKETCH_NEIGHBOURS &&
				!(neighbour.measure < probe->nearest[SKETCH_NEIGHBOURS - 1].measure))
				continue;
			if (!probe->left_out &&
				memcmp(row, calibration->queries + (size_t) j * dims, row_bytes) == 0)
			{
				probe->left_out = true;
				continue;
			}
			neighbour.coarse = sketch_coarse_estimate(probe->query, code, numbers[t]);
			neighbour.fine = sketch_fine_estimate(probe->query, code);
			keep_neighbour(probe, neighbour);
		}
	}
}

/* How many standard errors lie between an estimate and what it must not exceed. */
static double
errors_needed(SketchEstimate estimate, double measure)
{
	const double excess = estimate.measure - measure;

	/* without an error the estimate is right, but for rounding */
	if (fabs(excess) >= MAX_ERRORS * estimate.error)
		return excess > 0.0 && estimate.error > 0.0 ? MAX_ERRORS : 0.0;
	return excess / estimate.error;
}

/* The standard errors that all neighbours need, by one look, and cautiously or not; how many there are. */
static int
collect_errors(const SketchCalibration *calibration, bool fine, bool cautious, double *errors)
{
	int count = 0;

	for (int j = 0; j < calibration->count; j++)
	{
		const Probe *probe = &calibration->probes[j];

		/* a row is found in time if its bound does not exceed the last neighbour's measure */
		for (int i = 0; i < SKETCH_NEIGHBOURS && probe->count == SKETCH_NEIGHBOURS; i++)
		{
			const Neighbour *neighbour = &probe->nearest[i];
			const Neighbour *last = cautious ? neighbour : &probe->nearest[SKETCH_NEIGHBOURS - 1];

			errors[count++] =
				errors_needed(fine ? neighbour->fine : neighbour->coarse, last->measure);
		}
	}
	return count;
}

void
sketch_calibration_finish(const SketchCalibration *calibration, SketchParameters *parameters)
{
	double *errors = math_alloc((size_t) calibration->count * SKETCH_NEIGHBOURS, sizeof(double));

	for (int cautious = 0; cautious < 2; cautious++)
	{
		SketchErrors *found = cautious ? parameters->cautious_errors : parameters->errors;

		for (int fine = 0; fine < 2; fine++)
		{
			const int count = collect_errors(calibration, fine, cautious, errors);

			sort_numbers(errors, count);
			for (int i = 0; i < SKETCH_RECALLS && count > 0; i++)
			{
				const float error = (float) quantile(errors, count, sketch_recalls[i]);

				*(fine ? &found[i].fine : &found[i].coarse) = error;
			}
		}
	}
	math_free(errors);
}

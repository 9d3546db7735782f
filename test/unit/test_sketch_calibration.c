/*
 * test_sketch_calibration.c
 *		How many standard errors a search allows for, against the true nearest rows.
 */
#include "sketches.h"

/* Of a query's nearest ten, the shares that are found: by the first look, the second, and both. */
typedef struct Shares
{
	double coarse;
	double fine;
	double both;
} Shares;

/*
 * Adds to the shares those of a query: rows whose bound, by so many standard errors, does not exceed
 * the tenth's measure; by sorting all.
 */
static void
add_found(const Sketches *made, const float *row, SketchErrors allowed, bool cautious,
		  Shares *shares)
{
	const SketchParameters *parameters = &made->model->parameters;
	SketchQuery			   *query = sketch_query(made->model, row, allowed);
	double				   *measures = math_alloc((size_t) made->count, sizeof(double));
	double					last = -INFINITY;

	for (int t = 0; t < made->count; t++)
		measures[t] = true_measure(parameters->metric,
								   made->rows + (size_t) t * (size_t) made->dims, row, made->dims);
	for (int i = 0; i < SKETCH_NEIGHBOURS; i++)
	{
		double next = INFINITY;

		for (int t = 0; t < made->count; t++)
			next = measures[t] > last ? fmin(next, measures[t]) : next;
		last = next;
	}
	for (int t = 0; t < made->count; t++)
	{
		const double   limit = cautious ? measures[t] : last;
		SketchEstimate coarse;
		SketchEstimate fine;
		bool		   by_signs;
		bool		   by_code;

		if (measures[t] > last)
			continue;
		coarse = sketch_coarse_estimate(query, code_of(made, t), made->numbers[t]);
		fine = sketch_fine_estimate(query, code_of(made, t));
		by_signs = coarse.measure - allowed.coarse * coarse.error <= limit;
		by_code = fine.measure - allowed.fine * fine.error <= limit;
		shares->coarse += by_signs / (double) SKETCH_NEIGHBOURS;
		shares->fine += by_code / (double) SKETCH_NEIGHBOURS;
		shares->both += (by_signs && by_code) / (double) SKETCH_NEIGHBOURS;
	}
	math_free(query);
	math_free(measures);
}

static void
test_calibration(SketchMetric metric)
{
	const int		   dims = 120;
	const int		   probes = 100;
	float			  *data = make_rows(ROWS + 2 * probes, dims, 60, 11);
	const float		  *calibrated = data + (size_t) ROWS * (size_t) dims;
	const float		  *others = calibrated + (size_t) probes * (size_t) dims;
	Sketches		   made;
	SketchParameters  *parameters;
	SketchCalibration *calibration;

	for (int t = 0; t < ROWS + 2 * probes && metric == SKETCH_COSINE; t++)
		(void) sketch_normalise(data + (size_t) t * (size_t) dims, dims);
	made = make_sketches(data, ROWS, dims, 64, metric);
	parameters = &made.model->parameters;
	calibration = sketch_calibration_create(made.model, calibrated, probes, BLOCK);
	for (int t = 0; t < ROWS; t += BLOCK)
	{
		const int count = ROWS - t < BLOCK ? ROWS - t : BLOCK;

		sketch_calibrate(calibration, made.rows + (size_t) t * (size_t) dims, count,
						 code_of(&made, t), made.numbers + t);
	}
	sketch_calibration_finish(calibration, parameters);
	sketch_calibration_free(calibration);
	for (int i = 0; i < SKETCH_RECALLS; i += 2)
	{
		const double	   recall = sketch_recalls[i];
		const SketchErrors errors = parameters->errors[i];
		Shares			   found = {.both = 0.0};
		Shares			   cautious = {.both = 0.0};
		Shares			   others_found = {.both = 0.0};

		for (int j = 0; j < probes; j++)
		{
			const size_t offset = (size_t) j * (size_t) dims;

			add_found(&made, calibrated + offset, errors, false, &found);
			add_found(&made, calibrated + offset, parameters->cautious_errors[i], true, &cautious);
			add_found(&made, others + offset, sketch_errors(parameters, recall, false), false,
					  &others_found);
		}
		ok(fabs(found.coarse / probes - recall) < 0.0025 &&
			   fabs(found.fine / probes - recall) < 0.0025,
		   "%s: each look finds %g of the nearest: %.4f, %.4f", metric_names[metric], recall,
		   found.coarse / probes, found.fine / probes);
		ok(fabs(cautious.coarse / probes - recall) < 0.0025 &&
			   fabs(cautious.fine / probes - recall) < 0.0025,
		   "%s: cautiously, too: %.4f, %.4f", metric_names[metric], cautious.coarse / probes,
		   cautious.fine / probes);
		ok(others_found.both / probes > recall - 0.03,
		   "%s: both find %g of other queries' nearest: %.4f", metric_names[metric], recall,
		   others_found.both / probes);
	}
	free_sketches(&made);
}

/* What a calibration by some of the rows finds, and by a row once more. */
static SketchParameters
calibrate(const Sketches *made, int from, int to, const float *query, int again, int times)
{
	SketchParameters   parameters = made->model->parameters;
	SketchCalibration *calibration = sketch_calibration_create(made->model, query, 1, BLOCK);

	for (int t = from; t < to; t++)
		sketch_calibrate(calibration, made->rows + (size_t) t * (size_t) made->dims, 1,
						 code_of(made, t), made->numbers + t);
	for (int i = 0; i < times; i++)
		sketch_calibrate(calibration, made->rows + (size_t) again * (size_t) made->dims, 1,
						 code_of(made, again), made->numbers + again);
	sketch_calibration_finish(calibration, &parameters);
	sketch_calibration_free(calibration);
	return parameters;
}

/* A row of the table as query: the calibration leaves it out once, and no other. */
static void
test_self(void)
{
	const int		 dims = 40;
	Sketches		 made = make_sketches(make_rows(600, dims, 20, 5), 600, dims, 64, SKETCH_L2);
	SketchParameters parameters[3];
	SketchParameters none;

	for (int times = 0; times < 3; times++)
		parameters[times] = calibrate(&made, 50, 600, made.rows, 0, times);
	ok(memcmp(&parameters[0], &parameters[1], sizeof(SketchParameters)) == 0,
	   "a query that is a row leaves itself out");
	ok(memcmp(&parameters[0], &parameters[2], sizeof(SketchParameters)) != 0, "but only once");
	none = calibrate(&made, 0, 0, made.rows, 0, 0);
	ok(none.errors[5].coarse == 2.33F && none.errors[5].fine == 2.33F,
	   "without rows the errors are normal deviates");
	free_sketches(&made);
}

static bool
is_about(double number, double expected)
{
	return fabs(number - expected) < 1e-5;
}

/* Errors for the recalls between those that are known. */
static void
test_recalls(void)
{
	SketchParameters parameters = {.metric = SKETCH_L2};
	bool			 rising = true;
	bool			 exact = true;

	for (int i = 0; i < SKETCH_RECALLS; i++)
	{
		parameters.errors[i] = (SketchErrors) {(float) i + 1.0F, 2.0F * (float) i};
		parameters.cautious_errors[i] = (SketchErrors) {(float) i + 2.0F, 3.0F * (float) i};
	}
	/* the first look misses a quarter of what is missed, the second the rest */
	for (int i = 0; i < SKETCH_RECALLS; i++)
	{
		const double miss = 1.0 - sketch_recalls[i];

		exact &= is_about(sketch_errors(&parameters, 1.0 - 4.0 * miss, false).coarse, i + 1);
		exact &= is_about(sketch_errors(&parameters, 1.0 - miss / 0.75, false).fine, 2 * i);
		exact &= is_about(sketch_errors(&parameters, 1.0 - miss / 0.75, true).fine, 3 * i);
	}
	for (int i = 0; i < 10000; i++)
	{
		const SketchErrors lower = sketch_errors(&parameters, i * 1e-4, false);
		const SketchErrors higher = sketch_errors(&parameters, (i + 1) * 1e-4, false);

		rising &= lower.coarse <= higher.coarse && lower.fine <= higher.fine;
	}
	ok(exact, "errors are those that are known for a recall");
	ok(rising, "errors rise with the recall");
	ok(isfinite(sketch_errors(&parameters, 1.0, false).coarse) &&
		   isfinite(sketch_errors(&parameters, 1.0, false).fine),
	   "up to 1");
}

int
main(void)
{
	require_linalg();
	for (SketchMetric metric = SKETCH_L2; metric <= SKETCH_IP; metric++)
		test_calibration(metric);
	test_self();
	test_recalls();
	return done_testing();
}

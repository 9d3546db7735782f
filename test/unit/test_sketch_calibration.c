/*
 * test_sketch_calibration.c
 *		How many standard errors a search allows for, against the true nearest rows.
 */
#include "sketches.h"

/*
 * The share of a query's nearest ten whose bound, by so many standard errors, does not exceed
 * the tenth's measure; by sorting all.
 */
static double
share_found(const Sketches *made, const float *row, double allowed, bool cautious)
{
	const SketchParameters *parameters = &made->model->parameters;
	SketchQuery			   *query = sketch_query(made->model, row, allowed);
	double				   *measures = math_alloc((size_t) made->count, sizeof(double));
	double					last = -INFINITY;
	int						found = 0;

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
		double estimate;
		double error;

		if (measures[t] > last)
			continue;
		sketch_estimate(query, made->words + (size_t) t * (size_t) parameters->shape.words,
						made->numbers[t], &estimate, &error);
		found += estimate - allowed * error <= (cautious ? measures[t] : last);
	}
	math_free(query);
	math_free(measures);
	return found / (double) SKETCH_NEIGHBOURS;
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
						 made.words + (size_t) t * (size_t) parameters->shape.words,
						 made.numbers + t);
	}
	sketch_calibration_finish(calibration, parameters);
	sketch_calibration_free(calibration);
	for (int i = 0; i < SKETCH_RECALLS; i += 2)
	{
		const double recall = sketch_recalls[i];
		double		 found = 0.0;
		double		 cautious = 0.0;
		double		 others_found = 0.0;

		for (int j = 0; j < probes; j++)
		{
			const size_t offset = (size_t) j * (size_t) dims;

			found += share_found(&made, calibrated + offset,
								 sketch_errors(parameters, recall, false), false);
			cautious += share_found(&made, calibrated + offset,
									sketch_errors(parameters, recall, true), true);
			others_found += share_found(&made, others + offset,
										sketch_errors(parameters, recall, false), false);
		}
		ok(fabs(found / probes - recall) < 0.0025 && fabs(cautious / probes - recall) < 0.0025,
		   "%s: %g of the nearest are found: %.4f, cautiously %.4f", metric_names[metric], recall,
		   found / probes, cautious / probes);
		ok(others_found / probes > recall - 0.03, "%s: %g of other queries: %.4f",
		   metric_names[metric], recall, others_found / probes);
	}
	free_sketches(&made);
}

/* Rows of the table as queries: the calibration leaves each out once, and no other. */
static void
test_self(void)
{
	const int		   dims = 40;
	Sketches		   made = make_sketches(make_rows(600, dims, 20, 5), 600, dims, 64, SKETCH_L2);
	SketchParameters   with = made.model->parameters;
	SketchParameters   without = with;
	SketchCalibration *calibration = sketch_calibration_create(made.model, made.rows, 50, BLOCK);

	/* all rows but the queries themselves, and then all rows */
	for (int pass = 0; pass < 2; pass++)
	{
		for (int t = pass == 0 ? 50 : 0; t < 600; t += 50)
			sketch_calibrate(calibration, made.rows + (size_t) t * (size_t) dims, 50,
							 made.words + (size_t) t, made.numbers + t);
		sketch_calibration_finish(calibration, pass == 0 ? &without : &with);
		sketch_calibration_free(calibration);
		calibration = sketch_calibration_create(made.model, made.rows, 50, BLOCK);
	}
	sketch_calibration_finish(calibration, &made.model->parameters);
	ok(fabsf(with.errors[5] - without.errors[5]) < 0.5F && with.errors[5] != without.errors[5],
	   "a query that is a row leaves itself out: %.2f, %.2f", (double) with.errors[5],
	   (double) without.errors[5]);
	ok(made.model->parameters.errors[5] == 2.33F, "without rows the errors are normal deviates");
	sketch_calibration_free(calibration);
	free_sketches(&made);
}

static void
test_recalls(void)
{
	SketchParameters parameters = {.errors = {1, 2, 3, 4, 5, 6, 7, 8},
								   .cautious_errors = {2, 3, 4, 5, 6, 7, 8, 9}};
	bool			 rising = true;

	for (int i = 0; i < SKETCH_RECALLS; i++)
		rising &= fabs(sketch_errors(&parameters, sketch_recalls[i], false) - (i + 1)) < 1e-6 &&
				  fabs(sketch_errors(&parameters, sketch_recalls[i], true) - (i + 2)) < 1e-6;
	for (int i = 0; i < 10000; i++)
		rising &= sketch_errors(&parameters, i * 1e-4, false) <=
				  sketch_errors(&parameters, (i + 1) * 1e-4, false);
	ok(rising, "errors rise with the recall");
	ok(isfinite(sketch_errors(&parameters, 1.0, false)), "up to 1");
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

/*
 * recent_rows.c
 *		The last projected rows of a young model, in the order they came, for a rotation that
 *		looks at them.
 *
 * They are stored with the model, so they are kept small: each is a scale and integers of
 * eight bits, which is as exact as judging distances needs.
 */
#include <math.h>
#include <string.h>

#include "memory.h"
#include "model.h"

/* Room for them, which only a young model has. */
void
recent_prepare(Model *model)
{
	const size_t rows = (size_t) model->config.rotation->recent;

	if (model->recent_scales == NULL)
		model->recent_scales = math_alloc(rows, sizeof(float));
	if (model->recent == NULL)
		model->recent = math_alloc(rows * (size_t) model->config.bits, sizeof(int8_t));
}

void
recent_forget(Model *model)
{
	if (model->recent != NULL)
		math_free(model->recent);
	if (model->recent_scales != NULL)
		math_free(model->recent_scales);
	model->recent = NULL;
	model->recent_scales = NULL;
	model->recent_rows = 0;
}

static void
round_row(const double *row, int bits, int8_t *rounded, float *scale)
{
	double largest = 0.0;

	for (int i = 0; i < bits; i++)
		largest = fmax(largest, fabs(row[i]));
	*scale = (float) (largest / INT8_MAX);
	for (int i = 0; i < bits; i++)
		rounded[i] = largest > 0.0 ? (int8_t) lrint(row[i] / largest * INT8_MAX) : 0;
}

/* Adds rows, and drops the first ones if there would be more than most. */
void
recent_keep(Model *model, const double *projected, int rows, int most)
{
	const size_t bits = (size_t) model->config.bits;
	const int	 fresh = rows < most ? rows : most;
	const int	 room = most - fresh;
	const int	 kept = model->recent_rows < room ? model->recent_rows : room;
	const size_t dropped = (size_t) (model->recent_rows - kept);

	recent_prepare(model);
	memmove(model->recent, model->recent + dropped * bits, (size_t) kept * bits);
	memmove(model->recent_scales, model->recent_scales + dropped, (size_t) kept * sizeof(float));
	for (int t = 0; t < fresh; t++)
		round_row(projected + (size_t) (rows - fresh + t) * bits, model->config.bits,
				  model->recent + (size_t) (kept + t) * bits, model->recent_scales + kept + t);
	model->recent_rows = kept + fresh;
}

/* The rows, measured so that their mean square is 1; false if they are zero. */
bool
recent_read(const Model *model, float *rows)
{
	const size_t bits = (size_t) model->config.bits;
	const size_t size = (size_t) model->recent_rows * bits;
	double		 squares = 0.0;
	double		 scale;

	for (size_t i = 0; i < size; i++)
		squares += pow((double) model->recent_scales[i / bits] * model->recent[i], 2);
	scale = sqrt((double) size / squares);
	if (!(squares > 0.0) || !isfinite(scale))
		return false;
	for (size_t i = 0; i < size; i++)
		rows[i] = (float) (scale * model->recent_scales[i / bits] * model->recent[i]);
	return true;
}

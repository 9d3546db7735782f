/*
 * rotation_neighbour.c
 *		The rotation that keeps neighbours together best, whatever variance the bits get.
 */
#include "model.h"

static const Schedule schedule = {.angle = 0.07, .rows = 4096};

static void
adapt(Model *model)
{
	neighbours_turn(model, schedule, false);
}

static void
note(Model *model, const double *projected, int rows)
{
	neighbours_note(model, projected, rows, schedule);
}

const Rotation rotation_neighbour = {
	.name = "neighbour",
	.stored = true,
	.recent = NEIGHBOUR_ROWS,
	.start = rotation_start_random,
	.adapt = adapt,
	.note = note,
};

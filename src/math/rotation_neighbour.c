/*
 * rotation_neighbour.c
 *		The rotation that keeps neighbours together best, whatever variance the bits get.
 */
#include "model.h"

static void
adapt(Model *model, double *rotation)
{
	neighbours_turn(model, rotation, false);
}

const Rotation rotation_neighbour = {
	.name = "neighbour",
	.stored = true,
	.recent = NEIGHBOUR_ROWS,
	.start = rotation_start_random,
	.adapt = adapt,
	.note = neighbours_note,
};

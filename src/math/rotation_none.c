/*
 * rotation_none.c
 *		No rotation: R is the identity.
 */
#include "model.h"

static void
start(const Model *model, double *rotation)
{
	const int bits = model->config.bits;

	for (int i = 0; i < bits; i++)
		rotation[(size_t) i * bits + i] = 1.0;
}

const Rotation rotation_none = {
	.name = "none",
	.start = start,
};

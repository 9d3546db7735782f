/*
 * methods.c
 *		The trackers and rotations by number: numbers are stored, so that entries never move.
 */
#include "model.h"

const Tracker *const trackers[] = {
	&tracker_opast,
	&tracker_osh,
	&tracker_lsh,
	&tracker_hadamard,
};

const int tracker_count = sizeof(trackers) / sizeof(trackers[0]);

const Rotation *const rotations[] = {
	&rotation_unifdiag, &rotation_random, &rotation_none,
	&rotation_isohash,	&rotation_itq,	  &rotation_neighbour,
};

const int rotation_count = sizeof(rotations) / sizeof(rotations[0]);

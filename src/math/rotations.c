/*
 * rotations.c
 *		The rotation methods by number: numbers are stored, so that entries never move.
 */
#include "model.h"

const Rotation *const rotations[] = {
	&rotation_unifdiag, &rotation_random, &rotation_none,
	&rotation_isohash,	&rotation_itq,	  &rotation_neighbour,
};

const int rotation_count = sizeof(rotations) / sizeof(rotations[0]);

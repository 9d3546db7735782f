/*
 * trackers.c
 *		The trackers by number: numbers are stored, so that entries never move.
 */
#include "model.h"

const Tracker *const trackers[] = {
	&tracker_opast,
	&tracker_osh,
	&tracker_lsh,
	&tracker_hadamard,
};

const int tracker_count = sizeof(trackers) / sizeof(trackers[0]);

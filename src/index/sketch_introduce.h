/*
 * sketch_introduce.h
 *		A model for an index that was made before its rows.
 */
#ifndef UNIFDIAG_SKETCH_INTRODUCE_H
#define UNIFDIAG_SKETCH_INTRODUCE_H

#include "sketch.h"

/* Whether it may be time for that; a few pages less than full are not seen from outside. */
extern bool sketch_may_introduce(Relation index);

/*
 * Learns a model if there is none and rows are enough, and gives all entries their codes; or ends what
 * somebody else has begun and left.  Does nothing if somebody is at it.  The caller has a snapshot
 * that keeps rows from being removed.
 */
extern void sketch_introduce(Relation heap, Relation index);

#endif /* UNIFDIAG_SKETCH_INTRODUCE_H */

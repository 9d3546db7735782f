/*
 * sketch_search.h
 *		The entries of a sketch index in the order of a lower bound of their distance.
 *
 * Results are keys, as nearest.h says, whose distances are the ranks of src/math/sketch.h: a rank
 * stands for a bound, and 0 for none.
 */
#ifndef UNIFDIAG_SKETCH_SEARCH_H
#define UNIFDIAG_SKETCH_SEARCH_H

#include "nearest.h"
#include "sketch.h"

typedef struct SketchSearch SketchSearch;

extern SketchSearch *sketch_search_create(Relation index);

/* by the distance from this vector, which is as sketch_read_vector makes it; or NULL: in any order */
extern void sketch_search_start(SketchSearch *search, const Vector *query);

/*
 * Whether entries may be left, and a bound: a share of rows as large as the recall that was asked for
 * has no smaller measure, the one that sketches estimate.
 */
extern bool sketch_search_bound(SketchSearch *search, double *bound);

/* looks for more, if all that was found has been taken and there may be more: then the bound changes */
extern bool sketch_search_look(SketchSearch *search);

/* the next key, of those that were found */
extern uint64 sketch_search_take(SketchSearch *search);

/* the keys that come next, as far as they are known already */
extern const uint64 *sketch_search_peek(const SketchSearch *search, int *count);

#endif /* UNIFDIAG_SKETCH_SEARCH_H */

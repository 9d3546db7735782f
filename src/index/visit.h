/*
 * visit.h
 *		Reading all pages of a flat index.
 */
#ifndef UNIFDIAG_VISIT_H
#define UNIFDIAG_VISIT_H

#include "../code/kernels.h"
#include "flat.h"

/*
 * Calls visit for each page of entries, and again from the start if entries have moved.  The
 * pages that come after it are told as far as their places in memory are known; they are not
 * locked, and may only be prefetched.
 */
typedef void (*FlatPageVisitor)(void *state, Page page, BlockNumber block,
								HammingUpcoming upcoming);

extern void
flat_visit_pages(Relation index, void (*start)(void *), FlatPageVisitor visit, void *state);

/* the same; calls between after each page, when none is locked, for what takes long */
extern void
flat_visit_pages_with_pauses(Relation index, void (*start)(void *), FlatPageVisitor visit,
							 void (*between)(void *), void *state);

/* calls visit for every step-th page of entries before block end, as they are */
extern void flat_visit_sample(Relation index, BlockNumber end, BlockNumber step,
							  FlatPageVisitor visit, void *state);

/* recent.c; between may be NULL */
extern void flat_visit_recent(Relation index, BlockNumber end, BlockNumber step, bool count_use,
							  FlatPageVisitor visit, void (*between)(void *), void *state);

#endif /* UNIFDIAG_VISIT_H */

/*
 * passes.h
 *		Passes over all pages of a flat index, each of which finds the nearest entries after
 *		the last one that was taken.
 *
 * The caller does not say how many entries it wants: the first pass keeps few, and each later one
 * more, until memory sets the limit.  README.md says how passes and VACUUM work together.
 */
#ifndef UNIFDIAG_PASSES_H
#define UNIFDIAG_PASSES_H

#include "nearest.h"
#include "visit.h"

typedef struct Passes
{
	Relation	  index;
	MemoryContext context;	/* of the keys */
	int			  first;	/* keys that the first pass keeps */
	Nearest		  nearest;	/* what the last pass found, or this one has found so far */
	int			  next;		/* of these, the first that has not been taken */
	bool		  complete; /* nothing lies after these */
	uint32		  horizon;	/* rank of the farthest distance that the pass looks at */
} Passes;

/* What a pass does: its state is passed to each. */
typedef struct PassVisitor
{
	void *state;
	void (*start)(void *state); /* the start of a pass, or of another attempt at it; or NULL */
	FlatPageVisitor count;		/* counts entries of a page by nearest_count; or NULL */
	FlatPageVisitor visit;		/* adds entries of a page by nearest_add */
} PassVisitor;

/* the first pass keeps so many keys; distances are at most so large; memory is the current context's */
extern void passes_init(Passes *passes, Relation index, int first);
extern void passes_set_distances(Passes *passes, int largest);

/* a new search, of which nothing has been found; it is complete if nothing is asked for */
extern void passes_start(Passes *passes, bool complete);

/* makes room for another pass, where keeping an entry takes so many bytes beside its key */
extern void passes_grow(Passes *passes, Size entry_bytes);

/* runs that pass */
extern void passes_run(Passes *passes, const PassVisitor *visitor);

/* passes that it takes to return so many entries */
extern double passes_needed(int first, double rows, Size entry_bytes);

/* whether all that the last pass found has been taken */
static inline bool
passes_used_up(const Passes *passes)
{
	return passes->next == passes->nearest.found;
}

/* takes the next key, if there is one */
static inline uint64
passes_take(Passes *passes)
{
	const uint64 key = passes->nearest.keys[passes->next++];

	passes->nearest.from = key + 1;
	return key;
}

#endif /* UNIFDIAG_PASSES_H */

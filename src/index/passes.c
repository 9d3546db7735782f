/*
 * passes.c
 *		Passes over all pages of a flat index, each of which finds the nearest entries after
 *		the last one that was taken.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "passes.h"

/* how many times more entries than the last one each pass keeps */
#define KEEP_GROWTH 4

/* what it keeps at the least, if entries are so large that memory does not suffice */
#define MIN_KEEP 16

/* a sample of an index has about so many of the entries that the first pass keeps, and so many pages */
#define SAMPLE_SHARE 8
#define MIN_SAMPLE 4

void
passes_init(Passes *passes, Relation index, int first)
{
	memset(passes, 0, sizeof(*passes));
	passes->index = index;
	passes->context = CurrentMemoryContext;
	passes->first = first;
}

void
passes_set_distances(Passes *passes, int largest)
{
	MemoryContext caller = MemoryContextSwitchTo(passes->context);

	nearest_init(&passes->nearest, largest);
	MemoryContextSwitchTo(caller);
}

void
passes_start(Passes *passes, bool complete)
{
	passes->nearest.found = 0;
	passes->nearest.keep = 0;
	passes->nearest.from = 0;
	passes->next = 0;
	passes->complete = complete;
}

/* How many entries the next pass keeps: more than the last, but in memory that is allowed. */
static int
next_keep(int first, int keep, Size entry_bytes)
{
	const Size bytes = NEAREST_BYTES + entry_bytes;
	const Size allowed = Max(Min((Size) work_mem * 1024, MaxAllocSize) / bytes, MIN_KEEP);
	const Size wanted = keep == 0 ? (Size) first : (Size) keep * KEEP_GROWTH;

	return (int) Min(wanted, allowed);
}

double
passes_needed(int first, double rows, Size entry_bytes)
{
	int	   keep = next_keep(first, 0, entry_bytes);
	double passes = 1.0;

	/* until passes do not grow any more */
	while (rows > keep && next_keep(first, keep, entry_bytes) > keep)
	{
		rows -= keep;
		keep = next_keep(first, keep, entry_bytes);
		passes += 1.0;
	}
	return passes + floor(rows / keep);
}

void
passes_grow(Passes *passes, Size entry_bytes)
{
	Nearest	  *nearest = &passes->nearest;
	const bool is_first = nearest->keep == 0;

	nearest->keep = next_keep(passes->first, nearest->keep, entry_bytes);
	passes->horizon = is_first ? 0 : rank_of(nearest, NULL_DISTANCE);
	if (nearest->room < NEAREST_ROOM * nearest->keep)
	{
		if (nearest->room > 0)
		{
			pfree(nearest->keys);
			pfree(nearest->spare);
		}
		nearest->room = NEAREST_ROOM * nearest->keep;
		nearest->keys = MemoryContextAlloc(passes->context, sizeof(uint64) * nearest->room);
		nearest->spare = MemoryContextAlloc(passes->context, sizeof(uint64) * nearest->room);
	}
}

/*
 * How far the first pass looks.  A pass learns as it goes how far away the last entry is that it
 * should keep; until then it looks too far, and finds too much.  In a large index a sample tells
 * beforehand: to where it has its share of the entries wanted, and three standard deviations
 * more.  If that is still too near, the next pass finds the others.
 */
static uint32
guess_horizon(Passes *passes, const PassVisitor *visitor)
{
	Nearest			 *nearest = &passes->nearest;
	const BlockNumber end = flat_read_meta(passes->index).end;
	const int		  keep = nearest->keep;
	const int		  step = Max(passes->first / SAMPLE_SHARE, 1);
	const double	  share = (double) keep / step;

	nearest_start(nearest, rank_of(nearest, NULL_DISTANCE));
	if (visitor->count == NULL || end < (BlockNumber) (MIN_SAMPLE * step))
		return nearest->farthest;
	/* counting only to so many leaves the horizon as the farthest rank of interest */
	nearest->keep = (int) (share + 3.0 * sqrt(share)) + 3;
	flat_visit_sample(passes->index, end, step, visitor->count, visitor->state);
	nearest->keep = keep;
	return nearest->farthest;
}

typedef struct Pass
{
	Passes			  *passes;
	const PassVisitor *visitor;
} Pass;

static void
start_pass(void *state)
{
	const Pass *pass = state;

	nearest_start(&pass->passes->nearest, pass->passes->horizon);
	if (pass->visitor->start != NULL)
		pass->visitor->start(pass->visitor->state);
}

static void
visit_page(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	const PassVisitor *visitor = ((const Pass *) state)->visitor;

	visitor->visit(visitor->state, page, block, upcoming);
}

void
passes_run(Passes *passes, const PassVisitor *visitor)
{
	Nearest		*nearest = &passes->nearest;
	const uint32 all = rank_of(nearest, NULL_DISTANCE);
	Pass		 pass = {.passes = passes, .visitor = visitor};

	if (passes->horizon != all)
		passes->horizon = guess_horizon(passes, visitor);
	flat_visit_pages(passes->index, start_pass, visit_page, &pass);
	nearest_finish(nearest);
	passes->complete = nearest->found < nearest->keep && passes->horizon == all;
	passes->next = 0;
}

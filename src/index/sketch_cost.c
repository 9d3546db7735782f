/*
 * sketch_cost.c
 *		What a search costs.
 *
 * A search reads all pages, once for each batch of entries, fetches the rows that may be near, and
 * computes their distances.  That is all done before the first row can be returned.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

#include "../compat.h"
#include "passes.h"
#include "sketch.h"

/*
 * A page in memory with all bounds on it takes 0.25 us, and a row that is fetched, with a vector that
 * is stored out of line, 4 us, where the executor's operators take 10 ns each: measured in the
 * queries for which make bench shows times.
 */
#define OPERATORS_PER_PAGE 25.0
#define OPERATORS_PER_FETCH 400.0

/* What the index says of itself. */
typedef struct IndexState
{
	double pages;	  /* that a search reads */
	bool   has_model; /* that tells which rows may be near */
} IndexState;

static IndexState
read_state(const IndexOptInfo *index)
{
	IndexState state = {.pages = index->pages, .has_model = true};

	if (!index->hypothetical)
	{
		Relation	   relation = index_open(index->indexoid, NoLock);
		const FlatMeta meta = flat_read_meta(relation);

		state.pages = meta.end;
		state.has_model = meta.model != 0 && meta.learning == 0;
		index_close(relation, NoLock);
	}
	return state;
}

/* An index that every search reads as a whole is in memory, if it fits there: see hamming_cost.c. */
static Cost
pass_cost(double pages)
{
	const double outside = Max(pages - effective_cache_size, 0.0);

	return pages * OPERATORS_PER_PAGE * cpu_operator_cost + outside * seq_page_cost;
}

/*
 * How many rows are fetched before the first one can be returned.  With 256 bits and a recall of .99 it
 * was 33 to 46 of 60000 to 150000, and 96 of 1000000; without a model it is all of them.
 */
static double
rows_before_first(double rows, bool has_model)
{
	return has_model && sketch_recall_setting < 1.0 ? Min(rows, 24.0 + sqrt(rows) / 16.0) : rows;
}

void
sketch_cost_estimate(PlannerInfo *root, IndexPath *path, double loops pg_attribute_unused(),
					 Cost *startup, Cost *total, Selectivity *selectivity, double *correlation,
					 double *pages)
{
	const double	 rows = path->indexinfo->tuples;
	const IndexState state = read_state(path->indexinfo);
	const Cost		 pass = pass_cost(state.pages);
	const Cost		 fetch = OPERATORS_PER_FETCH * cpu_operator_cost;

	*startup = pass;
	if (path->indexorderbys != NIL)
		*startup += rows_before_first(rows, state.has_model) * fetch;
	*total = Max(*startup, pass * passes_needed(SKETCH_FIRST_KEEP, rows, 0) + rows * fetch);
	/* the share of the table's rows that the index has, if it is partial */
	*selectivity = clauselist_selectivity(root, add_predicate_to_index_quals(path->indexinfo, NIL),
										  path->indexinfo->rel->relid, JOIN_INNER, NULL);
	*correlation = 0.0;
	*pages = state.pages;
}

/*
 * hamming_cost.c
 *		What a search costs.
 *
 * A search reads all pages, once for each batch of rows that it returns, and computes
 * distances at memory speed.  Then the executor fetches the rows, which the planner adds.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

#include "../compat.h"
#include "hamming_search.h"

/*
 * A page in memory with all distances on it takes 0.2 to 0.4 us, where the executor's
 * operators take 10 ns each: measured in the same queries for which make bench shows times.
 */
#define OPERATORS_PER_PAGE 40.0

/* a row that is kept and sorted: about as much as a comparison for each doubling */
#define OPERATORS_PER_ROW 2.0

/* The share of the table's rows that the conditions leave, and the index's own if it is partial. */
static Selectivity
condition_selectivity(PlannerInfo *root, IndexPath *path)
{
	List	 *conditions = NIL;
	ListCell *cell;

	/* as the planner sees the conditions themselves */
	foreach (cell, path->indexclauses)
		conditions = lappend(conditions, lfirst_node(IndexClause, cell)->rinfo);
	return clauselist_selectivity(root, add_predicate_to_index_quals(path->indexinfo, conditions),
								  path->indexinfo->rel->relid, JOIN_INNER, NULL);
}

/*
 * An index that every search reads as a whole is in memory, if it fits there at all: only
 * what does not fit is read, one page after the other.
 */
static Cost
pass_cost(double pages)
{
	const double outside = Max(pages - effective_cache_size, 0.0);

	return pages * OPERATORS_PER_PAGE * cpu_operator_cost + outside * seq_page_cost;
}

/* The pages that a search reads: after VACUUM the file may be longer than the index. */
static double
pages_to_read(const IndexOptInfo *index)
{
	Relation relation;
	double	 pages;

	if (index->hypothetical)
		return index->pages;
	relation = index_open(index->indexoid, NoLock);
	pages = flat_read_meta(relation).end;
	index_close(relation, NoLock);
	return pages;
}

/* The bytes of a code as far as the planner sees them, if codes are returned, or else -1. */
static int
returned_bytes(const IndexPath *path, double pages)
{
	const double entry = pages * BLCKSZ / Max(path->indexinfo->tuples, 1.0);
	const int	 longest = BITHASH_BYTES(BITHASH_MAX_BITS);

	if (path->path.pathtype != T_IndexOnlyScan)
		return -1;
	return (int) Min(entry, longest);
}

void
hamming_cost_estimate(PlannerInfo *root, IndexPath *path, double loops pg_attribute_unused(),
					  Cost *startup, Cost *total, Selectivity *selectivity, double *correlation,
					  double *pages)
{
	const double live = pages_to_read(path->indexinfo);
	const Cost	 pass = pass_cost(live);
	double		 rows;

	*selectivity = condition_selectivity(root, path);
	rows = clamp_row_est(Min(*selectivity * path->indexinfo->rel->tuples, path->indexinfo->tuples));
	*startup = pass;
	*total = pass * hamming_search_passes(rows, returned_bytes(path, live)) +
			 rows * OPERATORS_PER_ROW * log2(rows + 1.0) * cpu_operator_cost;
	*correlation = 0.0;
	*pages = live;
}

/*
 * sketch_search.c
 *		Searching a sketch index: what a pass does with each page.
 *
 * A search keeps to the model that it began with.  While a model is being introduced, there are pages
 * with and without codes, and a page's entries would change their ranks between two passes: until that
 * has ended, a search takes all entries as unknown.
 */
#include "postgres.h"

#include <math.h>

#include "utils/float.h"
#include "utils/memutils.h"

#include "../code/distance.h"
#include "../compat.h"
#include "passes.h"
#include "sketch_model.h"
#include "sketch_search.h"

struct SketchSearch
{
	Relation	  index;
	MemoryContext context; /* of the search */
	MemoryContext query_context;
	bool		  everything; /* no distance decides */
	SketchQuery	 *query;	  /* NULL if no entry can be estimated */
	uint32		  model;	  /* to which the query belongs */
	Passes		  passes;
	FlatLayout	  codes;
	FlatLayout	  nulls;
	const uint8 **columns; /* of a page */
	HammingMatch *matches;
	uint64		 *code; /* of a match */
};

SketchSearch *
sketch_search_create(Relation index)
{
	SketchSearch *search = palloc0(sizeof(SketchSearch));

	search->index = index;
	search->context = CurrentMemoryContext;
	search->query_context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch query", ALLOCSET_DEFAULT_SIZES);
	search->nulls = flat_layout(FLAT_NULLS, 0);
	passes_init(&search->passes, index, SKETCH_FIRST_KEEP);
	passes_set_distances(&search->passes, SKETCH_RANKS);
	return search;
}

/* Is the index so much larger than what its model was calibrated with that neighbours are nearer? */
static bool
has_grown(const FlatMeta *flat, const FlatLayout *codes, SketchReady *ready)
{
	const double pages = (double) flat->end - sketch_model_pages(&ready->model.parameters.shape);

	/* the last page may be nearly empty */
	return (pages - 1.0) * codes->capacity > 2.0 * (double) ready->calibrated;
}

static bool
is_zero(const Vector *vector)
{
	for (int i = 0; i < vector->dims; i++)
	{
		if (vector->values[i] != 0.0F)
			return false;
	}
	return true;
}

/* Makes the query by the index's model, if there is one and if it can estimate anything. */
static void
make_query(SketchSearch *search, const FlatMeta *flat, const SketchMeta *meta, const Vector *vector)
{
	SketchReady	 *ready;
	MemoryContext caller;
	SketchErrors  errors;

	if (sketch_recall_setting >= 1.0 || (meta->metric == SKETCH_COSINE && is_zero(vector)))
		return;
	ready = sketch_ready(search->index, flat->model);
	if (ready == NULL)
		return; /* VACUUM has found no more entries in the meantime */
	errors = sketch_errors(&ready->model.parameters, sketch_recall_setting,
						   has_grown(flat, &search->codes, ready));
	caller = MemoryContextSwitchTo(search->query_context);
	search->query = sketch_query(&ready->model, vector->values, errors);
	search->model = flat->model;
	MemoryContextSwitchTo(caller);
}

void
sketch_search_start(SketchSearch *search, const Vector *query)
{
	FlatMeta		 flat;
	const SketchMeta meta = sketch_read_meta(search->index, &flat);
	FlatLayout		 codes;

	codes = flat_codes_layout(&flat);
	if (codes.capacity != search->codes.capacity || codes.words != search->codes.words)
	{
		search->columns = MemoryContextAlloc(search->context, sizeof(uint8 *) * (codes.words + 1));
		search->matches = MemoryContextAlloc(search->context,
											 sizeof(HammingMatch) * (codes.capacity + MATCH_ROOM));
		search->code = MemoryContextAlloc(search->context, sizeof(uint64) * codes.words);
	}
	search->codes = codes;
	search->everything = query == NULL;
	search->query = NULL;
	search->model = 0;
	MemoryContextReset(search->query_context);
	if (query != NULL && flat.dims != 0 && query->dims != (int) flat.dims)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("vectors have different dimensions: %d and %d", (int) flat.dims,
					   query->dims));
	if (query != NULL && flat.model != 0 && flat.learning == 0)
		make_query(search, &flat, &meta, query);
	passes_start(&search->passes, false);
}

/*
 * Asks for all lines of what a second look at a match reads beyond its signs.  Always inlined: gcc drops a
 * prefetch from a function otherwise.
 */
static inline __attribute__((always_inline)) void
prefetch_rest(Page page, const FlatLayout *layout, HammingMatch match)
{
	const uint8 *rest = FlatPageGetRest(page, layout, match.position);
	const uint8 *end = rest + flat_rest_bytes(layout);

	for (; rest < end; rest += CACHE_LINE)
		__builtin_prefetch(rest);
	__builtin_prefetch(end - 1);
}

/* The second look at a match of a page, by all of its code. */
static uint32
refine_match(SketchSearch *search, Page page, HammingMatch match)
{
	const FlatLayout *layout = &search->codes;
	const uint32	  number = FlatPageGetNumbers(page, layout)[match.position];
	uint32			  disagreement;

	if (number == SKETCH_UNKNOWN || number == SKETCH_FAR)
		return match.distance;
	flat_page_get_code(page, layout, match.position, (uint8 *) search->code);
	disagreement =
		sketch_kernel->disagreement(search->code, layout->columns, search->query->fine_planes);
	return sketch_refine(search->query, search->code, disagreement, match.distance);
}

/*
 * The sketches of a page that are within a rank by their signs, and which of them still are after a
 * second look.  Meanwhile those of other pages are prefetched.
 */
static size_t
find_within(SketchSearch *search, Page page, int count, HammingUpcoming upcoming)
{
	const FlatLayout   *layout = &search->codes;
	const SketchColumns sketches = {
		.columns = search->columns,
		.ncolumns = layout->columns,
		.numbers = (const uint8 *) FlatPageGetNumbers(page, layout),
		.count = count,
		.score = &search->query->score,
		.radius = Min(search->passes.nearest.farthest, SKETCH_RANKS),
		.upcoming = upcoming,
		.payload = (const uint8 *) FlatPageGetTids(page, layout),
		.payload_bytes = sizeof(ItemPointerData),
	};
	size_t nmatches;
	size_t left = 0;

	for (int column = 0; column < layout->columns; column++)
		search->columns[column] = FlatPageGetWords(page, layout, column);
	nmatches = sketch_kernel->within(&sketches, search->matches);
	for (size_t i = 0; i < nmatches; i++)
		prefetch_rest(page, layout, search->matches[i]);
	for (size_t i = 0; i < nmatches; i++)
	{
		HammingMatch match = search->matches[i];

		match.distance = (uint16) refine_match(search, page, match);
		search->matches[left] = match;
		left += match.distance <= sketches.radius;
	}
	return left;
}

/* Has the page codes by the query's model? */
static bool
can_estimate(const SketchSearch *search, const FlatContents *contents)
{
	return search->query != NULL && contents->model == search->model;
}

/* All entries of a page, at the same rank. */
static void
add_all(SketchSearch *search, Page page, const FlatContents *contents, uint32 rank)
{
	for (int entry = 0; entry < contents->count; entry++)
		nearest_add(&search->passes.nearest,
					nearest_key(rank, &FlatPageGetTids(page, contents->layout)[entry]));
}

static void
search_page(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	SketchSearch	  *search = state;
	Nearest			  *nearest = &search->passes.nearest;
	const FlatContents contents =
		flat_page_contents(search->index, page, block, &search->codes, &search->nulls);

	if (contents.layout == &search->codes && can_estimate(search, &contents))
	{
		const size_t nmatches = find_within(search, page, contents.count, upcoming);

		for (size_t i = 0; i < nmatches; i++)
		{
			const HammingMatch match = search->matches[i];

			nearest_add(nearest,
						nearest_key(match.distance,
									&FlatPageGetTids(page, &search->codes)[match.position]));
		}
	}
	else if (contents.layout == &search->codes)
		add_all(search, page, &contents, search->everything ? NULL_DISTANCE : 0);
	else if (contents.layout == &search->nulls &&
			 nearest->farthest == rank_of(nearest, NULL_DISTANCE))
		add_all(search, page, &contents, NULL_DISTANCE);
}

/* Counts the entries of a page by their rank. */
static void
count_ranks(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	SketchSearch	  *search = state;
	Nearest			  *nearest = &search->passes.nearest;
	const FlatContents contents =
		flat_page_contents(search->index, page, block, &search->codes, &search->nulls);
	size_t nmatches;

	if (contents.layout != &search->codes || !can_estimate(search, &contents))
		return;
	nmatches = find_within(search, page, contents.count, upcoming);
	for (size_t i = 0; i < nmatches; i++)
	{
		if (search->matches[i].distance <= nearest->farthest)
			nearest_count(nearest, search->matches[i].distance);
	}
}

static void
run_pass(SketchSearch *search)
{
	const PassVisitor visitor = {
		.state = search, .count = search->query != NULL ? count_ranks : NULL, .visit = search_page};

	passes_grow(&search->passes, 0);
	passes_run(&search->passes, &visitor);
}

/* The bound that goes with a key's rank. */
static double
bound_of(const SketchSearch *search, uint64 key)
{
	if (KEY_DISTANCE(key) == NULL_DISTANCE)
		return get_float8_infinity();
	if (search->query == NULL)
		return -get_float8_infinity();
	return sketch_bound(search->query, KEY_DISTANCE(key));
}

bool
sketch_search_bound(SketchSearch *search, double *bound)
{
	const Passes *passes = &search->passes;

	if (!passes_used_up(passes))
		*bound = bound_of(search, passes->nearest.keys[passes->next]);
	else if (!passes->complete)
		/* what the next pass finds comes after the last key */
		*bound = bound_of(search, passes->nearest.from);
	else
		return false;
	return true;
}

bool
sketch_search_look(SketchSearch *search)
{
	if (!passes_used_up(&search->passes) || search->passes.complete)
		return false;
	run_pass(search);
	return true;
}

uint64
sketch_search_take(SketchSearch *search)
{
	return passes_take(&search->passes);
}

const uint64 *
sketch_search_peek(const SketchSearch *search, int *count)
{
	const Passes *passes = &search->passes;

	*count = passes->nearest.found - passes->next;
	return passes->nearest.keys + passes->next;
}

/*
 * hamming_search.c
 *		Searching a hamming index: passes over all its pages.
 *
 * passes.c runs the passes; here is what each does with a page.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "../code/distance.h"
#include "../compat.h"
#include "hamming_page.h"
#include "hamming_search.h"
#include "passes.h"

/* entries that the first pass of a search keeps */
#define FIRST_KEEP 1024

struct HammingSearch
{
	Relation	  index;
	MemoryContext context; /* the search's own */
	HammingQuery  query;

	/* the distance from this code, at most limit, decides; other balls only filter */
	bool		  nothing;	  /* no entry is asked for */
	bool		  everything; /* no distance decides: there is no code, or it is NULL */
	BitHashView	  center;
	uint32		  limit;
	HammingBall **filters;
	int			  nfilters;

	Passes			passes;
	HammingFoundSet found; /* with their codes, if codes are to be returned */

	/* the index, and room for a page's columns, all set when its code length is known */
	int			  nbits;
	FlatLayout	  codes;
	FlatLayout	  nulls;
	uint64		 *words;   /* of the centre */
	const uint8 **columns; /* of a page */
	HammingMatch *matches;
	uint8		 *code; /* one */
};

HammingSearch *
hamming_search_create(Relation index)
{
	HammingSearch *search = palloc0(sizeof(HammingSearch));

	search->index = index;
	search->context = CurrentMemoryContext;
	passes_init(&search->passes, index, FIRST_KEEP);
	search->nulls = flat_layout(FLAT_NULLS, 0);
	search->codes = flat_layout(FLAT_CODES, 0);
	return search;
}

static bool
same_code(BitHashView a, BitHashView b)
{
	return a.nbits == b.nbits && memcmp(a.bits, b.bits, BITHASH_BYTES(a.nbits)) == 0;
}

/* Chooses what decides: the query of an ordered search, or else the first ball. */
void
hamming_search_start(HammingSearch *search, const HammingQuery *query)
{
	int first_filter = 0;

	search->query = *query;
	search->nothing = false;
	search->everything = query->ordered ? query->code_is_null : query->nballs == 0;
	search->limit = BITHASH_MAX_BITS;
	search->nfilters = 0;
	if (query->ordered && !query->code_is_null)
		search->center = query->code;
	else if (!query->ordered && query->nballs > 0)
	{
		search->center = ball_center(query->balls[0]);
		search->limit = (uint32) Max(query->balls[0]->radius, 0);
		search->nothing = query->balls[0]->radius < 0;
		first_filter = 1;
	}
	if (query->nballs > first_filter && search->filters != NULL)
		pfree(search->filters);
	if (query->nballs > first_filter)
		search->filters =
			MemoryContextAlloc(search->context, query->nballs * sizeof(HammingBall *));
	for (int i = first_filter; i < query->nballs; i++)
	{
		HammingBall *ball = query->balls[i];

		if (ball->radius < 0)
			search->nothing = true;
		else if (!search->everything && same_code(ball_center(ball), search->center))
			search->limit = Min(search->limit, (uint32) ball->radius);
		else
			search->filters[search->nfilters++] = ball;
	}
	passes_start(&search->passes, search->nothing);
}

static bool
in_all_filters(HammingSearch *search, Page page, int entry)
{
	const BitHashView code = {.nbits = search->nbits, .bits = search->code};

	flat_page_get_code(page, &search->codes, entry, search->code);
	for (int i = 0; i < search->nfilters; i++)
	{
		const HammingBall *ball = search->filters[i];

		if (hamming_distance_views(code, ball_center(ball)) > ball->radius)
			return false;
	}
	return true;
}

/* Mostly there are no filters, which should cost nothing. */
static inline bool
in_filters(HammingSearch *search, Page page, int entry)
{
	return search->nfilters == 0 || in_all_filters(search, page, entry);
}

/* The codes of a page that are within a radius.  Meanwhile those of other pages are prefetched. */
static size_t
find_within(HammingSearch *search, Page page, int count, uint32 radius, HammingUpcoming upcoming)
{
	HammingColumns codes = hamming_page_codes(page, &search->codes, count, search->columns);

	hamming_set_query(&codes, search->words, radius);
	codes.upcoming = upcoming;
	return hamming_kernel->within(&codes, search->matches);
}

/* Mostly codes are not returned, which should cost nothing, either. */
static inline void
add_entry(HammingSearch *search, Page page, const FlatLayout *layout, int entry, uint32 distance)
{
	const uint64 key = nearest_key(distance, &FlatPageGetTids(page, layout)[entry]);

	if (nearest_add(&search->passes.nearest, key) && search->query.table != NULL)
		found_add(&search->found, &search->passes.nearest, key, page, layout, entry);
}

static void
search_codes(HammingSearch *search, Page page, int count, HammingUpcoming upcoming)
{
	const uint32 radius = Min(search->passes.nearest.farthest, search->limit);
	size_t		 nmatches;

	hamming_check_lengths(search->nbits, search->center.nbits);
	nmatches = find_within(search, page, count, radius, upcoming);
	for (size_t i = 0; i < nmatches; i++)
	{
		const HammingMatch match = search->matches[i];

		if (in_filters(search, page, match.position))
			add_entry(search, page, &search->codes, match.position, match.distance);
	}
}

/* Entries that are in no order. */
static void
search_unordered(HammingSearch *search, Page page, const FlatLayout *layout, int count)
{
	for (int entry = 0; entry < count; entry++)
	{
		if (layout->kind == FLAT_NULLS || in_filters(search, page, entry))
			add_entry(search, page, layout, entry, NULL_DISTANCE);
	}
}

static void
search_page(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	HammingSearch	  *search = state;
	const FlatContents contents =
		flat_page_contents(search->index, page, block, &search->codes, &search->nulls);

	if (contents.layout == &search->codes)
	{
		if (search->everything)
			search_unordered(search, page, contents.layout, contents.count);
		else
			search_codes(search, page, contents.count, upcoming);
	}
	else if (contents.layout == &search->nulls && search->query.nballs == 0 &&
			 search->passes.nearest.farthest == rank_of(&search->passes.nearest, NULL_DISTANCE))
		search_unordered(search, page, contents.layout, contents.count);
}

/* Makes room for what depends on the codes' length, and lays the centre out in words. */
static void
set_code_length(HammingSearch *search, int nbits)
{
	MemoryContext caller = MemoryContextSwitchTo(search->context);

	if (search->words == NULL || search->nbits != nbits)
	{
		search->nbits = nbits;
		passes_set_distances(&search->passes, nbits);
		search->codes = flat_layout(FLAT_CODES, nbits);
		search->words = palloc(sizeof(uint64) * search->codes.words);
		search->columns = palloc(sizeof(uint8 *) * search->codes.words);
		search->matches = palloc(sizeof(HammingMatch) * (search->codes.capacity + MATCH_ROOM));
		search->code = palloc(search->codes.nbytes);
	}
	if (!search->everything && search->center.nbits == nbits)
		hamming_query_words(search->center, &search->codes, search->words);
	MemoryContextSwitchTo(caller);
}

/* The start of a pass, or of another attempt at it: no codes have been found. */
static void
start_pass(void *state)
{
	HammingSearch *search = state;

	found_start(&search->found);
}

/* Counts the codes of a page by their distance. */
static void
count_distances(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	HammingSearch	  *search = state;
	Nearest			  *nearest = &search->passes.nearest;
	const FlatContents contents =
		flat_page_contents(search->index, page, block, &search->codes, &search->nulls);
	size_t nmatches;

	if (contents.layout != &search->codes)
		return;
	nmatches =
		find_within(search, page, contents.count, Min(nearest->farthest, search->limit), upcoming);
	for (size_t i = 0; i < nmatches; i++)
	{
		if (search->matches[i].distance <= nearest->farthest)
			nearest_count(nearest, search->matches[i].distance);
	}
}

/* What it takes to keep an entry, if codes are returned, which have so many bytes, or -1. */
static Size
entry_bytes(int nbytes)
{
	return nbytes < 0 ? 0 : found_bytes(nbytes);
}

double
hamming_search_passes(double rows, int nbytes)
{
	return passes_needed(FIRST_KEEP, rows, entry_bytes(nbytes));
}

static void
run_pass(HammingSearch *search)
{
	Passes	   *passes = &search->passes;
	const bool	with_codes = search->query.table != NULL;
	PassVisitor visitor = {.state = search, .start = start_pass, .visit = search_page};

	set_code_length(search, (int) flat_read_meta(search->index).nbits);
	passes_grow(passes, entry_bytes(with_codes ? search->codes.nbytes : -1));
	if (with_codes)
	{
		MemoryContext caller = MemoryContextSwitchTo(search->context);

		found_init(&search->found, search->query.table, search->codes.nbytes, &passes->nearest);
		MemoryContextSwitchTo(caller);
	}
	if (search->query.ordered && !search->everything && search->center.nbits == search->nbits)
		visitor.count = count_distances;
	passes_run(passes, &visitor);
	if (with_codes)
		found_finish(&search->found, &passes->nearest);
}

bool
hamming_search_next(HammingSearch *search, uint64 *key)
{
	while (passes_used_up(&search->passes) && !search->passes.complete)
		run_pass(search);
	if (passes_used_up(&search->passes))
		return false;
	*key = passes_take(&search->passes);
	return true;
}

const HammingFound *
hamming_search_found(const HammingSearch *search)
{
	return found_get(&search->found, search->passes.next - 1);
}

BitHashView
hamming_search_code(const HammingSearch *search)
{
	const BitHashView code = {.nbits = search->nbits, .bits = hamming_search_found(search)->code};

	return code;
}

const uint64 *
hamming_search_peek(const HammingSearch *search, int *count)
{
	const Passes *passes = &search->passes;

	*count = passes->nearest.found - passes->next;
	return passes->nearest.keys + passes->next;
}

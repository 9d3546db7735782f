/*
 * search.c
 *		Searching a hamming index: passes over all its pages.
 *
 * A pass finds the nearest entries behind the last one returned, as many as it was told to
 * keep.  Whoever asks does not say how many it wants: the first pass keeps few, and each
 * that follows more, until memory sets the limit.  src/README.md says how passes and
 * VACUUM get along.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../code/distance.h"
#include "../compat.h"
#include "search.h"

/* entries that the first pass keeps, and how many times more each next one does */
#define FIRST_KEEP 1024
#define KEEP_GROWTH 4

/* what it keeps at the least, if with their codes entries are so large that memory does not suffice
 */
#define MIN_KEEP 16

/* a sample of an index is one page of so many, and at least so many */
#define SAMPLE_STEP 128
#define MIN_SAMPLE 4

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

	HammingNearest nearest;	 /* what the last pass found, or this one has found so far */
	int			   next;	 /* of these, the first that has not been returned */
	bool		   complete; /* nothing lies behind these */
	uint32		   horizon;	 /* rank of the farthest distance that the pass looks at */

	HammingFoundSet found; /* with their codes, if codes are to be returned */

	/* the index, and room for a page's columns, all set when its code length is known */
	int			  nbits;
	HammingLayout codes;
	HammingLayout nulls;
	int			  ncolumns;
	uint64		 *words;   /* of the centre */
	const uint8 **columns; /* of a page */
	uint64		 *rest;	   /* its last column, widened */
	HammingMatch *matches;
	uint8		 *code; /* one */
};

HammingSearch *
hamming_search_create(Relation index)
{
	HammingSearch *search = palloc0(sizeof(HammingSearch));

	search->index = index;
	search->context = CurrentMemoryContext;
	search->nulls = hamming_layout(HAMMING_NULLS, 0);
	search->codes = hamming_layout(HAMMING_CODES, 0);
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
	search->nearest.found = 0;
	search->nearest.keep = 0;
	search->nearest.last = 0;
	search->next = 0;
	search->complete = search->nothing;
}

static bool
in_all_filters(HammingSearch *search, Page page, int entry)
{
	const BitHashView code = {.nbits = search->nbits, .bits = search->code};

	hamming_page_get_code(page, &search->codes, entry, search->code);
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

/* Points at a page's columns; the last, if it has no whole words, is widened to such. */
static void
find_columns(HammingSearch *search, Page page, int count, HammingUpcoming upcoming)
{
	const HammingLayout *layout = &search->codes;
	const uint8			*rest = HammingPageGetRest(page, layout);

	for (int column = 0; column < layout->words; column++)
		search->columns[column] = HammingPageGetWords(page, layout, column);
	if (layout->rest == 0)
		return;
	for (int i = 0; i < count * layout->rest; i += CACHE_LINE)
		prefetch_likes(upcoming, rest + i);
	for (int i = 0; i < count; i++)
		search->rest[i] = load_word(rest + i * layout->rest, layout->rest);
	search->columns[layout->words] = (const uint8 *) search->rest;
}

/*
 * How many columns are read of all codes.  The others are read only of codes that are near enough
 * in these, one here and one there, which is faster only if hardly any are.  Unrelated codes
 * differ from the query in half of their bits; but learnt bits are not independent, and so there
 * must be seven times as many bits as the radius, and a column more.
 */
static size_t
columns_to_read(const HammingSearch *search, uint32 radius)
{
	return Min(7 * radius / 64 + 1, (size_t) search->ncolumns);
}

/* The codes of a page that are within a radius.  Meanwhile those of other pages are prefetched. */
static size_t
find_within(HammingSearch *search, Page page, int count, uint32 radius, HammingUpcoming upcoming)
{
	const HammingLayout *layout = &search->codes;
	const HammingColumns codes = {
		.columns = search->columns,
		.ncolumns = search->ncolumns,
		.count = count,
		.query = search->words,
		.radius = radius,
		.first = columns_to_read(search, radius),
		.upcoming = upcoming,
		.stored = layout->words,
		.payload = (const uint8 *) HammingPageGetTids(page, layout),
		.payload_bytes = sizeof(ItemPointerData),
	};

	find_columns(search, page, count, upcoming);
	return hamming_kernel->within(&codes, search->matches);
}

/* Mostly codes are not returned, which should cost nothing, either. */
static inline void
add_entry(HammingSearch *search, Page page, const HammingLayout *layout, int entry, uint32 distance)
{
	const uint64 key = nearest_key(distance, &HammingPageGetTids(page, layout)[entry]);

	if (nearest_add(&search->nearest, key) && search->query.table != NULL)
		found_add(&search->found, &search->nearest, key, page, layout, entry);
}

static void
search_codes(HammingSearch *search, Page page, int count, HammingUpcoming upcoming)
{
	const uint32 radius = Min(search->nearest.farthest, search->limit);
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
search_unordered(HammingSearch *search, Page page, const HammingLayout *layout, int count)
{
	for (int entry = 0; entry < count; entry++)
	{
		if (layout->kind == HAMMING_NULLS || in_filters(search, page, entry))
			add_entry(search, page, layout, entry, NULL_DISTANCE);
	}
}

static void
search_page(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	HammingSearch		 *search = state;
	const HammingContents contents =
		hamming_page_contents(search->index, page, block, &search->codes, &search->nulls);

	if (contents.layout == &search->codes)
	{
		if (search->everything)
			search_unordered(search, page, contents.layout, contents.count);
		else
			search_codes(search, page, contents.count, upcoming);
	}
	else if (contents.layout == &search->nulls && search->query.nballs == 0 &&
			 search->nearest.farthest == rank_of(&search->nearest, NULL_DISTANCE))
		search_unordered(search, page, contents.layout, contents.count);
}

/* Makes room for what depends on the codes' length, and lays the centre out in words. */
static void
set_code_length(HammingSearch *search, int nbits)
{
	MemoryContext caller = MemoryContextSwitchTo(search->context);
	const int	  nbytes = BITHASH_BYTES(nbits);

	if (search->words == NULL || search->nbits != nbits)
	{
		search->nbits = nbits;
		nearest_init(&search->nearest, nbits);
		search->codes = hamming_layout(HAMMING_CODES, nbits);
		search->ncolumns = (nbytes + 7) / 8;
		search->words = palloc(sizeof(uint64) * search->ncolumns);
		search->columns = palloc(sizeof(uint8 *) * search->ncolumns);
		search->rest = palloc(sizeof(uint64) * search->codes.capacity);
		search->matches = palloc(sizeof(HammingMatch) * (search->codes.capacity + MATCH_ROOM));
		search->code = palloc(nbytes);
	}
	if (!search->everything && search->center.nbits == nbits)
	{
		for (int column = 0; column < search->ncolumns; column++)
			search->words[column] =
				load_word(search->center.bits + 8 * column, Min(8, nbytes - 8 * column));
	}
	MemoryContextSwitchTo(caller);
}

/* The start of a pass, or of another attempt at it. */
static void
start_pass(void *state)
{
	HammingSearch *search = state;

	nearest_start(&search->nearest, search->horizon);
	found_start(&search->found);
}

/* Counts the codes of a page by their distance. */
static void
count_distances(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	HammingSearch		 *search = state;
	HammingNearest		 *nearest = &search->nearest;
	const HammingContents contents =
		hamming_page_contents(search->index, page, block, &search->codes, &search->nulls);
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

/*
 * How far the first pass of an ordered search looks.  A pass learns as it goes how far away
 * the last entry is that it should keep; until then it looks too far, and finds too much.
 * In a large index a sample tells beforehand: to where it has its share of the entries wanted,
 * and three standard deviations more.  If that is still too near, the next pass finds the others.
 */
static uint32
guess_horizon(HammingSearch *search, BlockNumber end)
{
	HammingNearest *nearest = &search->nearest;
	const int		keep = nearest->keep;
	const double	share = (double) keep / SAMPLE_STEP;

	nearest_start(nearest, rank_of(nearest, NULL_DISTANCE));
	if (!search->query.ordered || search->everything || search->center.nbits != search->nbits ||
		end < MIN_SAMPLE * SAMPLE_STEP)
		return nearest->farthest;
	/* counting only to so many leaves the horizon as the farthest rank of interest */
	nearest->keep = (int) (share + 3.0 * sqrt(share)) + 3;
	hamming_visit_sample(search->index, end, SAMPLE_STEP, count_distances, search);
	nearest->keep = keep;
	return nearest->farthest;
}

/*
 * How many entries the next pass keeps: more than the last, but in memory that is allowed.  If
 * codes are returned, nbytes is their length, and else -1.
 */
static int
next_keep(int keep, int nbytes)
{
	const Size bytes = NEAREST_BYTES + (nbytes < 0 ? 0 : found_bytes(nbytes));
	const Size allowed = Max(Min((Size) work_mem * 1024, MaxAllocSize) / bytes, MIN_KEEP);
	const Size wanted = keep == 0 ? FIRST_KEEP : (Size) keep * KEEP_GROWTH;

	return (int) Min(wanted, allowed);
}

double
hamming_search_passes(double rows, int nbytes)
{
	int	   keep = next_keep(0, nbytes);
	double passes = 1.0;

	/* until passes do not grow any more */
	while (rows > keep && next_keep(keep, nbytes) > keep)
	{
		rows -= keep;
		keep = next_keep(keep, nbytes);
		passes += 1.0;
	}
	return passes + floor(rows / keep);
}

/* Makes room for what a pass keeps. */
static void
make_room(HammingSearch *search, bool with_codes)
{
	HammingNearest *nearest = &search->nearest;
	MemoryContext	caller = MemoryContextSwitchTo(search->context);

	if (nearest->room < NEAREST_ROOM * nearest->keep)
	{
		if (nearest->room > 0)
		{
			pfree(nearest->keys);
			pfree(nearest->spare);
		}
		nearest->room = NEAREST_ROOM * nearest->keep;
		nearest->keys = palloc(sizeof(uint64) * nearest->room);
		nearest->spare = palloc(sizeof(uint64) * nearest->room);
	}
	if (with_codes)
		found_init(&search->found, search->query.table, search->codes.nbytes, nearest);
	MemoryContextSwitchTo(caller);
}

static void
run_pass(HammingSearch *search)
{
	HammingNearest *nearest = &search->nearest;
	HammingMeta		meta = hamming_read_meta(search->index);
	const bool		first = nearest->keep == 0;
	const bool		with_codes = search->query.table != NULL;

	set_code_length(search, (int) meta.nbits);
	nearest->keep = next_keep(nearest->keep, with_codes ? search->codes.nbytes : -1);
	make_room(search, with_codes);
	search->horizon = first ? guess_horizon(search, meta.end) : rank_of(nearest, NULL_DISTANCE);
	hamming_visit_pages(search->index, start_pass, search_page, search);
	nearest_finish(nearest);
	if (with_codes)
		found_finish(&search->found, nearest);
	search->complete =
		nearest->found < nearest->keep && search->horizon == rank_of(nearest, NULL_DISTANCE);
	search->next = 0;
}

bool
hamming_search_next(HammingSearch *search, uint64 *key)
{
	while (search->next == search->nearest.found && !search->complete)
		run_pass(search);
	if (search->next == search->nearest.found)
		return false;
	*key = search->nearest.last = search->nearest.keys[search->next++];
	return true;
}

const HammingFound *
hamming_search_found(const HammingSearch *search)
{
	return found_get(&search->found, search->next - 1);
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
	*count = search->nearest.found - search->next;
	return search->nearest.keys + search->next;
}

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
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

#include "../code/distance.h"
#include "../compat.h"
#include "search.h"

/* entries that the first pass keeps, and how many times more each next one does */
#define FIRST_KEEP 1024
#define KEEP_GROWTH 4

/* codes that a sample of the index should have, and how many times more a large one has */
#define SAMPLE 4096
#define LARGE_INDEX 32

/* keys there is room for, for each that is kept: forgetting the others takes time as well */
#define ROOM 4

struct HammingSearch
{
	Relation		index;
	MemoryContext	context; /* the search's own */
	HammingQuestion question;

	/* the distance from this code, at most limit, decides; other balls only filter */
	bool		  nothing;	  /* no entry is asked for */
	bool		  everything; /* no distance decides: there is no code, or it is NULL */
	BitHashView	  center;
	uint32		  limit;
	HammingBall **filters;
	int			  nfilters;

	/* sorted: what the last pass found; during a pass, what has been found so far */
	uint64 *keys;
	int		found;
	int		next;
	int		keep;
	int		room;	  /* for keys */
	bool	complete; /* nothing lies behind these */
	uint64	last;	  /* keys up to this one have been returned */
	uint64	bound;	  /* keys from this one on are of no interest */
	uint32	horizon;  /* rank of the farthest distance that the pass looks at */
	uint32	farthest; /* rank of the farthest distance of interest, at most the horizon */
	int		closer;	  /* keys found that are closer than that */
	int	   *counts;	  /* keys found at each rank */

	/* the index, and room for a page's columns, all set when its code length is known */
	int			  nbits;
	HammingLayout codes;
	HammingLayout nulls;
	int			  ncolumns;
	uint64		 *words;   /* of the centre */
	const uint8 **columns; /* of a page */
	uint64		 *rest;	   /* its last column, widened */
	uint16		 *matches;
	uint8		 *code; /* one */
};

#define ST_SORT sort_keys
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

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
hamming_search_start(HammingSearch *search, const HammingQuestion *question)
{
	int first_filter = 0;

	search->question = *question;
	search->nothing = false;
	search->everything = question->ordered ? question->query_is_null : question->nballs == 0;
	search->limit = BITHASH_MAX_BITS;
	search->nfilters = 0;
	if (question->ordered && !question->query_is_null)
		search->center = question->query;
	else if (!question->ordered && question->nballs > 0)
	{
		search->center = ball_center(question->balls[0]);
		search->limit = (uint32) Max(question->balls[0]->radius, 0);
		search->nothing = question->balls[0]->radius < 0;
		first_filter = 1;
	}
	if (question->nballs > first_filter && search->filters != NULL)
		pfree(search->filters);
	if (question->nballs > first_filter)
		search->filters =
			MemoryContextAlloc(search->context, question->nballs * sizeof(HammingBall *));
	for (int i = first_filter; i < question->nballs; i++)
	{
		HammingBall *ball = question->balls[i];

		if (ball->radius < 0)
			search->nothing = true;
		else if (!search->everything && same_code(ball_center(ball), search->center))
			search->limit = Min(search->limit, (uint32) ball->radius);
		else
			search->filters[search->nfilters++] = ball;
	}
	search->found = 0;
	search->next = 0;
	search->keep = 0;
	search->last = 0;
	search->complete = search->nothing;
}

/* Brings the smallest count keys to the front. */
static void
select_smallest(uint64 *keys, int n, int count)
{
	int low = 0;
	int high = n - 1;

	/* Hoare's selection: what is left and right of the pivot changes places */
	while (low < high)
	{
		const uint64 pivot = keys[low + (high - low) / 2];
		int			 i = low;
		int			 j = high;

		while (i <= j)
		{
			while (keys[i] < pivot)
				i++;
			while (keys[j] > pivot)
				j--;
			if (i <= j)
			{
				const uint64 swap = keys[i];

				keys[i++] = keys[j];
				keys[j--] = swap;
			}
		}
		if (count - 1 <= j)
			high = j;
		else if (count - 1 >= i)
			low = i;
		else
			break;
	}
}

/*
 * The rank of a distance: the distance itself, and for NULL the one behind the largest.
 * Ranks are few, so that keys can be counted by rank.
 */
static inline uint32
rank_of(const HammingSearch *search, uint32 distance)
{
	return distance == NULL_DISTANCE ? (uint32) search->nbits + 1 : distance;
}

static void
count_key(HammingSearch *search, uint32 rank)
{
	search->counts[rank]++;
	search->closer += rank < search->farthest;
	/* if there are enough closer ones, the farthest are of no interest any more */
	while (search->closer >= search->keep)
		search->closer -= search->counts[--search->farthest];
}

/*
 * Makes room: forgets keys that are too far, and if nearly all are at the farthest distance,
 * those with the largest TIDs.
 */
static void
shrink(HammingSearch *search)
{
	int left = 0;

	for (int i = 0; i < search->found; i++)
	{
		search->keys[left] = search->keys[i];
		left += rank_of(search, KEY_DISTANCE(search->keys[i])) <= search->farthest;
	}
	search->found = left;
	if (left <= search->room / 2)
		return;

	select_smallest(search->keys, search->found, search->keep);
	search->found = search->keep;
	search->bound = 0;
	search->closer = 0;
	memset(search->counts, 0, sizeof(int) * (search->nbits + 2));
	for (int i = 0; i < search->keep; i++)
	{
		search->bound = Max(search->bound, search->keys[i]);
		count_key(search, rank_of(search, KEY_DISTANCE(search->keys[i])));
	}
}

static inline void
add_key(HammingSearch *search, uint32 distance, ItemPointer tid)
{
	const uint64 key = (uint64) distance << 48 |
					   (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
					   ItemPointerGetOffsetNumberNoCheck(tid);

	if (key <= search->last || key >= search->bound)
		return;
	search->keys[search->found++] = key;
	count_key(search, rank_of(search, distance));
	if (search->found == search->room)
		shrink(search);
}

static bool
in_filters(HammingSearch *search, Page page, int entry)
{
	const BitHashView code = {.nbits = search->nbits, .bits = search->code};

	if (search->nfilters == 0)
		return true;
	hamming_page_get_code(page, &search->codes, entry, search->code);
	for (int i = 0; i < search->nfilters; i++)
	{
		const HammingBall *ball = search->filters[i];

		if (hamming_distance_views(code, ball_center(ball)) > ball->radius)
			return false;
	}
	return true;
}

/* Points at a page's columns; the last, if it has no whole words, is widened to such. */
static void
find_columns(HammingSearch *search, Page page, int count)
{
	const HammingLayout *layout = &search->codes;
	const uint8			*rest = HammingPageGetRest(page, layout);

	for (int column = 0; column < layout->words; column++)
		search->columns[column] = HammingPageGetWords(page, layout, column);
	if (layout->rest == 0)
		return;
	for (int i = 0; i < count; i++)
		search->rest[i] = load_word(rest + i * layout->rest, layout->rest);
	search->columns[layout->words] = (const uint8 *) search->rest;
}

static uint32
distance_of(const HammingSearch *search, int entry)
{
	uint32 distance = 0;

	for (int column = 0; column < search->ncolumns; column++)
		distance += pg_popcount64(load_word(search->columns[column] + 8 * entry, 8) ^
								  search->words[column]);
	return distance;
}

static void
search_codes(HammingSearch *search, Page page, int count)
{
	ItemPointer tids = HammingPageGetTids(page, &search->codes);
	size_t		nmatches;

	hamming_check_lengths(search->nbits, search->center.nbits);
	find_columns(search, page, count);
	nmatches = hamming_kernel->within(search->columns, search->ncolumns, count, search->words,
									  Min(search->farthest, search->limit), search->matches);
	for (size_t i = 0; i < nmatches; i++)
	{
		const int entry = search->matches[i];

		if (in_filters(search, page, entry))
			add_key(search, distance_of(search, entry), &tids[entry]);
	}
}

/* Entries that no distance tells apart. */
static void
search_alike(HammingSearch *search, Page page, const HammingLayout *layout, int count)
{
	ItemPointer tids = HammingPageGetTids(page, layout);

	for (int entry = 0; entry < count; entry++)
	{
		if (layout->kind == HAMMING_NULLS || in_filters(search, page, entry))
			add_key(search, NULL_DISTANCE, &tids[entry]);
	}
}

static void
search_page(void *state, Page page, BlockNumber block)
{
	HammingSearch *search = state;
	int			   codes;
	int			   nulls;

	hamming_check_page(search->index, page, block, &search->codes, &search->nulls);
	codes = hamming_page_count(page, HAMMING_CODES);
	nulls = hamming_page_count(page, HAMMING_NULLS);
	/* codes that have come since we looked for their length are not for us */
	if (codes > 0 && search->nbits > 0)
	{
		if (search->everything)
			search_alike(search, page, &search->codes, codes);
		else
			search_codes(search, page, codes);
	}
	else if (nulls > 0 && search->question.nballs == 0 &&
			 search->farthest == rank_of(search, NULL_DISTANCE))
		search_alike(search, page, &search->nulls, nulls);
}

/* Makes room for what depends on the codes' length, and lays the centre out in words. */
static void
learn_length(HammingSearch *search, int nbits)
{
	MemoryContext caller = MemoryContextSwitchTo(search->context);
	const int	  nbytes = BITHASH_BYTES(nbits);

	if (search->counts == NULL || search->nbits != nbits)
	{
		search->nbits = nbits;
		search->counts = palloc(sizeof(int) * (nbits + 2));
		search->codes = hamming_layout(HAMMING_CODES, nbits);
		search->ncolumns = (nbytes + 7) / 8;
		search->words = palloc(sizeof(uint64) * search->ncolumns);
		search->columns = palloc(sizeof(uint8 *) * search->ncolumns);
		search->rest = palloc(sizeof(uint64) * search->codes.capacity);
		search->matches = palloc(sizeof(uint16) * search->codes.capacity);
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

	search->found = 0;
	search->bound = PG_UINT64_MAX;
	search->farthest = search->horizon;
	search->closer = 0;
	memset(search->counts, 0, sizeof(int) * (search->nbits + 2));
}

/* Counts the codes of a page by their distance. */
static void
count_distances(void *state, Page page, BlockNumber block)
{
	HammingSearch *search = state;
	int			   count;

	hamming_check_page(search->index, page, block, &search->codes, &search->nulls);
	count = hamming_page_count(page, HAMMING_CODES);
	find_columns(search, page, count);
	/* bits behind a code's end are zero, unless the page is damaged */
	for (int entry = 0; entry < count; entry++)
		search->counts[Min(distance_of(search, entry), (uint32) search->nbits)]++;
}

/*
 * How far the first pass of an ordered search looks.  A pass learns as it goes how far away
 * the last entry is that it should keep; until then it looks too far, and finds too much.
 * In a large index a few pages tell beforehand: to where there should be twice as many
 * entries as wanted, and somewhat farther, since a sample is inexact.  If that is still too
 * near, the next pass finds the others.
 */
static uint32
guess_horizon(HammingSearch *search)
{
	const uint32	  all = rank_of(search, NULL_DISTANCE);
	const BlockNumber blocks = RelationGetNumberOfBlocks(search->index);
	const BlockNumber pages = SAMPLE / Max(search->codes.capacity, 1) + 1;
	const double	  wanted = 2.0 * search->keep * pages / Max(blocks, 1) + 6.0;
	uint32			  rank = 0;
	int				  seen;

	if (!search->question.ordered || search->everything || search->center.nbits != search->nbits ||
		blocks / pages < LARGE_INDEX)
		return all;
	memset(search->counts, 0, sizeof(int) * (search->nbits + 2));
	hamming_visit_sample(search->index, blocks / pages, count_distances, search);
	for (seen = search->counts[0]; rank < all && seen < wanted; seen += search->counts[rank])
		rank++;
	return rank;
}

/* How many entries the next pass keeps: more than the last, but in memory that is allowed. */
static int
next_keep(int keep)
{
	const Size allowed = Min((Size) work_mem * 1024, MaxAllocSize) / (ROOM * sizeof(uint64));

	if (keep == 0)
		return FIRST_KEEP;
	return (int) Max(Min((Size) keep * KEEP_GROWTH, allowed), FIRST_KEEP);
}

double
hamming_search_passes(double rows)
{
	int	   keep = next_keep(0);
	double passes = 1.0;

	/* until passes do not grow any more */
	while (rows > keep && next_keep(keep) > keep)
	{
		rows -= keep;
		keep = next_keep(keep);
		passes += 1.0;
	}
	return passes + floor(rows / keep);
}

static void
run_pass(HammingSearch *search)
{
	HammingMeta meta = hamming_read_meta(search->index);
	const bool	first = search->keep == 0;

	search->keep = next_keep(search->keep);
	if (search->room < ROOM * search->keep)
	{
		if (search->keys != NULL)
			pfree(search->keys);
		search->room = ROOM * search->keep;
		search->keys = MemoryContextAlloc(search->context, sizeof(uint64) * search->room);
	}
	learn_length(search, (int) meta.nbits);
	search->horizon = first ? guess_horizon(search) : rank_of(search, NULL_DISTANCE);
	hamming_visit_pages(search->index, start_pass, search_page, search);
	search->complete =
		search->found < search->keep && search->horizon == rank_of(search, NULL_DISTANCE);
	if (search->found > search->keep)
		select_smallest(search->keys, search->found, search->keep);
	search->found = Min(search->found, search->keep);
	search->next = 0;
	sort_keys(search->keys, search->found);
}

bool
hamming_search_next(HammingSearch *search, uint64 *key)
{
	while (search->next == search->found && !search->complete)
		run_pass(search);
	if (search->next == search->found)
		return false;
	*key = search->last = search->keys[search->next++];
	return true;
}

bool
hamming_search_peek(const HammingSearch *search, int count, uint64 *key)
{
	if (search->next + count >= search->found)
		return false;
	*key = search->keys[search->next + count];
	return true;
}

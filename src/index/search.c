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

/* a sample of an index is one page of so many, and at least so many */
#define SAMPLE_STEP 128
#define MIN_SAMPLE 4

/* pages that tell how many columns to read, one of at least so many; and numbers that are tried */
#define PROBE_PAGES 16
#define MIN_PROBE_STEP 8
#define MAX_WIDTHS 7

/* one code in so many that is looked at by itself costs as much as a column of all codes */
#define CODES_PER_COLUMN 100

/* What is known of a page's codes. */
typedef struct PageCodes
{
	Page		   page; /* if it is to be settled, else NULL */
	HammingColumns codes;
	const uint8	 **columns;
	uint64		  *rest; /* the last column, widened */
	HammingMatch  *candidates;
	size_t		   ncandidates;
} PageCodes;

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

	HammingNearest nearest;	 /* what the last pass found, or this one has found so far */
	int			   next;	 /* of these, the first that has not been returned */
	bool		   complete; /* nothing lies behind these */
	uint32		   horizon;	 /* rank of the farthest distance that the pass looks at */

	/* the index, and room for codes, all set when their length is known */
	int			  nbits;
	HammingLayout codes;
	HammingLayout nulls;
	int			  ncolumns;
	int			  first;	/* columns that this pass reads of all codes */
	uint64		 *words;	/* of the centre */
	uint8		 *code;		/* one */
	PageCodes	  pages[2]; /* one that is being visited, and one that is to be settled */
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
find_columns(const HammingSearch *search, PageCodes *codes, Page page, int count,
			 HammingUpcoming upcoming)
{
	const HammingLayout *layout = &search->codes;
	const uint8			*rest = HammingPageGetRest(page, layout);

	for (int column = 0; column < layout->words; column++)
		codes->columns[column] = HammingPageGetWords(page, layout, column);
	if (layout->rest == 0)
		return;
	for (int i = 0; i < count * layout->rest; i += CACHE_LINE)
		prefetch_likes(upcoming, rest + i);
	for (int i = 0; i < count; i++)
		codes->rest[i] = load_word(rest + i * layout->rest, layout->rest);
	codes->columns[layout->words] = (const uint8 *) codes->rest;
}

/*
 * Those codes of a page that are within a radius as far as the first columns tell, these many.
 * Meanwhile those of other pages are prefetched.
 */
static size_t
find_candidates(const HammingSearch *search, PageCodes *codes, Page page, int count, uint32 radius,
				int first, HammingUpcoming upcoming)
{
	codes->codes = (HammingColumns){
		.columns = codes->columns,
		.ncolumns = search->ncolumns,
		.count = count,
		.query = search->words,
		.radius = radius,
		.first = first,
		.upcoming = upcoming,
		.stored = search->codes.words,
		.payload = (const uint8 *) HammingPageGetTids(page, &search->codes),
		.payload_bytes = sizeof(ItemPointerData),
	};
	find_columns(search, codes, page, count, upcoming);
	return hamming_kernel->candidates(&codes->codes, codes->candidates);
}

/* Entries that no distance tells apart. */
static void
search_alike(HammingSearch *search, Page page, const HammingLayout *layout, int count)
{
	ItemPointer tids = HammingPageGetTids(page, layout);

	for (int entry = 0; entry < count; entry++)
	{
		if (layout->kind == HAMMING_NULLS || in_filters(search, page, entry))
			nearest_add(&search->nearest, NULL_DISTANCE, &tids[entry]);
	}
}

/* Takes the codes of a page that are near enough. */
static inline void
take_matches(HammingSearch *search, Page page, const HammingMatch *matches, size_t nmatches)
{
	ItemPointer tids = HammingPageGetTids(page, &search->codes);

	for (size_t i = 0; i < nmatches; i++)
	{
		if (in_filters(search, page, matches[i].position))
			nearest_add(&search->nearest, matches[i].distance, &tids[matches[i].position]);
	}
}

/*
 * Candidates of which more columns have to be read are left until the next page has been visited,
 * as these take their time to come from memory.
 */
static bool
settles_later(const HammingSearch *search)
{
	return search->first < search->ncolumns;
}

static void
settle_page(void *state, Page page)
{
	HammingSearch *search = state;
	PageCodes	  *codes = &search->pages[search->pages[1].page == page];

	if (codes->page != page)
		return;
	codes->page = NULL;
	take_matches(search, page, codes->candidates,
				 hamming_kernel->confirm(&codes->codes, codes->candidates, codes->ncandidates));
}

static void
search_codes(HammingSearch *search, Page page, int count, HammingUpcoming upcoming)
{
	const uint32 radius = Min(search->nearest.farthest, search->limit);
	PageCodes	*codes = &search->pages[search->pages[0].page != NULL];
	size_t		 n;

	hamming_check_lengths(search->nbits, search->center.nbits);
	n = find_candidates(search, codes, page, count, radius, search->first, upcoming);
	if (settles_later(search))
	{
		codes->page = page;
		codes->ncandidates = n;
	}
	else
		take_matches(search, page, codes->candidates, n);
}

static void
visit_page(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
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
			search_codes(search, page, codes, upcoming);
	}
	else if (nulls > 0 && search->question.nballs == 0 &&
			 search->nearest.farthest == rank_of(&search->nearest, NULL_DISTANCE))
		search_alike(search, page, &search->nulls, nulls);
}

/* Makes room for what depends on the codes' length, and lays the centre out in words. */
static void
learn_length(HammingSearch *search, int nbits)
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
		search->code = palloc(nbytes);
		for (int i = 0; i < (int) lengthof(search->pages); i++)
		{
			PageCodes *codes = &search->pages[i];
			const int  capacity = search->codes.capacity;

			codes->page = NULL;
			codes->columns = palloc(sizeof(uint8 *) * search->ncolumns);
			codes->rest = palloc(sizeof(uint64) * capacity);
			codes->candidates = palloc(sizeof(HammingMatch) * (capacity + MATCH_ROOM));
		}
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
}

/* Counts the codes of a page by their distance. */
static void
count_distances(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	HammingSearch  *search = state;
	HammingNearest *nearest = &search->nearest;
	PageCodes	   *codes = &search->pages[0];
	size_t			nmatches;

	hamming_check_page(search->index, page, block, &search->codes, &search->nulls);
	nmatches = find_candidates(search, codes, page, hamming_page_count(page, HAMMING_CODES),
							   Min(nearest->farthest, search->limit), search->ncolumns, upcoming);
	for (size_t i = 0; i < nmatches; i++)
	{
		if (codes->candidates[i].distance <= nearest->farthest)
			nearest_count(nearest, codes->candidates[i].distance);
	}
}

/*
 * How far the first pass of an ordered search looks.  A pass learns as it goes how far away
 * the last entry is that it should keep; until then it looks too far, and finds too much.
 * In a large index a sample tells beforehand: to where it has its share of the entries wanted,
 * and three standard deviations more.  If that is still too near, the next pass finds the others.
 */
static uint32
guess_horizon(HammingSearch *search)
{
	HammingNearest		*nearest = &search->nearest;
	const int			 keep = nearest->keep;
	const double		 share = (double) keep / SAMPLE_STEP;
	const HammingVisitor visitor = {.state = search, .visit = count_distances};

	nearest_start(nearest, rank_of(nearest, NULL_DISTANCE));
	if (!search->question.ordered || search->everything || search->center.nbits != search->nbits ||
		RelationGetNumberOfBlocks(search->index) < MIN_SAMPLE * SAMPLE_STEP)
		return nearest->farthest;
	/* counting only to so many leaves the horizon as the farthest rank of interest */
	nearest->keep = (int) (share + 3.0 * sqrt(share)) + 3;
	hamming_visit_sample(search->index, SAMPLE_STEP, &visitor);
	nearest->keep = keep;
	return nearest->farthest;
}

/* How many codes are left if only some first columns are looked at, on some pages. */
typedef struct Probe
{
	HammingSearch *search;
	uint32		   radius;
	int			   nwidths;
	int			   widths[MAX_WIDTHS]; /* numbers of columns */
	uint64		   left[MAX_WIDTHS];
	uint64		   codes;
} Probe;

static void
probe_page(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	Probe		  *probe = state;
	HammingSearch *search = probe->search;
	int			   count;

	hamming_check_page(search->index, page, block, &search->codes, &search->nulls);
	count = hamming_page_count(page, HAMMING_CODES);
	probe->codes += count;
	for (int i = 0; i < probe->nwidths; i++)
		probe->left[i] += find_candidates(search, &search->pages[0], page, count, probe->radius,
										  probe->widths[i], upcoming);
}

/*
 * How many columns a pass with that radius reads of all codes.  The others are read only of codes
 * that are near enough in these, one here and one there, which is faster only if few are.  How
 * many are depends on the codes, since learnt bits are not independent, and on the query: some
 * pages tell, if possible such that have just been looked at.
 */
static int
choose_columns(HammingSearch *search, uint32 radius)
{
	const int			 ncolumns = search->ncolumns;
	BlockNumber			 step = RelationGetNumberOfBlocks(search->index) / PROBE_PAGES;
	Probe				 probe = {.search = search, .radius = radius};
	const HammingVisitor visitor = {.state = &probe, .visit = probe_page};
	int					 best = ncolumns;
	double				 least = ncolumns;

	if (ncolumns == 1 || radius >= (uint32) search->nbits || step < MIN_PROBE_STEP ||
		search->everything || search->center.nbits != search->nbits)
		return ncolumns;
	if (step > SAMPLE_STEP)
		step -= step % SAMPLE_STEP;
	probe.nwidths = Min(ncolumns - 1, MAX_WIDTHS);
	for (int i = 0; i < probe.nwidths; i++)
		probe.widths[i] = (i + 1) * ncolumns / (probe.nwidths + 1);
	hamming_visit_sample(search->index, step, &visitor);
	for (int i = 0; i < probe.nwidths; i++)
	{
		const double cost =
			probe.widths[i] + (double) CODES_PER_COLUMN * probe.left[i] / Max(probe.codes, 1);

		if (cost < least)
		{
			best = probe.widths[i];
			least = cost;
		}
	}
	return best;
}

/* How many entries the next pass keeps: more than the last, but in memory that is allowed. */
static int
next_keep(int keep)
{
	const Size allowed = Min((Size) work_mem * 1024, MaxAllocSize) / NEAREST_BYTES;

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
	HammingNearest *nearest = &search->nearest;
	HammingMeta		meta = hamming_read_meta(search->index);
	const bool		first = nearest->keep == 0;
	HammingVisitor	visitor = {.state = search, .start = start_pass, .visit = visit_page};

	nearest->keep = next_keep(nearest->keep);
	if (nearest->room < NEAREST_ROOM * nearest->keep)
	{
		if (nearest->room > 0)
		{
			pfree(nearest->keys);
			pfree(nearest->spare);
		}
		nearest->room = NEAREST_ROOM * nearest->keep;
		nearest->keys = MemoryContextAlloc(search->context, sizeof(uint64) * nearest->room);
		nearest->spare = MemoryContextAlloc(search->context, sizeof(uint64) * nearest->room);
	}
	learn_length(search, (int) meta.nbits);
	search->horizon = first ? guess_horizon(search) : rank_of(nearest, NULL_DISTANCE);
	search->first = choose_columns(search, Min(search->horizon, search->limit));
	if (settles_later(search))
		visitor.settle = settle_page;
	hamming_visit_pages(search->index, &visitor);
	nearest_finish(nearest);
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

const uint64 *
hamming_search_peek(const HammingSearch *search, int *count)
{
	*count = search->nearest.found - search->next;
	return search->nearest.keys + search->next;
}

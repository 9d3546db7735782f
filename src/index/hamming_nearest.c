/*
 * hamming_nearest.c
 *		hamming_nearest: the nearest rows of many queries, in one pass over the index.
 *
 * A page is compared with all queries while the CPU's cache holds it.  A pass keeps some more
 * entries than are wanted of each query, because rows may turn out not to be visible; queries for
 * which that was not enough take part in another pass, which finds what follows.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "../code/distance.h"
#include "../compat.h"
#include "hamming_page.h"
#include "hamming_rows.h"
#include "nearest.h"
#include "visit.h"

/* what a first pass keeps beyond what is wanted, and how many times more each next one keeps */
#define SPARE_KEEP 16
#define KEEP_GROWTH 4
#define MIN_KEEP 16

/* queries that take part in a pass: each page is locked until it has been compared with all */
#define MOST_TOGETHER 1000

typedef struct NearestQuery
{
	int		number; /* in the array, from 1 */
	uint64 *words;
	int		wanted; /* rows that are still to be returned */
	Nearest nearest;
} NearestQuery;

typedef struct NearestPass
{
	HammingRows	   rows;
	ReturnSetInfo *result;
	int			   nbits;
	FlatLayout	   codes;
	FlatLayout	   nulls;
	NearestQuery  *queries;
	int			   nqueries;
	MemoryContext  context; /* of what a pass keeps */
	const uint8	 **columns;
	HammingMatch  *matches;
} NearestPass;

/* The start of a pass, or of another attempt. */
static void
start_pass(void *state)
{
	NearestPass *pass = state;

	for (int i = 0; i < pass->nqueries; i++)
		nearest_start(&pass->queries[i].nearest, pass->nbits);
}

/* Adds the entries of a page that are near enough to a query. */
static void
search_codes(NearestPass *pass, NearestQuery *query, HammingColumns *codes)
{
	const ItemPointerData *tids = (const ItemPointerData *) codes->payload;
	size_t				   nmatches;

	hamming_set_query(codes, query->words, query->nearest.farthest);
	nmatches = hamming_kernel->within(codes, pass->matches);
	for (size_t i = 0; i < nmatches; i++)
		nearest_add(&query->nearest,
					nearest_key(pass->matches[i].distance, &tids[pass->matches[i].position]));
}

static void
visit_page(void *state, Page page, BlockNumber block, HammingUpcoming upcoming)
{
	const HammingUpcoming nothing = {0, 0};
	NearestPass			 *pass = state;
	const FlatContents	  contents =
		flat_page_contents(pass->rows.index, page, block, &pass->codes, &pass->nulls);
	HammingColumns codes;

	if (contents.layout != &pass->codes)
		return;
	codes = hamming_page_codes(page, &pass->codes, contents.count, pass->columns);
	for (int i = 0; i < pass->nqueries; i++)
	{
		/* the first query has the next pages prefetched for all */
		codes.upcoming = i == 0 ? upcoming : nothing;
		search_codes(pass, &pass->queries[i], &codes);
	}
}

/* How many entries a query may keep, if so many queries take part in a pass. */
static int
allowed_keep(const NearestPass *pass, int nqueries)
{
	const Size counts = sizeof(int) * (pass->nbits + 2);
	const Size bytes = Min((Size) work_mem * 1024, MaxAllocSize) / nqueries;

	return (int) Max((bytes - Min(bytes, counts)) / NEAREST_BYTES, MIN_KEEP);
}

static int
first_keep(int wanted)
{
	return (int) Min((int64) wanted + wanted / KEEP_GROWTH + SPARE_KEEP, PG_INT32_MAX);
}

/* Makes room for what the pass keeps, each query after the last entry it has seen. */
static void
prepare_queries(NearestPass *pass)
{
	const int	  allowed = allowed_keep(pass, pass->nqueries);
	MemoryContext caller;

	MemoryContextReset(pass->context);
	caller = MemoryContextSwitchTo(pass->context);
	for (int i = 0; i < pass->nqueries; i++)
	{
		Nearest	 *nearest = &pass->queries[i].nearest;
		const int more = (int) Min((int64) nearest->keep * KEEP_GROWTH, PG_INT32_MAX);

		nearest->keep =
			Min(nearest->keep == 0 ? first_keep(pass->queries[i].wanted) : more, allowed);
		nearest_init(nearest, pass->nbits);
		nearest->room = NEAREST_ROOM * nearest->keep;
		nearest->keys = palloc(sizeof(uint64) * nearest->room);
		nearest->spare = palloc(sizeof(uint64) * nearest->room);
	}
	MemoryContextSwitchTo(caller);
}

/* Returns what was found for a query, as far as it is visible; true if more has to be found. */
static bool
return_found(NearestPass *pass, NearestQuery *query)
{
	Nearest	  *nearest = &query->nearest;
	const bool complete = nearest->found < nearest->keep;

	for (int i = 0; i < nearest->found && query->wanted > 0; i++)
	{
		const uint64	key = nearest->keys[i];
		ItemPointerData tid;
		Datum			values[3];
		bool			nulls[3] = {false};

		CHECK_FOR_INTERRUPTS();
		nearest->from = key + 1;
		ItemPointerSet(&tid, KEY_BLOCK(key), KEY_OFFSET(key));
		if (!hamming_rows_fetch(&pass->rows, &tid))
			continue;
		query->wanted--;
		values[0] = Int32GetDatum(query->number);
		values[1] = PointerGetDatum(&tid);
		values[2] = Int32GetDatum((int32) KEY_DISTANCE(key));
		tuplestore_putvalues(pass->result->setResult, pass->result->setDesc, values, nulls);
	}
	return query->wanted > 0 && !complete;
}

/* Runs passes until all of some queries have what is wanted, or all there is. */
static void
run_passes(NearestPass *pass, NearestQuery *queries, int nqueries)
{
	pass->queries = queries;
	pass->nqueries = nqueries;
	while (pass->nqueries > 0)
	{
		int left = 0;

		prepare_queries(pass);
		flat_visit_pages(pass->rows.index, start_pass, visit_page, pass);
		for (int i = 0; i < pass->nqueries; i++)
		{
			nearest_finish(&queries[i].nearest);
			if (return_found(pass, &queries[i]))
				queries[left++] = queries[i];
		}
		pass->nqueries = left;
	}
}

/* A query's code in words, as it is on pages. */
static uint64 *
query_words(Datum datum, const NearestPass *pass)
{
	const BitHashView code = DatumGetBitHashView(datum);
	uint64			 *words = palloc(sizeof(uint64) * pass->codes.words);

	hamming_check_lengths(pass->nbits, code.nbits);
	hamming_query_words(code, &pass->codes, words);
	return words;
}

static NearestQuery *
read_queries(ArrayType *array, int wanted, const NearestPass *pass, int *count)
{
	int16		  length;
	bool		  by_value;
	char		  align;
	Datum		 *elements;
	bool		 *nulls;
	NearestQuery *queries;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR, errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				errmsg("queries must be a one-dimensional array"));
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, align, &elements, &nulls,
					  count);
	queries = palloc0(sizeof(NearestQuery) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
	{
		if (nulls[i])
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("query %d is null", i + 1));
		queries[i].number = i + 1;
		queries[i].wanted = wanted;
		/* without any code in the index no length is wrong */
		if (pass->nbits > 0)
			queries[i].words = query_words(elements[i], pass);
	}
	return queries;
}

static void
find_nearest(NearestPass *pass, NearestQuery *queries, int nqueries, int wanted)
{
	int			together = Min(Max(nqueries, 1), MOST_TOGETHER);
	TimestampTz reported = GetCurrentTimestamp();

	/* memory may suffice for some queries at a time only */
	while (together > 1 && allowed_keep(pass, together) < first_keep(wanted))
		together = (together + 1) / 2;
	pass->columns = palloc(sizeof(uint8 *) * pass->codes.words);
	pass->matches = palloc(sizeof(HammingMatch) * (pass->codes.capacity + MATCH_ROOM));
	for (int first = 0; first < nqueries; first += together)
	{
		const int count = Min(together, nqueries - first);

		run_passes(pass, queries + first, count);
		if (hamming_notice_is_due(&reported))
			ereport(NOTICE,
					errmsg("hamming_nearest: %d of %d queries done", first + count, nqueries));
	}
}

PG_FUNCTION_INFO_V1(hamming_nearest);
Datum
hamming_nearest(PG_FUNCTION_ARGS)
{
	ArrayType	 *array = PG_GETARG_ARRAYTYPE_P(1);
	const int	  wanted = PG_GETARG_INT32(2);
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming nearest", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;
	NearestPass	  pass = {.result = (ReturnSetInfo *) fcinfo->resultinfo};
	NearestQuery *queries;
	int			  nqueries;

	InitMaterializedSRF(fcinfo, 0);
	if (wanted < 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("k must be at least 1"));
	caller = MemoryContextSwitchTo(context);
	hamming_rows_open(&pass.rows, PG_GETARG_OID(0));
	pass.nbits = (int) flat_read_meta(pass.rows.index).nbits;
	pass.codes = flat_layout(FLAT_CODES, pass.nbits);
	pass.nulls = flat_layout(FLAT_NULLS, 0);
	pass.context = AllocSetContextCreate(context, "hamming nearest pass", ALLOCSET_DEFAULT_SIZES);
	queries = read_queries(array, wanted, &pass, &nqueries);
	if (pass.nbits > 0)
		find_nearest(&pass, queries, nqueries, wanted);
	hamming_rows_close(&pass.rows);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return (Datum) 0;
}

/*
 * hamming_pairs.c
 *		hamming_pairs: all pairs of near codes, in one table or between two.
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "../compat.h"
#include "hamming_join.h"

/* Adds a pair of rows to the function's result. */
static void
add_pair(ReturnSetInfo *result, const ItemPointerData *a, const ItemPointerData *b, uint32 distance)
{
	Datum values[3];
	bool  nulls[3] = {false};

	values[0] = PointerGetDatum(a);
	values[1] = PointerGetDatum(b);
	values[2] = Int32GetDatum((int32) distance);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Between two tables. */
static void
take_pair(void *state, JoinRow a, JoinRow b, uint32 distance)
{
	add_pair(state, &a.tid, &b.tid, distance);
}

/* In one table the first row of a pair is the one before the other. */
static void
take_ordered_pair(void *state, JoinRow a, JoinRow b, uint32 distance)
{
	const bool ordered = ROW_OF_TID(&a.tid) < ROW_OF_TID(&b.tid);

	add_pair(state, ordered ? &a.tid : &b.tid, ordered ? &b.tid : &a.tid, distance);
}

/* Of one index or, with one more argument, between two, which may be the same. */
PG_FUNCTION_INFO_V1(hamming_pairs);
Datum
hamming_pairs(PG_FUNCTION_ARGS)
{
	const int	  indexes = PG_NARGS() - 1;
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming pairs", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;
	HammingRows	  rows[2];
	CodeStore	  stores[2];
	int			  nbits;
	uint32		  radius;

	InitMaterializedSRF(fcinfo, 0);
	caller = MemoryContextSwitchTo(context);
	for (int i = 0; i < indexes; i++)
		hamming_rows_open(&rows[i], PG_GETARG_OID(i));
	nbits = hamming_join_code_length(&rows[0], &rows[indexes - 1]);
	radius = hamming_join_radius(PG_GETARG_INT32(indexes), nbits);
	if (nbits > 0)
	{
		for (int i = 0; i < indexes; i++)
			code_store_read(&stores[i], &rows[i], nbits, hamming_join_capacity(nbits));
		hamming_join("hamming_pairs", &stores[0], &stores[indexes - 1], radius,
					 indexes == 1 ? take_ordered_pair : take_pair, fcinfo->resultinfo);
		for (int i = 0; i < indexes; i++)
			code_store_end(&stores[i]);
	}
	for (int i = 0; i < indexes; i++)
		hamming_rows_close(&rows[i]);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return (Datum) 0;
}

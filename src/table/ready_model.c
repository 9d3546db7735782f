/*
 * ready_model.c
 *		Published models made ready for hashing, kept by the connection: reading a model
 *		takes as long as many codes.
 *
 * A few of them, the least recently used goes; one whose table is dropped or changed goes at
 * the next look.  Places never move, so that whoever remembers one may ask whether it
 * still holds what it did.
 */
#include "postgres.h"

#include "utils/inval.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "table.h"

#define READY_MODELS 8

static ReadyModel ready_models[READY_MODELS];
static uint64	  last_use = 0;

static void
forget(ReadyModel *ready)
{
	ready->model = InvalidOid;
	ready->invalid = false;
	hash_plan_free(&ready->plan);
}

/* Something about a table has changed, or about all; nothing may be freed in here. */
static void
invalidate(Datum argument pg_attribute_unused(), Oid table)
{
	for (int i = 0; i < READY_MODELS; i++)
	{
		if (!OidIsValid(table) || ready_models[i].model == table)
			ready_models[i].invalid = true;
	}
}

void
ready_model_init(void)
{
	CacheRegisterRelcacheCallback(invalidate, (Datum) 0);
}

/* The place of a model table's model, or the one to put it. */
static ReadyModel *
place_of(Oid model)
{
	ReadyModel *oldest = &ready_models[0];

	for (int i = 0; i < READY_MODELS; i++)
	{
		if (ready_models[i].invalid)
			forget(&ready_models[i]);
	}
	for (int i = 0; i < READY_MODELS; i++)
	{
		if (ready_models[i].model == model)
			return &ready_models[i];
		if (ready_models[i].used < oldest->used)
			oldest = &ready_models[i];
	}
	forget(oldest);
	return oldest;
}

/* The published model of a row, ready; the row's snapshot is still active. */
ReadyModel *
ready_model(const ModelRow *row)
{
	const int64 generation = DatumGetInt64(ROW_VALUE(row, GENERATION));
	ReadyModel *ready = place_of(row->model);

	if (ready->generation != generation)
		hash_plan_free(&ready->plan);
	ready->used = ++last_use;
	ready->generation = generation;
	hash_plan_prepare(&ready->plan, ROW_VALUE(row, PUBLISHED), TopMemoryContext);
	ready->model = row->model;
	return ready;
}

/* Does the place still hold what it did when it was used last by this caller? */
bool
ready_model_holds(const ReadyModel *ready, Oid model, int64 generation)
{
	return ready->model == model && ready->generation == generation;
}

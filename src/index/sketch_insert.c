/*
 * sketch_insert.c
 *		One more row in a sketch index.
 */
#include "postgres.h"

#include "access/genam.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "sketch_introduce.h"

/* What an index's entries look like now that it gets a vector; it may be the first. */
static FlatLayout
layout_for(Relation index, Vector vector)
{
	FlatLayout codes = flat_codes(index);

	if (codes.dims != vector.dims)
	{
		/* what we remember may be out of date */
		flat_forget_codes(index);
		codes = flat_codes(index);
		sketch_check_dims(index, vector, codes.dims, true);
	}
	if (codes.dims == 0)
	{
		FlatMeta		  flat;
		const SketchMeta  meta = sketch_read_meta(index, &flat);
		const SketchShape shape = sketch_index_shape((int) meta.bits, vector.dims);

		codes = flat_sketch_layout(64 * sketch_code_words(&shape), vector.dims, 0);
	}
	return codes;
}

/* Sketches a vector by the model of that layout; false if the index has another one by now. */
static bool
sketch_vector(Relation index, const FlatLayout *codes, Vector vector, FlatEntry *entry)
{
	SketchReady *ready = sketch_ready(index, codes->model);

	if (ready == NULL)
		return false;
	entry->bits = (const uint8 *) sketch_encode_one(ready, vector.values, &entry->numbers);
	return true;
}

/* Adds a row with a vector. */
static void
insert_vector(Relation index, Vector vector, ItemPointer tid)
{
	FlatEntry entry = {.tid = *tid};

	for (;;)
	{
		const FlatLayout codes = layout_for(index, vector);

		entry.numbers = SKETCH_UNKNOWN;
		entry.bits = NULL;
		if (codes.model == 0)
			entry.bits = palloc0(sizeof(uint64) * codes.words);
		else if (!sketch_vector(index, &codes, vector, &entry))
		{
			flat_forget_codes(index);
			continue;
		}
		if (flat_insert(index, &codes, entry))
			return;
	}
}

/* How values become vectors, which the statement remembers. */
static SketchReader *
reader_of(Relation index, IndexInfo *info)
{
	if (info->ii_AmCache == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(info->ii_Context);
		SketchReader *reader = palloc(sizeof(SketchReader));

		sketch_reader_init(reader, index);
		info->ii_AmCache = reader;
		MemoryContextSwitchTo(caller);
	}
	return info->ii_AmCache;
}

static void
insert_null(Relation index, ItemPointer tid)
{
	const FlatEntry entry = {.bits = NULL, .tid = *tid};
	FlatLayout		codes;

	do
		codes = flat_codes(index);
	while (!flat_insert(index, &codes, entry));
}

bool
sketch_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			  IndexUniqueCheck check pg_attribute_unused(), bool unchanged pg_attribute_unused(),
			  IndexInfo *info)
{
	const BlockNumber before = RelationGetTargetBlock(index);
	MemoryContext	  context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch insert", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);

	if (isnull[0])
		insert_null(index, tid);
	else
		insert_vector(index, sketch_read_vector(reader_of(index, info), values[0]), tid);
	/* on another page than last time: there may be enough rows by now to learn from */
	if (RelationGetTargetBlock(index) != before && sketch_may_introduce(index))
		sketch_introduce(heap, index);
	/* a statement may insert any number of rows in one memory context */
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return false;
}

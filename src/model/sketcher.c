/*
 * sketcher.c
 *		Sketchers in memory: expanded objects, and how functions get at the model inside.
 *
 * An expanded object lives in a memory context of its own, below the one it was made for;
 * deleting that is all it takes to be rid of it.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "../compat.h"
#include "linalg.h"
#include "sketcher.h"

static Size sketcher_flat_size(ExpandedObjectHeader *header);
static void sketcher_flatten(ExpandedObjectHeader *header, void *result, Size size);

static const ExpandedObjectMethods sketcher_methods = {sketcher_flat_size, sketcher_flatten};

/* The mathematics needs its library: whoever makes a model asks for it first. */
void
sketcher_require_linalg(void)
{
	const char *reason;

	if (!linalg_load(&reason))
		ereport(ERROR, errcode(ERRCODE_SYSTEM_ERROR), errmsg("could not load OpenBLAS: %s", reason),
				errhint("Install it on the server (Debian: libopenblas0)."));
}

static Sketcher *
sketcher_alloc(MemoryContext parent)
{
	MemoryContext context =
		AllocSetContextCreate(parent, "unifdiag sketcher", ALLOCSET_START_SMALL_SIZES);
	Sketcher *sketcher = MemoryContextAllocZero(context, sizeof(Sketcher));

	sketcher_require_linalg();
	EOH_init_header(&sketcher->header, &sketcher_methods, context);
	return sketcher;
}

/* A sketcher without rows, below the parent context. */
Sketcher *
sketcher_create(const ModelConfig *config, MemoryContext parent)
{
	Sketcher	 *sketcher = sketcher_alloc(parent);
	MemoryContext caller = MemoryContextSwitchTo(sketcher->header.eoh_context);

	sketcher_check_size(config);
	sketcher->model = model_create(config, 0);
	MemoryContextSwitchTo(caller);
	return sketcher;
}

/* The object behind an expanded datum, whether the caller may change it or not. */
Sketcher *
expanded_sketcher(Datum datum)
{
	Sketcher *sketcher = (Sketcher *) DatumGetEOHP(datum);

	Assert(sketcher->header.eoh_methods == &sketcher_methods);
	return sketcher;
}

static bool
is_expanded(Datum datum)
{
	return VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(datum));
}

/* Reads a stored value into the current memory context. */
static Model *
read_stored(Datum datum, Model **base)
{
	struct varlena *stored = PG_DETOAST_DATUM_PACKED(datum);
	Model		   *model = format_read(VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored), base);

	if ((Pointer) stored != DatumGetPointer(datum))
		pfree(stored);
	return model;
}

/*
 * A sketcher that the caller may change: the given one, if it is an expanded object that
 * belongs to the parent context, or else a copy there, ready to learn.
 */
Sketcher *
sketcher_writable(Datum datum, MemoryContext parent)
{
	Sketcher	 *sketcher;
	MemoryContext caller;

	if (VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(datum)) &&
		MemoryContextGetParent(DatumGetEOHP(datum)->eoh_context) == parent)
		return expanded_sketcher(datum);

	sketcher = sketcher_alloc(parent);
	caller = MemoryContextSwitchTo(sketcher->header.eoh_context);
	if (is_expanded(datum))
	{
		Sketcher *original = expanded_sketcher(datum);

		sketcher->model = model_copy(original->model);
		if (original->base != NULL)
			sketcher->base = model_copy(original->base);
	}
	else
	{
		sketcher->model = read_stored(datum, &sketcher->base);
		if (sketcher->model->rows > 0 && sketcher->model->rank == sketcher->model->config.bits)
			model_refresh(sketcher->model);
	}
	MemoryContextSwitchTo(caller);
	return sketcher;
}

/* A model to look at, in sync. */
Model *
sketcher_model(Datum datum)
{
	Model *model;

	if (is_expanded(datum))
	{
		Sketcher	 *sketcher = expanded_sketcher(datum);
		MemoryContext caller = MemoryContextSwitchTo(sketcher->header.eoh_context);

		model = sketcher->model;
		model_sync(model);
		MemoryContextSwitchTo(caller);
	}
	else
		model = read_stored(datum, NULL);
	return model;
}

/* How many bits and rows a stored model has, without reading more than its header. */
void
sketcher_peek(Datum datum, int *bits, int64 *rows)
{
	struct varlena *front = PG_DETOAST_DATUM_SLICE(datum, 0, SKETCHER_HEADER_SIZE);

	Assert(VARSIZE_ANY_EXHDR(front) == SKETCHER_HEADER_SIZE);
	format_peek(VARDATA_ANY(front), bits, rows);
}

void
sketcher_check_rows(const Model *model)
{
	if (model->rows == 0)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("model has not learnt from any row"),
				errhint("Teach it with sketcher_learn or sketcher_add."));
}

/* Merges models of one configuration; the other one is used up. */
void
sketcher_merge_into(Model *model, Model *other, bool anchored)
{
	const ModelConfig *a = &model->config;
	const ModelConfig *b = &other->config;

	if (a->dims != b->dims || a->bits != b->bits)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("cannot merge models of %d bits for %d dimensions and of %d bits for %d",
					   a->bits, a->dims, b->bits, b->dims));
	if (a->tracker != b->tracker || a->rotation != b->rotation || a->stable != b->stable ||
		a->center != b->center || a->forgetting != b->forgetting || a->seed != b->seed)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("cannot merge models with different options"),
				errhint("sketcher_info shows a model's options."));
	model_merge(model, other, anchored);
}

/* The same for a sketcher, in its own memory. */
void
sketcher_absorb(Sketcher *sketcher, Model *other, bool anchored)
{
	MemoryContext caller = MemoryContextSwitchTo(sketcher->header.eoh_context);

	sketcher_merge_into(sketcher->model, other, anchored);
	MemoryContextSwitchTo(caller);
}

static Size
sketcher_flat_size(ExpandedObjectHeader *header)
{
	Sketcher	 *sketcher = (Sketcher *) header;
	MemoryContext caller = MemoryContextSwitchTo(header->eoh_context);

	if (sketcher->row != NULL)
		elog(ERROR, "state of sketcher_stream cannot be stored");
	model_sync(sketcher->model);
	MemoryContextSwitchTo(caller);
	return VARHDRSZ + format_size(sketcher->model, sketcher->base);
}

static void
sketcher_flatten(ExpandedObjectHeader *header, void *result, Size size)
{
	Sketcher *sketcher = (Sketcher *) header;

	SET_VARSIZE(result, size);
	format_write(sketcher->model, sketcher->base, VARDATA(result), size - VARHDRSZ);
}

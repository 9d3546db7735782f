/*
 * sketcher.c
 *		Sketchers in memory: expanded objects, and how functions get at the model inside.
 *
 * An expanded object lives in a memory context of its own, below the one it was made for;
 * deleting that context frees it.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "../compat.h"
#include "../math/linalg.h"
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

/*
 * An empty object below the current memory context, so that an error frees it.  The caller
 * moves it below its parent when it is complete.
 */
static Sketcher *
sketcher_alloc(void)
{
	static uint64 last_identity = 0;
	MemoryContext context;
	Sketcher	 *sketcher;

	sketcher_require_linalg();
	context = AllocSetContextCreate(CurrentMemoryContext, "unifdiag sketcher",
									ALLOCSET_START_SMALL_SIZES);
	sketcher = MemoryContextAllocZero(context, sizeof(Sketcher));
	EOH_init_header(&sketcher->header, &sketcher_methods, context);
	sketcher->identity = ++last_identity;
	return sketcher;
}

/* A sketcher without rows, below the parent context. */
Sketcher *
sketcher_create(const ModelConfig *config, MemoryContext parent)
{
	Sketcher	 *sketcher = sketcher_alloc();
	MemoryContext caller = MemoryContextSwitchTo(sketcher->header.eoh_context);

	sketcher_check_size(config);
	sketcher->model = model_create(config, 0);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(sketcher->header.eoh_context, parent);
	return sketcher;
}

/*
 * The object behind a datum, whether the caller may change it or not; NULL if the value is
 * stored, or an expanded object of another kind, whose flat form is a stored value or garbage.
 */
Sketcher *
sketcher_object(Datum datum)
{
	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(datum)) ||
		DatumGetEOHP(datum)->eoh_methods != &sketcher_methods)
		return NULL;
	return (Sketcher *) DatumGetEOHP(datum);
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

/* The model that a model and its base stand for; both are used up. */
static Model *
merge_base(Model *model, Model *base)
{
	if (base == NULL)
		return model;
	sketcher_merge_into(base, model, true);
	model_free(model);
	return base;
}

/*
 * An aggregate's state, to be changed: the given object, if it belongs to the parent context, or
 * else a copy there.  It keeps its base.
 */
Sketcher *
sketcher_state(Datum datum, MemoryContext parent)
{
	Sketcher	 *original = sketcher_object(datum);
	Sketcher	 *sketcher;
	MemoryContext caller;

	if (original != NULL && VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(datum)) &&
		MemoryContextGetParent(original->header.eoh_context) == parent)
		return original;

	sketcher = sketcher_alloc();
	caller = MemoryContextSwitchTo(sketcher->header.eoh_context);
	if (original != NULL)
	{
		sketcher->model = model_copy(original->model);
		if (original->base != NULL)
			sketcher->base = model_copy(original->base);
	}
	else
		sketcher->model = read_stored(datum, &sketcher->base);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(sketcher->header.eoh_context, parent);
	return sketcher;
}

/* The same for a value that is no aggregate's state: it has no base. */
Sketcher *
sketcher_writable(Datum datum, MemoryContext parent)
{
	Sketcher	 *sketcher = sketcher_state(datum, parent);
	MemoryContext caller = MemoryContextSwitchTo(sketcher->header.eoh_context);

	sketcher->model = merge_base(sketcher->model, sketcher->base);
	sketcher->base = NULL;
	MemoryContextSwitchTo(caller);
	return sketcher;
}

/* A model to look at, in sync. */
Model *
sketcher_model(Datum datum)
{
	Sketcher	 *sketcher = sketcher_object(datum);
	MemoryContext caller;
	Model		 *base;
	Model		 *model;

	if (sketcher == NULL)
	{
		model = read_stored(datum, &base);
		return merge_base(model, base);
	}
	if (sketcher->base != NULL)
		return merge_base(model_copy(sketcher->model), model_copy(sketcher->base));
	caller = MemoryContextSwitchTo(sketcher->header.eoh_context);
	model_sync(sketcher->model);
	MemoryContextSwitchTo(caller);
	return sketcher->model;
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

/* Refuses rows that would be more than a model can count. */
void
sketcher_check_room(const Model *model, int64 rows)
{
	if (rows > MODEL_MAX_ROWS - model->rows)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				errmsg("model cannot learn from more than %lld rows", (long long) MODEL_MAX_ROWS));
}

bool
sketcher_same_options(const ModelConfig *a, const ModelConfig *b)
{
	return a->dims == b->dims && a->bits == b->bits && a->tracker == b->tracker &&
		   a->rotation == b->rotation && a->stable == b->stable && a->center == b->center &&
		   a->forgetting == b->forgetting && a->seed == b->seed && a->normalize == b->normalize;
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
	if (!sketcher_same_options(a, b))
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("cannot merge models with different options"),
				errhint("sketcher_info shows a model's options, all but \"normalize\"."));
	sketcher_check_room(model, other->rows);
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

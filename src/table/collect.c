/*
 * collect.c
 *		What a transaction has inserted: kept in memory, and appended to the pending table
 *		when it commits.
 *
 * Vectors belong to the subtransaction that inserted them.  They go to its parent when it
 * commits, and away if it is rolled back.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "table.h"

/* The vectors for one model of one subtransaction; all in one memory context. */
typedef struct Collection
{
	struct Collection *next;
	MemoryContext	   context;
	int				   level; /* of nesting */
	Oid				   model;
	Oid				   pending;
	ModelConfig		   config;
	int				   count;
	int				   room;
	float			  *vectors; /* count x dims, until there are too many */
	Sketcher		  *delta;	/* has learnt them; or NULL */
} Collection;

/* of the current transaction, in its memory */
static Collection *collections = NULL;

/* model tables to start a worker for, once the transaction has committed */
#define MAX_DUE 8
static Oid due[MAX_DUE];
static int due_count = 0;

/* a model table of which so much is pending that this writer makes a pause after its commit */
static Oid crowded = InvalidOid;

/* how long that is */
#define PAUSE_MICROSECONDS 1000

/* More vectors than this are learnt at once: they would take more room than two models. */
static int
most_vectors(const ModelConfig *config)
{
	return Max(2 * config->bits, 64);
}

static Collection *
collection_of(const Attachment *attachment, int dims)
{
	const int	  level = GetCurrentTransactionNestLevel();
	MemoryContext context;
	Collection	 *collection;

	for (collection = collections; collection != NULL; collection = collection->next)
	{
		if (collection->model == attachment->model && collection->level == level)
			return collection;
	}
	context = AllocSetContextCreate(TopTransactionContext, "unifdiag collection",
									ALLOCSET_START_SMALL_SIZES);
	collection = MemoryContextAllocZero(context, sizeof(Collection));
	collection->context = context;
	collection->level = level;
	collection->model = attachment->model;
	collection->pending = attachment->pending;
	collection->config = attachment->config;
	if (collection->config.dims == 0)
		collection->config = sketcher_config_for(&attachment->config, dims);
	collection->next = collections;
	collections = collection;
	return collection;
}

/* Learns what has been kept so far, and from then on every vector as it comes. */
static void
start_learning(Collection *collection)
{
	const int dims = collection->config.dims;

	collection->delta = sketcher_create(&collection->config, collection->context);
	for (int i = 0; i < collection->count; i++)
	{
		const Vector vector = {dims, collection->vectors + (size_t) i * dims};

		sketcher_learn_row(collection->delta, vector);
	}
	if (collection->vectors != NULL)
		pfree(collection->vectors);
	collection->vectors = NULL;
}

static void
add_vector(Collection *collection, Vector vector)
{
	const Size size = sizeof(float) * collection->config.dims;

	vector_check_dims(vector, collection->config.dims);
	if (collection->delta == NULL && collection->count == most_vectors(&collection->config))
		start_learning(collection);
	if (collection->delta != NULL)
		sketcher_learn_row(collection->delta, vector);
	else
	{
		if (collection->vectors == NULL)
		{
			collection->room = 1;
			collection->vectors = MemoryContextAlloc(collection->context, size);
		}
		else if (collection->count == collection->room)
		{
			collection->room *= 2;
			collection->vectors = repalloc_huge(collection->vectors, size * collection->room);
		}
		memcpy(collection->vectors + (size_t) collection->count * collection->config.dims,
			   vector.values, size);
	}
	collection->count++;
}

/* Notes a vector that the current subtransaction has stored. */
void
collect_row(const Attachment *attachment, Vector vector)
{
	add_vector(collection_of(attachment, vector.dims), vector);
}

/* All vectors of a subtransaction's collection into that of its parent. */
static void
join(Collection *parent, Collection *child)
{
	const int dims = child->config.dims;

	if (child->delta == NULL)
	{
		Assert(child->vectors != NULL);
		for (int i = 0; i < child->count; i++)
		{
			const Vector vector = {dims, child->vectors + (size_t) i * dims};

			add_vector(parent, vector);
		}
		return;
	}
	if (parent->config.dims != dims)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("vectors have %d and %d dimensions", parent->config.dims, dims));
	if (parent->delta == NULL)
		start_learning(parent);
	sketcher_absorb(parent->delta, child->delta->model, false);
	parent->count += child->count;
}

static Collection *
parent_of(const Collection *child)
{
	for (Collection *other = collections; other != NULL; other = other->next)
	{
		if (other->model == child->model && other->level == child->level - 1)
			return other;
	}
	return NULL;
}

static void
remove_collection(Collection *collection)
{
	Collection **link = &collections;

	while (*link != collection)
		link = &(*link)->next;
	*link = collection->next;
	MemoryContextDelete(collection->context);
}

static void
at_subtransaction(SubXactEvent event, SubTransactionId id pg_attribute_unused(),
				  SubTransactionId parent_id pg_attribute_unused(),
				  void *argument			 pg_attribute_unused())
{
	const int	level = GetCurrentTransactionNestLevel();
	Collection *next;

	if (event == SUBXACT_EVENT_ABORT_SUB)
		link_reset(false);
	else if (event != SUBXACT_EVENT_PRE_COMMIT_SUB)
		return;
	for (Collection *collection = collections; collection != NULL; collection = next)
	{
		Collection *parent;

		next = collection->next;
		if (collection->level < level)
			continue;
		if (event == SUBXACT_EVENT_ABORT_SUB)
		{
			remove_collection(collection);
			continue;
		}
		parent = parent_of(collection);
		if (parent == NULL)
			collection->level--;
		else
		{
			join(parent, collection);
			remove_collection(collection);
		}
	}
}

/* The vectors as real[][]. */
static Datum
vectors_array(const Collection *collection)
{
	const int  dims = collection->config.dims;
	const Size count = (Size) collection->count * dims;
	const Size size = ARR_OVERHEAD_NONULLS(2) + sizeof(float) * count;
	ArrayType *array = palloc0(size);

	SET_VARSIZE(array, size);
	array->ndim = 2;
	array->dataoffset = 0;
	array->elemtype = FLOAT4OID;
	ARR_DIMS(array)[0] = collection->count;
	ARR_DIMS(array)[1] = dims;
	ARR_LBOUND(array)[0] = 1;
	ARR_LBOUND(array)[1] = 1;
	memcpy(ARR_DATA_PTR(array), collection->vectors, sizeof(float) * count);
	return PointerGetDatum(array);
}

static Datum
flat_delta(Sketcher *delta)
{
	const Size size = EOH_get_flat_size(&delta->header);
	void	  *flat = palloc(size);

	EOH_flatten_into(&delta->header, flat, size);
	return PointerGetDatum(flat);
}

/* Appends a collection to its pending table, unless that has been dropped by now. */
static void
append(const Collection *collection)
{
	Relation  pending = try_table_open(collection->pending, RowExclusiveLock);
	Datum	  values[PENDING_COLUMNS] = {0};
	bool	  nulls[PENDING_COLUMNS] = {false, true, true};
	HeapTuple tuple;
	bool	  is_due;

	if (pending == NULL)
		return;
	pending_check(pending);
	pending_check_owner(collection->pending, collection->model);
	values[PENDING_ROWS - 1] = Int32GetDatum(collection->count);
	if (collection->delta != NULL)
	{
		values[PENDING_DELTA - 1] = flat_delta(collection->delta);
		nulls[PENDING_DELTA - 1] = false;
	}
	else
	{
		values[PENDING_VECTORS - 1] = vectors_array(collection);
		nulls[PENDING_VECTORS - 1] = false;
	}
	tuple = heap_form_tuple(RelationGetDescr(pending), values, nulls);
	CatalogTupleInsert(pending, tuple);
	is_due = collection->delta != NULL || pending_size(pending) >= pending_due(&collection->config);
	table_close(pending, NoLock);
	if (is_due && due_count < MAX_DUE)
		due[due_count++] = collection->model;
	/* behind the end that the table should have: there is no room in front of it */
	if ((int64) ItemPointerGetBlockNumber(&tuple->t_self) * BLCKSZ >=
		pending_most(&collection->config))
		crowded = collection->model;
}

static void
append_all(void)
{
	MemoryContext scratch;
	MemoryContext caller;

	if (collections == NULL)
		return;
	scratch =
		AllocSetContextCreate(TopTransactionContext, "unifdiag append", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(scratch);
	PushActiveSnapshot(GetTransactionSnapshot());
	for (Collection *collection = collections; collection != NULL; collection = collection->next)
		append(collection);
	PopActiveSnapshot();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	collections = NULL;
}

static void
at_transaction(XactEvent event, void *argument pg_attribute_unused())
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			append_all();
			break;
		case XACT_EVENT_COMMIT:
			/* a worker that leaves looks once more after letting go of its lock: see worker.c */
			for (int i = 0; i < due_count; i++)
			{
				if (!model_is_locked(due[i], LOCK_WORKER))
					worker_launch(due[i]);
			}
			due_count = 0;
			link_reset(true);
			break;
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			/* what is left went with the transaction's memory */
			collections = NULL;
			due_count = 0;
			crowded = InvalidOid;
			link_reset(false);
			break;
		default:
			break;
	}
}

/*
 * The pause of a writer that has found too much pending, if it helps.  It is made when the
 * transaction has let go of everything, locks, snapshots and its number: nobody waits for
 * it, and vacuum need not heed it.  As the transaction has been committed, nothing here may
 * fail.
 */
static void
make_pause(ResourceReleasePhase phase, bool is_commit, bool is_top_level,
		   void *argument pg_attribute_unused())
{
	if (!OidIsValid(crowded) || !is_top_level || phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	if (is_commit && model_is_locked(crowded, LOCK_PAUSES))
		pg_usleep(PAUSE_MICROSECONDS);
	crowded = InvalidOid;
}

void
collect_init(void)
{
	RegisterResourceReleaseCallback(make_pause, NULL);
	RegisterXactCallback(at_transaction, NULL);
	RegisterSubXactCallback(at_subtransaction, NULL);
}

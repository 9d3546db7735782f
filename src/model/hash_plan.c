/*
 * hash_plan.c
 *		Codes of vectors: models made ready for hashing, kept by the connection.
 *
 * Reading a model takes longer than hashing a thousand vectors, and statements use the same few
 * models again and again.  So ready models, called plans, stay until others have been used more
 * recently.  A plan in use is pinned until the memory context of its user is reset.
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "../math/projector.h"
#include "sketcher.h"

/* plans that stay though nobody has them pinned: so many, of so many bytes altogether */
#define MOST_PLANS 8
#define MOST_BYTES ((Size) 32 * 1024 * 1024)

/*
 * What identifies a model without reading it.
 *
 * An expanded object's identity is never used again, and its rows grow whenever it changes.  The
 * number of an out of line value comes from a counter of 2^32 that the server does not reset: it
 * outlasts a connection.  Of an in line value all bytes are compared.
 */
typedef struct ModelKey
{
	enum
	{
		KEY_OBJECT,
		KEY_TOAST,
		KEY_VALUE
	} kind;
	union
	{
		struct
		{
			uint64 identity;
			int64  rows;
		} object;
		struct varatt_external toast;
		struct varlena		  *value;
	} of;
} ModelKey;

struct HashPlan
{
	dlist_node	  node; /* in plans, the most recently used first */
	ModelKey	  key;
	MemoryContext context;
	int			  pins;
	ModelConfig	  config;
	Projector	 *projector;
	float		 *signs;
	float		 *normalized;
};

struct HashPin
{
	MemoryContextCallback at_reset;
	HashPlan			 *plan;
};

static dlist_head plans = DLIST_STATIC_INIT(plans);

static ModelKey
model_key(Datum datum)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(datum);
	Sketcher	   *sketcher = sketcher_object(datum);
	ModelKey		key;

	if (sketcher != NULL)
	{
		key.kind = KEY_OBJECT;
		key.of.object.identity = sketcher->identity;
		key.of.object.rows = sketcher->model->rows;
	}
	else if (VARATT_IS_EXTERNAL_ONDISK(value))
	{
		key.kind = KEY_TOAST;
		memcpy(&key.of.toast, VARDATA_EXTERNAL(value), sizeof(key.of.toast));
	}
	else
	{
		key.kind = KEY_VALUE;
		key.of.value = VARATT_IS_EXTERNAL(value) ? PG_DETOAST_DATUM(datum) : value;
	}
	return key;
}

static bool
same_key(const ModelKey *a, const ModelKey *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind)
	{
		case KEY_OBJECT:
			return a->of.object.identity == b->of.object.identity &&
				   a->of.object.rows == b->of.object.rows;
		case KEY_TOAST:
			return memcmp(&a->of.toast, &b->of.toast, sizeof(a->of.toast)) == 0;
		default:
			return VARSIZE_ANY(a->of.value) == VARSIZE_ANY(b->of.value) &&
				   memcmp(a->of.value, b->of.value, VARSIZE_ANY(a->of.value)) == 0;
	}
}

/* The key, with a copy of what it points to in the current memory context. */
static ModelKey
copy_key(const ModelKey *key)
{
	ModelKey copy = *key;

	if (key->kind == KEY_VALUE)
		copy.of.value =
			memcpy(palloc(VARSIZE_ANY(key->of.value)), key->of.value, VARSIZE_ANY(key->of.value));
	return copy;
}

/*
 * A projector that outlives its model.  Once it is made it reads no more than the mean, unless the
 * tracker projects in its own way, and then the whole model is small.
 */
static Projector *
make_projector(const Model *model)
{
	Projector *projector;
	Model	  *kept;

	if (model->config.tracker->project != NULL)
		return projector_create(model_copy(model));
	kept = palloc(sizeof(Model));
	*kept = *model;
	kept->mean = memcpy(palloc(sizeof(double) * model->config.dims), model->mean,
						sizeof(double) * model->config.dims);
	projector = projector_create(kept);
	*kept = (Model) {.config = kept->config, .mean = kept->mean};
	return projector;
}

/* A new plan, below the current context, so that an error frees it. */
static HashPlan *
make_plan(Datum datum, const ModelKey *key)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "unifdiag hash plan",
												  ALLOCSET_START_SMALL_SIZES);
	MemoryContext reading =
		AllocSetContextCreate(context, "unifdiag model to hash with", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(reading);
	const Model	 *model = sketcher_model(datum);
	HashPlan	 *plan;

	sketcher_check_rows(model);
	MemoryContextSwitchTo(context);
	plan = palloc0(sizeof(HashPlan));
	plan->key = copy_key(key);
	plan->context = context;
	plan->config = model->config;
	plan->projector = make_projector(model);
	plan->signs = palloc(sizeof(float) * model->config.bits);
	plan->normalized = palloc(sizeof(float) * model->config.dims);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(reading);
	return plan;
}

/* Frees the least recently used plans, but for those that are pinned, as is the newest. */
static void
free_old_plans(void)
{
	dlist_mutable_iter iter;
	int				   count = 0;
	Size			   bytes = 0;

	dlist_foreach_modify(iter, &plans)
	{
		HashPlan *plan = dlist_container(HashPlan, node, iter.cur);

		count++;
		bytes += MemoryContextMemAllocated(plan->context, true);
		if ((count > MOST_PLANS || bytes > MOST_BYTES) && plan->pins == 0)
		{
			dlist_delete(&plan->node);
			MemoryContextDelete(plan->context);
		}
	}
}

/* The plan of a model: one that is ready, or a new one. */
static HashPlan *
find_plan(Datum datum, const ModelKey *key)
{
	dlist_iter iter;
	HashPlan  *plan;

	dlist_foreach(iter, &plans)
	{
		plan = dlist_container(HashPlan, node, iter.cur);
		if (same_key(&plan->key, key))
		{
			dlist_move_head(&plans, &plan->node);
			return plan;
		}
	}
	plan = make_plan(datum, key);
	MemoryContextSetParent(plan->context, TopMemoryContext);
	dlist_push_head(&plans, &plan->node);
	return plan;
}

static void
unpin(void *argument)
{
	HashPin *pin = argument;

	if (pin->plan != NULL)
		pin->plan->pins--;
	pin->plan = NULL;
}

/*
 * The plan of a model.  *pin is NULL at first; the plan stays until the pin is used for another
 * model, or the context is reset.
 */
HashPlan *
hash_plan_pin(HashPin **pin, Datum datum, MemoryContext context)
{
	const ModelKey key = model_key(datum);

	if (*pin == NULL)
	{
		*pin = MemoryContextAllocZero(context, sizeof(HashPin));
		(*pin)->at_reset.func = unpin;
		(*pin)->at_reset.arg = *pin;
		MemoryContextRegisterResetCallback(context, &(*pin)->at_reset);
	}
	if ((*pin)->plan == NULL || !same_key(&(*pin)->plan->key, &key))
	{
		unpin(*pin);
		(*pin)->plan = find_plan(datum, &key);
		(*pin)->plan->pins++;
		free_old_plans();
	}
	return (*pin)->plan;
}

/* The options of the plan's model. */
const ModelConfig *
hash_plan_config(const HashPlan *plan)
{
	return &plan->config;
}

/* The code of a vector, in the current memory context. */
BitHash *
hash_plan_code(HashPlan *plan, Vector vector)
{
	vector = sketcher_vector(&plan->config, vector, &plan->normalized);
	projector_signs(plan->projector, vector.values, plan->signs);
	return bithash_of_signs(plan->signs, plan->config.bits);
}

/* What calls of a function keep for those that follow. */
typedef struct HashCall
{
	HashPin	   *pin;
	VectorCast *cast;
} HashCall;

/* The code of a function's second argument, which is a vector, by a model. */
BitHash *
hash_argument(FunctionCallInfo fcinfo, Datum model)
{
	FmgrInfo *function = fcinfo->flinfo;
	HashCall *call = function->fn_extra;
	HashPlan *plan;

	if (call == NULL)
		call = function->fn_extra = MemoryContextAllocZero(function->fn_mcxt, sizeof(HashCall));
	plan = hash_plan_pin(&call->pin, model, function->fn_mcxt);
	return hash_plan_code(plan, vector_argument(fcinfo, 1, &call->cast));
}

PG_FUNCTION_INFO_V1(sketcher_hash);
Datum
sketcher_hash(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(hash_argument(fcinfo, PG_GETARG_DATUM(0)));
}

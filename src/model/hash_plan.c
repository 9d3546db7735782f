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

/* plans that stay though nobody has them pinned */
#define MOST_PLANS 8

/*
 * What identifies a model without reading it.
 *
 * An expanded object's identity is never used again, and its rows grow whenever it changes.  The
 * number of an out of line value comes from a counter of 2^32 that the server does not reset: it
 * outlasts a connection.  A stored header has the sums and the checksum of all the rest.
 */
typedef struct ModelKey
{
	enum
	{
		KEY_OBJECT,
		KEY_TOAST,
		KEY_HEADER
	} kind;
	union
	{
		struct
		{
			uint64 identity;
			int64  rows;
		} object;
		struct varatt_external toast;
		char				   header[SKETCHER_HEADER_SIZE];
	} of;
} ModelKey;

struct HashPlan
{
	dlist_node	  node; /* in plans, the most recently used first */
	ModelKey	  key;
	MemoryContext context;
	int			  pins;
	Model		 *model;
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

static void
model_key(Datum datum, ModelKey *key)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(datum);
	Sketcher	   *sketcher = sketcher_object(datum);

	/* keys are compared byte by byte */
	memset(key, 0, sizeof(*key));
	if (sketcher != NULL)
	{
		key->kind = KEY_OBJECT;
		key->of.object.identity = sketcher->identity;
		key->of.object.rows = sketcher->model->rows;
	}
	else if (VARATT_IS_EXTERNAL_ONDISK(value))
	{
		key->kind = KEY_TOAST;
		memcpy(&key->of.toast, VARDATA_EXTERNAL(value), sizeof(key->of.toast));
	}
	else
	{
		struct varlena *front = PG_DETOAST_DATUM_SLICE(datum, 0, SKETCHER_HEADER_SIZE);

		key->kind = KEY_HEADER;
		memcpy(key->of.header, VARDATA_ANY(front),
			   Min(VARSIZE_ANY_EXHDR(front), SKETCHER_HEADER_SIZE));
		if (front != value)
			pfree(front);
	}
}

/* A new plan, below the current context, so that an error frees it. */
static HashPlan *
make_plan(Datum datum)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "unifdiag hash plan",
												  ALLOCSET_START_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	HashPlan	 *plan = palloc0(sizeof(HashPlan));
	Model		 *model = sketcher_model(datum);

	sketcher_check_rows(model);
	plan->context = context;
	/* an expanded object may be gone, or have learnt more, by the next call */
	plan->model = sketcher_object(datum) != NULL ? model_copy(model) : model;
	plan->projector = projector_create(plan->model);
	plan->signs = palloc(sizeof(float) * model->config.bits);
	plan->normalized = palloc(sizeof(float) * model->config.dims);
	model_key(datum, &plan->key);
	MemoryContextSwitchTo(caller);
	return plan;
}

/* Frees the least recently used plans, but for those that are pinned. */
static void
free_old_plans(void)
{
	dlist_mutable_iter iter;
	int				   count = 0;

	dlist_foreach_modify(iter, &plans)
	{
		HashPlan *plan = dlist_container(HashPlan, node, iter.cur);

		if (++count > MOST_PLANS && plan->pins == 0)
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
		if (memcmp(&plan->key, key, sizeof(*key)) == 0)
		{
			dlist_move_head(&plans, &plan->node);
			return plan;
		}
	}
	plan = make_plan(datum);
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
	ModelKey key;

	model_key(datum, &key);
	if (*pin == NULL)
	{
		*pin = MemoryContextAllocZero(context, sizeof(HashPin));
		(*pin)->at_reset.func = unpin;
		(*pin)->at_reset.arg = *pin;
		MemoryContextRegisterResetCallback(context, &(*pin)->at_reset);
	}
	if ((*pin)->plan == NULL || memcmp(&(*pin)->plan->key, &key, sizeof(key)) != 0)
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
	return &plan->model->config;
}

/* The code of a vector, in the current memory context. */
BitHash *
hash_plan_code(HashPlan *plan, Vector vector)
{
	vector = sketcher_vector(&plan->model->config, vector, &plan->normalized);
	projector_signs(plan->projector, vector.values, plan->signs);
	return bithash_of_signs(plan->signs, plan->model->config.bits);
}

PG_FUNCTION_INFO_V1(sketcher_hash);
Datum
sketcher_hash(PG_FUNCTION_ARGS)
{
	HashPlan *plan = hash_plan_pin((HashPin **) &fcinfo->flinfo->fn_extra, PG_GETARG_DATUM(0),
								   fcinfo->flinfo->fn_mcxt);

	PG_RETURN_POINTER(hash_plan_code(plan, vector_argument(fcinfo, 1)));
}

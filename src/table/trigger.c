/*
 * trigger.c
 *		The triggers: one makes the code of a row before it is stored, the other notes the
 *		vector of a row that was.
 *
 * Both find the columns in the trigger's own list, UPDATE OF vector, code, which follows
 * every rename, and the model table as link.c says.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "table.h"

bool codes_are_made = false;

/* A published model made ready for hashing, kept as long as the connection. */
typedef struct ReadyModel
{
	Oid		  model;
	int64	  generation;
	int		  bits;
	HashPlan *plan; /* NULL if nothing is published yet */
} ReadyModel;

static HTAB *ready_models = NULL;

/* What the hash trigger keeps for a statement. */
typedef struct HashTrigger
{
	AttrNumber	 vector;
	AttrNumber	 code;
	VectorColumn column;
	ReadyModel	*ready; /* a later statement may bring it up to date, which is fine */
} HashTrigger;

/* What the learn trigger keeps for a statement. */
typedef struct LearnTrigger
{
	AttrNumber	 vector;
	VectorColumn column;
	Attachment	 attachment;
} LearnTrigger;

static ReadyModel *
ready_model(Oid model)
{
	ReadyModel *ready;
	Attachment	attachment;
	Relation	relation;
	bool		found;

	if (ready_models == NULL)
	{
		HASHCTL control = {.keysize = sizeof(Oid), .entrysize = sizeof(ReadyModel)};

		ready_models = hash_create("unifdiag models", 16, &control, HASH_ELEM | HASH_BLOBS);
	}
	ready = hash_search(ready_models, &model, HASH_ENTER, &found);
	if (!found)
	{
		ready->generation = -1;
		ready->plan = NULL;
	}

	/* the newest, whatever this transaction may see: codes are for others to compare with */
	relation = table_open(model, AccessShareLock);
	PushActiveSnapshot(GetLatestSnapshot());
	attachment_read(relation, GetActiveSnapshot(), &attachment);
	if (attachment.published == (Datum) 0 || attachment.generation != ready->generation)
		hash_plan_free(&ready->plan);
	if (attachment.published != (Datum) 0)
		hash_plan_prepare(&ready->plan, attachment.published, TopMemoryContext);
	ready->generation = attachment.generation;
	ready->bits = attachment.config.bits;
	PopActiveSnapshot();
	table_close(relation, AccessShareLock);
	return ready;
}

static void
check_hash_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event) || TRIGGER_FIRED_BY_DELETE(data->tg_event) ||
		data->tg_trigger->tgnattr != 2)
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("sketcher_hash_trigger is for triggers BEFORE INSERT OR UPDATE OF "
					   "vector_column, code_column FOR EACH ROW"));
}

static void
check_learn_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_AFTER(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event) || TRIGGER_FIRED_BY_DELETE(data->tg_event) ||
		data->tg_trigger->tgnattr != 1)
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("sketcher_learn_trigger is for triggers AFTER INSERT OR UPDATE OF "
					   "vector_column FOR EACH ROW"));
}

static void
init_column(VectorColumn *column, Relation relation, AttrNumber number, MemoryContext context)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), number - 1);

	vector_column_init(column, attribute->atttypid, NameStr(attribute->attname), context);
}

/* The trigger stores codes past all checks, so it checks what it stores them in. */
static void
check_code_column(Relation relation, AttrNumber number, int bits)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), number - 1);

	if (!is_bithash_type(attribute->atttypid) ||
		(attribute->atttypmod != -1 && attribute->atttypmod != bits))
		ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
				errmsg("column \"%s\" has type %s, and the model makes codes of type bithash(%d)",
					   NameStr(attribute->attname),
					   format_type_with_typemod(attribute->atttypid, attribute->atttypmod), bits));
}

static HashTrigger *
hash_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	HashTrigger *state = fcinfo->flinfo->fn_extra;

	if (state == NULL)
	{
		check_hash_trigger(fcinfo);
		state = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(HashTrigger));
		state->vector = data->tg_trigger->tgattr[0];
		state->code = data->tg_trigger->tgattr[1];
		init_column(&state->column, data->tg_relation, state->vector, fcinfo->flinfo->fn_mcxt);
		state->ready = ready_model(link_of_trigger(data, false));
		check_code_column(data->tg_relation, state->code, state->ready->bits);
		fcinfo->flinfo->fn_extra = state;
	}
	return state;
}

/* Is a column of type varlena the same in both? */
static bool
same_value(Datum a, bool a_is_null, Datum b, bool b_is_null)
{
	const Size size = a_is_null ? 0 : VARSIZE_ANY(DatumGetPointer(a));

	if (a_is_null || b_is_null)
		return a_is_null && b_is_null;
	/* mostly it is the stored value itself: to see that, nothing is fetched or decompressed */
	return (size == VARSIZE_ANY(DatumGetPointer(b)) &&
			memcmp(DatumGetPointer(a), DatumGetPointer(b), size) == 0) ||
		   datum_image_eq(a, b, false, -1);
}

static bool
same_column(TupleTableSlot *a, TupleTableSlot *b, AttrNumber number)
{
	bool		a_is_null;
	bool		b_is_null;
	const Datum a_value = slot_getattr(a, number, &a_is_null);
	const Datum b_value = slot_getattr(b, number, &b_is_null);

	return same_value(a_value, a_is_null, b_value, b_is_null);
}

/* Does an UPDATE leave the code as it must be?  Then there is nothing to do. */
static bool
code_stays(const HashTrigger *state, const TriggerData *data)
{
	TupleTableSlot *old = data->tg_trigslot;
	TupleTableSlot *new = data->tg_newslot;

	return same_column(old, new, state->vector) &&
		   (codes_are_made ||
			(!slot_attisnull(new, state->code) && same_column(old, new, state->code)));
}

PG_FUNCTION_INFO_V1(sketcher_hash_trigger);
Datum
sketcher_hash_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	HashTrigger *state = hash_trigger(fcinfo);
	const bool	 is_update = TRIGGER_FIRED_BY_UPDATE(data->tg_event);
	HeapTuple	 row = is_update ? data->tg_newtuple : data->tg_trigtuple;
	Datum		 vector;
	Datum		 code = (Datum) 0;
	bool		 is_null;
	int			 column = state->code;

	if (is_update && code_stays(state, data))
		return PointerGetDatum(row);
	vector =
		slot_getattr(is_update ? data->tg_newslot : data->tg_trigslot, state->vector, &is_null);
	if (!is_null)
	{
		/* also before there is a model: what is no vector is refused from the start */
		const Vector values = vector_column_read(&state->column, vector);

		is_null = state->ready->plan == NULL;
		if (!is_null)
			code = PointerGetDatum(hash_plan_code(state->ready->plan, values));
	}
	return PointerGetDatum(heap_modify_tuple_by_cols(row, RelationGetDescr(data->tg_relation), 1,
													 &column, &code, &is_null));
}

static LearnTrigger *
learn_trigger(FunctionCallInfo fcinfo)
{
	TriggerData	 *data = (TriggerData *) fcinfo->context;
	LearnTrigger *state = fcinfo->flinfo->fn_extra;

	if (state == NULL)
	{
		MemoryContext caller;

		check_learn_trigger(fcinfo);
		caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		state = palloc0(sizeof(LearnTrigger));
		state->vector = data->tg_trigger->tgattr[0];
		init_column(&state->column, data->tg_relation, state->vector, fcinfo->flinfo->fn_mcxt);
		attachment_read_latest(link_of_trigger(data, true), &state->attachment);
		MemoryContextSwitchTo(caller);
		fcinfo->flinfo->fn_extra = state;
	}
	return state;
}

PG_FUNCTION_INFO_V1(sketcher_learn_trigger);
Datum
sketcher_learn_trigger(PG_FUNCTION_ARGS)
{
	TriggerData	 *data = (TriggerData *) fcinfo->context;
	LearnTrigger *state = learn_trigger(fcinfo);
	const bool	  is_update = TRIGGER_FIRED_BY_UPDATE(data->tg_event);
	bool		  is_null;
	Datum		  vector =
		slot_getattr(is_update ? data->tg_newslot : data->tg_trigslot, state->vector, &is_null);

	if (is_null)
		return PointerGetDatum(NULL);
	if (is_update)
	{
		bool  old_is_null;
		Datum old = slot_getattr(data->tg_trigslot, state->vector, &old_is_null);

		if (same_value(old, old_is_null, vector, is_null))
			return PointerGetDatum(NULL);
	}
	collect_row(&state->attachment, vector_column_read(&state->column, vector));
	return PointerGetDatum(NULL);
}

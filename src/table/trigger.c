/*
 * trigger.c
 *		The trigger that makes the code of a row before it is stored.
 *
 * It fires for every UPDATE, also of other columns: another BEFORE trigger may have changed
 * the vector.  Its condition says which columns and which model table (columns.c).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "utils/acl.h"
#include "utils/datum.h"
#include "utils/rls.h"

#include "table.h"

/* What the trigger keeps for a statement. */
typedef struct HashTrigger
{
	CodeColumn	 column;
	VectorColumn vector;
	HashPin		*pin;
	HashPlan	*plan;	  /* NULL if nothing is published yet */
	int			 dims;	  /* that vectors must have; 0 if that is not known yet */
	bool		 walking; /* a refresh is under way: every row that is written gets its code */
	bool		 keep;	  /* there is no model to make codes with, and the row brings its own */
	bool		 counts;  /* rows, to ask for a refresh after many */
} HashTrigger;

static void
check_trigger(FunctionCallInfo fcinfo, CodeColumn *column)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event) || TRIGGER_FIRED_BY_DELETE(data->tg_event) ||
		!trigger_code_column(data->tg_trigger, column))
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("sketcher_hash_trigger cannot be used in a trigger of this kind"),
				errhint("Create the trigger BEFORE INSERT OR UPDATE FOR EACH ROW WHEN "
						"(sketcher_columns(model_table, NEW.vector_column, NEW.code_column))."));
}

/*
 * The condition proves nothing: everybody can name any table there.  The owner of the model
 * table agrees if its row has this table as target; otherwise the table's owner must have the
 * right to read it.
 */
static void
check_consent(const TriggerData *data, Oid model)
{
	Relation  relation = data->tg_relation;
	const Oid owner = relation->rd_rel->relowner;

	if (pg_class_aclcheck(model, owner, ACL_SELECT) != ACLCHECK_OK ||
		check_enable_rls(model, owner, true) == RLS_ENABLED)
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("trigger \"%s\" may not read model table \"%s\"", data->tg_trigger->tgname,
					   get_rel_name(model)),
				errdetail("The owner of table \"%s\" lacks the SELECT privilege on it, or it has "
						  "row-level security.",
						  RelationGetRelationName(relation)));
}

/* Does a model come here by replication?  Then it is refreshed where it comes from. */
static bool
is_from_elsewhere(const ModelRow *row)
{
	return SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA &&
		   !ROW_IS_NULL(row, SERVER) &&
		   DatumGetInt64(ROW_VALUE(row, SERVER)) != (int64) GetSystemIdentifier();
}

/* Reads the model's row: the newest, since codes are for others to compare with. */
static void
read_model(const TriggerData *data, HashTrigger *state)
{
	Relation relation = data->tg_relation;
	/* replication may not have filled the model table yet */
	const bool missing_ok = SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
	ModelRow   row;

	PushActiveSnapshot(GetLatestSnapshot());
	state->keep = !model_row_get(state->column.model, GetActiveSnapshot(), missing_ok, &row);
	if (!state->keep)
	{
		if (!is_part_of(RelationGetRelid(relation), DatumGetObjectId(ROW_VALUE(&row, TARGET))))
			check_consent(data, row.model);
		else if (!ROW_IS_NULL(&row, AUTO_REFRESH) && !is_from_elsewhere(&row) &&
				 relation->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
		{
			worker_expect_rows(&row);
			state->counts = true;
		}
		state->dims = ROW_IS_NULL(&row, DIMS) ? 0 : DatumGetInt32(ROW_VALUE(&row, DIMS));
		state->walking = !ROW_IS_NULL(&row, WALK_TABLE);
		if (!ROW_IS_NULL(&row, PUBLISHED))
		{
			state->plan =
				hash_plan_pin(&state->pin, ROW_VALUE(&row, PUBLISHED), CurrentMemoryContext);
			check_code_type(relation, state->column.code, hash_plan_config(state->plan)->bits);
		}
	}
	PopActiveSnapshot();
}

/* What is kept for the statement, made at its first row; rights are checked then. */
static HashTrigger *
hash_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	HashTrigger *state = fcinfo->flinfo->fn_extra;

	if (state == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		state = palloc0(sizeof(HashTrigger));
		check_trigger(fcinfo, &state->column);
		check_not_foreign(RelationGetRelationName(data->tg_relation),
						  data->tg_relation->rd_rel->relkind);
		vector_column_init(&state->vector, data->tg_relation, state->column.vector);
		read_model(data, state);
		MemoryContextSwitchTo(caller);
		fcinfo->flinfo->fn_extra = state;
	}
	return state;
}

/* Is a column the same in both? */
static bool
same_column(TupleTableSlot *a, TupleTableSlot *b, AttrNumber number)
{
	Form_pg_attribute column = TupleDescAttr(a->tts_tupleDescriptor, number - 1);
	bool			  a_is_null;
	bool			  b_is_null;
	const Datum		  a_value = slot_getattr(a, number, &a_is_null);
	const Datum		  b_value = slot_getattr(b, number, &b_is_null);

	if (a_is_null || b_is_null)
		return a_is_null && b_is_null;
	/* mostly it is the stored value itself: to see that, nothing is fetched or decompressed */
	if (column->attlen == -1)
	{
		const Size size = VARSIZE_ANY(DatumGetPointer(a_value));

		if (size == VARSIZE_ANY(DatumGetPointer(b_value)) &&
			memcmp(DatumGetPointer(a_value), DatumGetPointer(b_value), size) == 0)
			return true;
	}
	return datum_image_eq(a_value, b_value, column->attbyval, column->attlen);
}

/* Is the code of an UPDATE as it must be?  Then there is nothing to do. */
static bool
code_stays(const HashTrigger *state, const TriggerData *data)
{
	TupleTableSlot *old = data->tg_trigslot;
	TupleTableSlot *new = data->tg_newslot;
	bool		is_null;
	const Datum code = slot_getattr(new, state->column.code, &is_null);

	return same_column(old, new, state->column.vector) &&
		   (state->walking
				? walk_writes(data->tg_relation, &old->tts_tid, state->plan, code, is_null)
				: !is_null && same_column(old, new, state->column.code));
}

PG_FUNCTION_INFO_V1(sketcher_hash_trigger);
Datum
sketcher_hash_trigger(PG_FUNCTION_ARGS)
{
	TriggerData	   *data = (TriggerData *) fcinfo->context;
	HashTrigger	   *state = hash_trigger(fcinfo);
	const bool		is_update = TRIGGER_FIRED_BY_UPDATE(data->tg_event);
	HeapTuple		row = is_update ? data->tg_newtuple : data->tg_trigtuple;
	TupleTableSlot *slot = is_update ? data->tg_newslot : data->tg_trigslot;
	Datum			datum;
	Datum			code = (Datum) 0;
	bool			is_null;
	int				number = state->column.code;

	if (state->keep || (is_update && code_stays(state, data)))
		return PointerGetDatum(row);
	datum = slot_getattr(slot, state->column.vector, &is_null);
	if (!is_null)
	{
		/* also before there is a model: what is no vector is refused from the start */
		const Vector vector = vector_read(vector_column_array(&state->vector, datum, NULL));

		if (state->dims > 0)
			vector_check_dims(vector, state->dims);
		is_null = state->plan == NULL;
		if (!is_null)
			code = PointerGetDatum(hash_plan_code(state->plan, vector));
		if (state->counts &&
			!(is_update && same_column(data->tg_trigslot, slot, state->column.vector)))
			worker_count_row(state->column.model);
	}
	return PointerGetDatum(heap_modify_tuple_by_cols(row, RelationGetDescr(data->tg_relation), 1,
													 &number, &code, &is_null));
}

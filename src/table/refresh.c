/*
 * refresh.c
 *		sketcher_refresh: learns the rows that are new, publishes the model if that pays, and
 *		lets the codes follow.
 *
 * The procedure commits as it goes, so what it keeps is in memory that outlives
 * transactions, no table stays open, and everything is looked up again in each.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/rls.h"
#include "utils/xid8.h"

#include "table.h"

/* how often, and how many milliseconds apart, a refresh tries to get its lock */
#define LOCK_TRIES 20
#define LOCK_NAP 50

/* Only the owner, and only if no policy hides rows from the owner. */
void
check_table_owner(Relation target)
{
	const Oid owner = target->rd_rel->relowner;

	if (!owns_relation(RelationGetRelid(target), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(target->rd_rel->relkind),
					   RelationGetRelationName(target));
	if (check_enable_rls(RelationGetRelid(target), owner, true) == RLS_ENABLED)
		ereport(
			ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			errmsg("row-level security hides rows of table \"%s\" from its owner",
				   RelationGetRelationName(target)),
			errhint(
				"Use ALTER TABLE ... NO FORCE ROW LEVEL SECURITY, or an owner with BYPASSRLS."));
}

/* What makes the codes of a column that has to be attached, to a model of the same owner. */
void
get_code_column(Relation target, AttrNumber code, CodeColumn *column)
{
	const char *table = RelationGetRelationName(target);

	if (!find_code_column(target, code, InvalidOid, column))
		ereport(
			ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("column \"%s\" of table \"%s\" is not attached",
				   get_attname(RelationGetRelid(target), code, false), table),
			errhint("Attach it with sketcher_attach; a partition is attached through its parent."));
	if (table_owner(column->model) != target->rd_rel->relowner)
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("table \"%s\" and its model table \"%s\" have different owners", table,
					   get_rel_name(column->model)),
				errhint("Use ALTER TABLE %s OWNER TO %s.", sql_relation(column->model),
						quote_identifier(GetUserNameFromId(target->rd_rel->relowner, false))));
}

/* The row of a model table, which has to be that of the target. */
static void
get_model_row(Relation target, Oid model, ModelRow *row)
{
	model_row_get(model, row);
	if (DatumGetObjectId(ROW_VALUE(row, TARGET)) != RelationGetRelid(target))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("model table \"%s\" is not that of table \"%s\"", get_rel_name(model),
					   RelationGetRelationName(target)),
				errdetail("The codes are those of another table's model."),
				errhint("Refresh or detach that other table's column."));
}

/* One refresh at a time: a lock on the model table that lasts from transaction to transaction. */
static void
lock_model(Refresh *refresh)
{
	for (int tries = 0; !ConditionalLockRelationOid(refresh->lock.relId, ShareUpdateExclusiveLock);
		 tries++)
	{
		/* VACUUM has the same lock, for a moment */
		if (tries == LOCK_TRIES)
			ereport(ERROR, errcode(ERRCODE_OBJECT_IN_USE),
					errmsg("model table \"%s\" is in use by another refresh",
						   get_rel_name(refresh->lock.relId)),
					errhint("pg_stat_activity shows how far that is."));
		CHECK_FOR_INTERRUPTS();
		pg_usleep(LOCK_NAP * 1000L);
	}
	LockRelationIdForSession(&refresh->lock, ShareUpdateExclusiveLock);
	refresh->locked = true;
}

static void
unlock_model(Refresh *refresh)
{
	if (refresh->locked)
		UnlockRelationIdForSession(&refresh->lock, ShareUpdateExclusiveLock);
	refresh->locked = false;
}

/*
 * Locks the target.  Who drops it, or detaches the column, holds a lock on it and waits for
 * the one on the model table: so that one is let go of before waiting.
 */
static Relation
lock_target(Refresh *refresh)
{
	if (!ConditionalLockRelationOid(refresh->target, RowExclusiveLock))
	{
		unlock_model(refresh);
		LockRelationOid(refresh->target, RowExclusiveLock);
		if (get_rel_name(refresh->lock.relId) != NULL)
			lock_model(refresh);
	}
	return open_named(refresh->target, NoLock);
}

/* Finds everything anew, since it may have changed between two transactions. */
void
refresh_look_up(Refresh *refresh, Relation target, CodeColumn *column, ModelRow *row)
{
	const char *name = RelationGetRelationName(target);

	if (target->rd_rel->relowner != refresh->owner)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("the owner of table \"%s\" has changed while it was refreshed", name));
	get_code_column(target, refresh->code, column);
	if (column->model != refresh->lock.relId)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("the model table of table \"%s\" has changed while it was refreshed", name));
	get_model_row(target, column->model, row);
	if (!ROW_IS_NULL(row, PUBLISHED))
	{
		refresh->plan = hash_plan_pin(&refresh->pin, ROW_VALUE(row, PUBLISHED), refresh->context);
		check_code_type(target, refresh->code, hash_plan_config(refresh->plan)->bits);
	}
}

/*
 * Takes a step as the owner, in a transaction and memory of its own, with the target locked,
 * and commits.
 */
bool
refresh_step(Refresh *refresh, bool (*step)(Refresh *, Relation))
{
	MemoryContext context =
		AllocSetContextCreate(refresh->context, "unifdiag refresh", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	SqlUser		  user = become_user(refresh->owner);
	Relation	  target = lock_target(refresh);
	bool		  result;

	PushActiveSnapshot(GetTransactionSnapshot());
	result = step(refresh, target);
	PopActiveSnapshot();
	table_close(target, NoLock);
	restore_user(user);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	next_transaction();
	return result;
}

/* Marks that codes have to follow the published model, from the first row on. */
static void
mark_walk(ModelRow *row)
{
	model_row_set(row, MODEL_WALK_TABLE, ObjectIdGetDatum(InvalidOid));
	model_row_set(row, MODEL_WALK_FILE, ObjectIdGetDatum(InvalidOid));
	model_row_set(row, MODEL_WALK_PAGE, Int64GetDatum(0));
	model_row_set(row, MODEL_WALK_SKIPPED, BoolGetDatum(false));
}

/* What was learnt makes the codes from now on. */
void
publish(ModelRow *row)
{
	model_row_set(row, MODEL_PUBLISHED, ROW_VALUE(row, LEARNING));
	model_row_set(row, MODEL_GENERATION,
				  Int64GetDatum(DatumGetInt64(ROW_VALUE(row, GENERATION)) + 1));
}

/* Learns, and publishes if it pays; true if there are codes to be changed. */
static bool
learn_and_publish(Refresh *refresh, Relation target)
{
	CodeColumn	 column;
	ModelRow	 row;
	Learning	 learning;
	const Model *model;
	double		 drift = 1.0;
	bool		 pays;

	refresh_look_up(refresh, target, &column, &row);
	learning = learn_rows(&row, &column);
	model = sketcher_model(ROW_VALUE(&row, LEARNING));
	if (!ROW_IS_NULL(&row, PUBLISHED) && model->rows > 0)
	{
		const Model *published = sketcher_model(ROW_VALUE(&row, PUBLISHED));

		if (published->config.dims != model->config.dims ||
			published->config.bits != model->config.bits)
			ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("models of table \"%s\" have %d bits for %d dimensions and %d for %d",
						   RelationGetRelationName(target), published->config.bits,
						   published->config.dims, model->config.bits, model->config.dims),
					errhint("Detach the column and attach it again."));
		drift = model_drift(published, model);
	}
	pays = model->rows >= model->config.bits && drift >= refresh->min_drift;
	if (pays)
		publish(&row);
	else if (model->rows < model->config.bits)
		ereport(
			NOTICE, errmsg("table \"%s\" has no model yet", RelationGetRelationName(target)),
			errdetail("A model of %d bits needs at least as many rows, and has seen " INT64_FORMAT
					  ".",
					  model->config.bits, model->rows));
	else
		ereport(NOTICE, errmsg("table \"%s\": no model is published, since %.4f of the bits would "
							   "change",
							   RelationGetRelationName(target), drift));
	/* rows may have come past the trigger: with a partition, or while it was disabled */
	if (pays || (learning.missing > learning.skipped && !ROW_IS_NULL(&row, PUBLISHED)))
		mark_walk(&row);
	model_row_update(&row, learning.learnt > 0 || pays ? MODEL_PUBLISHED : MODEL_LEARNT,
					 MODEL_WALK_SKIPPED);
	return !ROW_IS_NULL(&row, WALK_TABLE);
}

/*
 * Waits for transactions that may have hashed with the model of before; all that come
 * later see the new one.
 */
static void
wait_for_writers(const Refresh *refresh)
{
	List	 *tables = list_append_unique_oid(leaf_tables(refresh->target), refresh->target);
	List	 *tags = NIL;
	ListCell *cell;

	foreach (cell, tables)
	{
		LOCKTAG *tag = palloc(sizeof(LOCKTAG));

		SET_LOCKTAG_RELATION(*tag, MyDatabaseId, lfirst_oid(cell));
		tags = lappend(tags, tag);
	}
	pgstat_report_activity(STATE_RUNNING,
						   psprintf("sketcher_refresh of %s: waiting for older transactions",
									sql_relation(refresh->target)));
	WaitForLockersMultiple(tags, ShareLock, false);
}

/* Is there a walk that was not finished? */
static bool
is_unfinished(Refresh *refresh, Relation target)
{
	CodeColumn column;
	ModelRow   row;

	refresh_look_up(refresh, target, &column, &row);
	return !ROW_IS_NULL(&row, WALK_TABLE);
}

/* Lets the codes follow the published model. */
static void
change_codes(Refresh *refresh)
{
	wait_for_writers(refresh);
	next_transaction();
	walk_codes(refresh);
}

static void
refresh_locked(Refresh *refresh)
{
	lock_model(refresh);
	next_transaction();
	if (refresh_step(refresh, is_unfinished))
	{
		ereport(NOTICE, errmsg("finishing an earlier refresh of table \"%s\"",
							   get_rel_name(refresh->target)));
		change_codes(refresh);
	}
	if (refresh_step(refresh, learn_and_publish))
		change_codes(refresh);
}

/*
 * All of a refresh; in SPI that may commit.  The column must be attached, and the caller
 * have the right.
 */
void
refresh_column(Refresh *refresh, Oid model)
{
	refresh->context = CurrentMemoryContext;
	refresh->lock.relId = model;
	refresh->lock.dbId = MyDatabaseId;
	PG_TRY();
	{
		refresh_locked(refresh);
	}
	PG_CATCH();
	{
		unlock_model(refresh);
		PG_RE_THROW();
	}
	PG_END_TRY();
	unlock_model(refresh);
}

static Refresh
read_arguments(FunctionCallInfo fcinfo)
{
	static const char *const names[] = {"target", "code_column", "min_drift", "batch"};
	Refresh					 refresh = {0};

	for (int i = 0; i < (int) lengthof(names); i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("%s cannot be null", names[i]));
	}
	refresh.target = PG_GETARG_OID(0);
	refresh.min_drift = PG_GETARG_FLOAT8(2);
	refresh.batch = PG_GETARG_INT32(3);
	if (!(refresh.min_drift >= 0.0 && refresh.min_drift <= 1.0))
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("min_drift cannot be %g", refresh.min_drift),
				errdetail("It is a fraction of the bits, 0 to 1."));
	if (refresh.batch < 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("batch cannot be %d", refresh.batch),
				errdetail("It is a number of rows, at least 1."));
	return refresh;
}

PG_FUNCTION_INFO_V1(sketcher_refresh);
Datum
sketcher_refresh(PG_FUNCTION_ARGS)
{
	Refresh	   refresh;
	CodeColumn column;
	Relation   target;

	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR, errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				errmsg("sketcher_refresh cannot run inside a transaction block"),
				errdetail("It commits as it goes."));
	refresh = read_arguments(fcinfo);
	target = open_named(refresh.target, AccessShareLock);
	check_table_owner(target);
	refresh.owner = target->rd_rel->relowner;
	refresh.code = column_number(target, NameStr(*PG_GETARG_NAME(1)));
	get_code_column(target, refresh.code, &column);
	table_close(target, AccessShareLock);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	refresh_column(&refresh, column.model);
	SPI_finish();
	PG_RETURN_VOID();
}

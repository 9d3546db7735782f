/*
 * refresh.c
 *		sketcher_refresh: learns the rows that are new, publishes the model if that pays, and
 *		lets the codes follow.
 *
 * The procedure commits as it goes, so what it keeps is in memory that outlives
 * transactions, no table stays open, and everything is looked up again in each.
 */
#include "postgres.h"

#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/lmgr.h"

#include "table.h"

/* Finds everything anew, since it may have changed between two transactions. */
void
refresh_look_up(Refresh *refresh, Relation target, CodeColumn *column, ModelRow *row)
{
	const char *name = RelationGetRelationName(target);

	get_code_column(target, refresh->code, column);
	if (target->rd_rel->relowner != refresh->owner || column->model != refresh->model)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("owner or model table of table \"%s\" changed during the refresh", name));
	(void) model_row_get(column->model, GetActiveSnapshot(), false, row);
	if (DatumGetObjectId(ROW_VALUE(row, TARGET)) != refresh->target)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("model table \"%s\" is not that of table \"%s\"",
					   get_rel_name(column->model), name),
				errdetail("The codes are those of another table's model."),
				errhint("Refresh or detach that other table's column."));
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
	Relation	  target = open_named(refresh->target, RowExclusiveLock);
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

/* The share of bits that would change by publishing; 1 if nothing is published or learnt yet. */
static double
drift_of(Relation target, const ModelRow *row, const Model *model)
{
	const Model *published;

	if (ROW_IS_NULL(row, PUBLISHED) || model->rows == 0)
		return 1.0;
	published = sketcher_model(ROW_VALUE(row, PUBLISHED));
	if (published->config.dims != model->config.dims ||
		published->config.bits != model->config.bits)
		ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
				errmsg("models of table \"%s\" have %d bits for %d dimensions and %d for %d",
					   RelationGetRelationName(target), published->config.bits,
					   published->config.dims, model->config.bits, model->config.dims),
				errhint("Detach the column and attach it again."));
	return model_drift(published, model);
}

/*
 * Learns, and publishes if it pays; true if there are codes to be changed.  A walk that was not
 * finished (a crash, a cancel, a timeout) comes first.
 */
static bool
learn_and_publish(Refresh *refresh, Relation target)
{
	const char	*name = RelationGetRelationName(target);
	CodeColumn	 column;
	ModelRow	 row;
	Learning	 learning;
	const Model *model;
	double		 drift;
	bool		 pays;

	refresh_look_up(refresh, target, &column, &row);
	refresh->finishing = !ROW_IS_NULL(&row, WALK_TABLE);
	if (refresh->finishing)
	{
		ereport(NOTICE, errmsg("finishing an earlier refresh of table \"%s\"", name));
		return true;
	}
	learning = learn_rows(&row, &column);
	refresh->learnt = learning.learnt;
	model = sketcher_model(ROW_VALUE(&row, LEARNING));
	drift = drift_of(target, &row, model);
	pays = model->rows >= model->config.bits && drift >= refresh->min_drift;
	if (pays)
		model_row_publish(&row);
	else if (model->rows < model->config.bits)
		ereport(
			NOTICE, errmsg("table \"%s\" has no model yet", name),
			errdetail("A model of %d bits needs at least %d rows, and has learnt from " INT64_FORMAT
					  ".",
					  model->config.bits, model->config.bits, model->rows));
	else
		ereport(NOTICE, errmsg("table \"%s\": no new model is published, because only %.4f of "
							   "the bits would change",
							   name, drift));
	/* rows may have come past the trigger: with a partition, or while it was disabled */
	if (pays || (learning.missing > learning.skipped && !ROW_IS_NULL(&row, PUBLISHED)))
		model_row_set_walk(&row, InvalidOid, InvalidOid, 0);
	model_row_update(&row, learning.learnt > 0 || pays ? MODEL_PUBLISHED : MODEL_LEARNT,
					 MODEL_WALK_PAGE);
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

static void
refresh_locked(Refresh *refresh)
{
	next_transaction();
	do
	{
		if (refresh_step(refresh, learn_and_publish))
		{
			wait_for_writers(refresh);
			next_transaction();
			walk_codes(refresh);
		}
	} while (refresh->finishing);
}

/*
 * All of a refresh, in SPI that may commit.  Closes the target.  One runs at a time: a lock
 * lasts from transaction to transaction.  It is on the trigger's oid, which is no table, so
 * that neither VACUUM nor DROP meets it.
 */
void
refresh_column(Refresh *refresh, Relation target, AttrNumber code)
{
	LockRelId  lock = {.dbId = MyDatabaseId};
	CodeColumn column;

	check_table_owner(target);
	get_code_column(target, code, &column);
	refresh->target = RelationGetRelid(target);
	refresh->owner = target->rd_rel->relowner;
	refresh->code = code;
	refresh->model = column.model;
	refresh->context = CurrentMemoryContext;
	table_close(target, NoLock);
	lock.relId = column.trigger;
	if (!lock_for_session(&lock))
		ereport(ERROR, errcode(ERRCODE_OBJECT_IN_USE),
				errmsg("model table \"%s\" is in use by another refresh",
					   get_rel_name(column.model)),
				errhint("See pg_stat_activity for its progress."));
	refresh_locked(refresh);
	/* an error aborts the transaction, which lets go of it too */
	UnlockRelationIdForSession(&lock, ShareUpdateExclusiveLock);
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
	Refresh	 refresh;
	Relation target;

	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR, errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				errmsg("sketcher_refresh cannot run inside a transaction block"),
				errdetail("It commits as it goes."));
	refresh = read_arguments(fcinfo);
	target = open_named(PG_GETARG_OID(0), AccessShareLock);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	refresh_column(&refresh, target, column_number(target, NameStr(*PG_GETARG_NAME(1))));
	SPI_finish();
	PG_RETURN_VOID();
}

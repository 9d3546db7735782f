/*
 * refresh.c
 *		sketcher_refresh: publishes what has been learnt, and lets the codes follow.  And
 *		sketcher_hash with the model that a model table has published.
 *
 * The procedure commits as it goes, so what it keeps is in memory that outlives
 * transactions, and no table stays open.
 */
#include "postgres.h"

#include <math.h>

#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/tablecmds.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "table.h"

/* Finds what to refresh, with the caller's right to do so. */
static void
find_target(FunctionCallInfo fcinfo, Walk *walk)
{
	const Oid	schema = extension_schema(fcinfo->flinfo->fn_oid);
	const char *code_column = NameStr(*PG_GETARG_NAME(1));
	Relation	target;

	walk->target = PG_GETARG_OID(0);
	target = open_named(walk->target, AccessShareLock);
	table_check_owner(target);
	walk->owner = target->rd_rel->relowner;
	walk->model = link_of_column(target, code_column, schema, &walk->vector);
	walk->code = get_attnum(walk->target, code_column);
	walk->code_type = get_atttype(walk->target, walk->code);
	table_close(target, AccessShareLock);
}

/* The tables made by attach follow their table to its new owner. */
static void
follow_owner(const Walk *walk)
{
	Attachment attachment;

	if (table_owner(walk->model) == walk->owner)
		return;
	/* a fold locks both tables as well, in the same order */
	model_lock(walk->model, LOCK_FOLD, false, true);
	LockRelationOid(walk->model, AccessExclusiveLock);
	attachment_read_latest(walk->model, &attachment);
	LockRelationOid(attachment.pending, AccessExclusiveLock);
	pending_check_owner(attachment.pending, walk->model);
	ATExecChangeOwner(walk->model, walk->owner, true, AccessExclusiveLock);
	ATExecChangeOwner(attachment.pending, walk->owner, true, AccessExclusiveLock);
	CommandCounterIncrement();
}

/* The oldest transaction that has not ended, as a number that is never used again. */
static int64
oldest_transaction(void)
{
	const FullTransactionId next = ReadNextFullTransactionId();
	const TransactionId		oldest = GetActiveSnapshot()->xmin;

	return (int64) U64FromFullTransactionId(next) -
		   (int32) (XidFromFullTransactionId(next) - oldest);
}

/* That transaction, or none if it is too long ago to be compared with, or of another server. */
static TransactionId
transaction_since(int64 number)
{
	const int64 next = (int64) U64FromFullTransactionId(ReadNextFullTransactionId());

	if (number <= 0 || number > next || next - number > PG_INT32_MAX / 2)
		return InvalidTransactionId;
	return (TransactionId) number;
}

/* Drift since the last time, 1 if there was none. */
static double
drift_of(const Attachment *attachment)
{
	if (attachment->published == (Datum) 0)
		return 1.0;
	return model_drift(sketcher_model(attachment->published), sketcher_model(attachment->learning));
}

/* Publishes what has been learnt, if it pays; false if not. */
static bool
publish(const Walk *walk, double min_drift)
{
	const char *name = get_rel_name(walk->target);
	Attachment	attachment;
	int64		rows = 0;

	fold_pending(walk->model, true);
	attachment_read_latest(walk->model, &attachment);
	PushActiveSnapshot(GetTransactionSnapshot());
	if (attachment.learning != (Datum) 0)
		rows = sketcher_model(attachment.learning)->rows;
	if (rows < attachment.config.bits)
		ereport(
			NOTICE, errmsg("table \"%s\" has no model yet", name),
			errdetail("A model of %d bits needs at least as many rows, and has seen " INT64_FORMAT
					  ".",
					  attachment.config.bits, rows));
	else
	{
		const double drift = drift_of(&attachment);
		const bool	 pays = drift >= min_drift;

		if (pays)
		{
			int	  columns[] = {MODEL_PUBLISHED, MODEL_GENERATION, MODEL_WALK_TABLE,
							   MODEL_WALK_FILE, MODEL_WALK_PAGE,  MODEL_WALK_SINCE};
			Datum values[] = {attachment.learning,
							  Int64GetDatum(attachment.generation + 1),
							  ObjectIdGetDatum(walk->target),
							  ObjectIdGetDatum(InvalidOid),
							  Int64GetDatum(0),
							  Int64GetDatum(oldest_transaction())};
			bool  nulls[lengthof(columns)] = {false};

			attachment_update(walk->model, &attachment, columns, values, nulls, lengthof(columns));
		}
		else
			ereport(NOTICE, errmsg("nothing to do for table \"%s\": %.4f of the bits would change",
								   name, drift));
		PopActiveSnapshot();
		return pays;
	}
	PopActiveSnapshot();
	return false;
}

/* Brings all rows to the published model. */
static void
walk_rows(Walk *walk, MemoryContext context)
{
	Attachment attachment;

	PushActiveSnapshot(GetTransactionSnapshot());
	attachment_read_latest(walk->model, &attachment);
	hash_plan_free(&walk->plan);
	hash_plan_prepare(&walk->plan, attachment.published, context);
	PopActiveSnapshot();
	walk->since = transaction_since(attachment.walk_since);
	walk->writer_count = 0;
	walk->own_count = 0;
	walk->skipped = false;
	walk->pages = walk->pages_done = walk->looked_at = walk->changed = 0;
	walk_note_writers(walk);
	walk_commit();
	walk_all(walk);
	ereport(NOTICE, errmsg("table \"%s\": " INT64_FORMAT " codes changed",
						   get_rel_name(walk->target), walk->changed));
}

static void
refresh(Walk *walk, double min_drift, MemoryContext context)
{
	Attachment attachment;

	attachment_read_latest(walk->model, &attachment);
	if (OidIsValid(attachment.walk_table))
	{
		ereport(NOTICE,
				errmsg("finishing an earlier refresh of table \"%s\"", get_rel_name(walk->target)));
		walk_rows(walk, context);
	}
	if (publish(walk, min_drift))
	{
		walk_commit();
		walk_rows(walk, context);
	}
	walk_commit();
}

PG_FUNCTION_INFO_V1(sketcher_refresh);
Datum
sketcher_refresh(PG_FUNCTION_ARGS)
{
	const double  min_drift = PG_GETARG_FLOAT8(2);
	Walk		  walk = {.batch = PG_GETARG_INT32(3)};
	MemoryContext context;

	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR, errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				errmsg("sketcher_refresh cannot run inside a transaction block"),
				errdetail("It commits as it goes."));
	if (!(min_drift >= 0.0 && min_drift <= 1.0))
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("min_drift cannot be %g", min_drift),
				errdetail("It is a fraction of the bits, 0 to 1."));
	if (walk.batch < 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("batch cannot be %d", walk.batch),
				errdetail("It is a number of rows, at least 1."));
	find_target(fcinfo, &walk);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	context = CurrentMemoryContext;
	if (!model_lock(walk.model, LOCK_REFRESH, true, false))
		ereport(ERROR, errcode(ERRCODE_OBJECT_IN_USE),
				errmsg("column \"%s\" of table \"%s\" is being refreshed already",
					   NameStr(*PG_GETARG_NAME(1)), get_rel_name(walk.target)),
				errhint("pg_stat_activity shows how far that is."));
	PG_TRY();
	{
		follow_owner(&walk);
		walk_commit();
		refresh(&walk, min_drift, context);
	}
	PG_FINALLY();
	{
		model_unlock(walk.model, LOCK_REFRESH);
	}
	PG_END_TRY();
	hash_plan_free(&walk.plan);
	/* to clear up behind the models that were replaced */
	worker_launch(walk.model);
	SPI_finish();
	PG_RETURN_VOID();
}

/* sketcher_hash(model_table, v): with the published model, as this query sees it. */
PG_FUNCTION_INFO_V1(sketcher_hash_published);
Datum
sketcher_hash_published(PG_FUNCTION_ARGS)
{
	HashPlan **plan = (HashPlan **) &fcinfo->flinfo->fn_extra;
	const Oid  oid = PG_GETARG_OID(0);
	Relation   model;
	Attachment attachment;
	AclResult  allowed;

	model = open_named(oid, AccessShareLock);
	allowed = pg_class_aclcheck(oid, GetUserId(), ACL_SELECT);
	if (allowed != ACLCHECK_OK)
		aclcheck_error(allowed, OBJECT_TABLE, RelationGetRelationName(model));
	if (check_enable_rls(oid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("model table \"%s\" has row-level security",
					   RelationGetRelationName(model)));
	attachment_read(model, GetActiveSnapshot(), &attachment);
	if (attachment.published == (Datum) 0)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("model table \"%s\" has not published a model yet",
					   RelationGetRelationName(model)),
				errhint("CALL sketcher_refresh when the table has at least %d rows.",
						attachment.config.bits));
	hash_plan_prepare(plan, attachment.published, fcinfo->flinfo->fn_mcxt);
	table_close(model, AccessShareLock);
	PG_RETURN_POINTER(hash_plan_code(*plan, PG_GETARG_VECTOR(1)));
}

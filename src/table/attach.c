/*
 * attach.c
 *		sketcher_attach and sketcher_detach: the code column, the model table and the
 *		trigger come and go.
 *
 * Every statement is run as the owner of the target, with all names qualified.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "utils/resowner.h"
#include "utils/xid8.h"

#include "table.h"

/* What is being attached; names that begin with sql_ are quoted. */
typedef struct Attach
{
	Oid			target;
	bool		is_parted;
	Oid			model;
	ModelConfig config;
	bool		dims_known;
	bool		has_code;
	bool		auto_refresh_is_null;
	double		auto_refresh;
	const char *vector_name;
	const char *code_name;
	char	   *sql_target;
	const char *sql_model;
	const char *sql_vector;
	const char *sql_code;
	const char *sql_extension;
} Attach;

static void
check_target(Relation target)
{
	const char *name = RelationGetRelationName(target);
	const char	kind = target->rd_rel->relkind;

	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a table", name));
	if (target->rd_rel->relispartition)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is a partition", name),
				errhint("Attach the column of the partitioned table; its partitions follow."));
}

static void
check_columns(Attach *attach, Relation target)
{
	const char		 *table = RelationGetRelationName(target);
	const AttrNumber  vector = column_number(target, attach->vector_name);
	const AttrNumber  code = get_attnum(attach->target, attach->code_name);
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(target), vector - 1);
	VectorColumn	  reader;
	CodeColumn		  column;

	if (attribute->attgenerated != '\0')
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("column \"%s\" of table \"%s\" is generated", attach->vector_name, table),
				errdetail("Its value is not known yet when the trigger makes the code."),
				errhint("Use an ordinary vector column, filled by a BEFORE trigger."));
	vector_column_init(&reader, target, vector);
	attach->has_code = code != InvalidAttrNumber;
	if (!attach->has_code)
		return;
	check_code_type(target, column_number(target, attach->code_name), attach->config.bits);
	if (find_code_column(target, code, InvalidOid, &column))
		ereport(ERROR, errcode(ERRCODE_DUPLICATE_OBJECT),
				errmsg("column \"%s\" of table \"%s\" is attached already", attach->code_name,
					   table),
				errhint("Detach it first with sketcher_detach."));
}

/* All arguments but the last two may not be null. */
static Attach
read_arguments(FunctionCallInfo fcinfo)
{
	static const char *const names[] = {"target",	  "vector_column", "code_column", "bits",
										"tracker",	  "rotation",	   "stable",	  "center",
										"forgetting", "seed",		   "normalize",	  "backfill"};
	Attach					 attach = {0};

	for (size_t i = 0; i < lengthof(names); i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("%s cannot be null", names[i]));
	}
	attach.target = PG_GETARG_OID(0);
	attach.vector_name = NameStr(*PG_GETARG_NAME(1));
	attach.code_name = NameStr(*PG_GETARG_NAME(2));
	attach.auto_refresh_is_null = PG_ARGISNULL(12);
	attach.auto_refresh = attach.auto_refresh_is_null ? 0.0 : PG_GETARG_FLOAT8(12);
	attach.dims_known = !PG_ARGISNULL(13);
	attach.config = sketcher_config(attach.dims_known ? PG_GETARG_INT32(13) : MODEL_MAX_DIMS,
									PG_GETARG_INT32(3), PG_GETARG_TEXT_PP(4), PG_GETARG_TEXT_PP(5),
									PG_GETARG_BOOL(6), PG_GETARG_BOOL(7), PG_GETARG_FLOAT8(8),
									PG_GETARG_INT64(9));
	attach.config.normalize = PG_GETARG_BOOL(10);
	if (!(attach.auto_refresh >= 0.0 && attach.auto_refresh <= 1.0))
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("auto_refresh cannot be %g", attach.auto_refresh),
				errdetail("It is a fraction of the bits, 0 to 1, or null."));
	attach.sql_vector = quote_identifier(attach.vector_name);
	attach.sql_code = quote_identifier(attach.code_name);
	attach.sql_extension =
		quote_identifier(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid)));
	return attach;
}

/* The model table and its row. */
static void
make_model_table(Attach *attach)
{
	Datum values[4];
	Oid	  types[4] = {REGCLASSOID, InvalidOid, INT4OID, FLOAT8OID};
	char  nulls[4] = {' ', ' ', attach->dims_known ? ' ' : 'n',
					  attach->auto_refresh_is_null ? 'n' : ' '};

	sql_run(psprintf("CREATE TABLE %s (%s)", attach->sql_model,
					 model_table_columns(attach->sql_extension)));
	sql_run(psprintf("COMMENT ON TABLE %s IS 'unifdiag: the models of a column of codes'",
					 attach->sql_model));
	attach->model =
		DatumGetObjectId(DirectFunctionCall1(regclassin, CStringGetDatum(attach->sql_model)));
	types[1] = get_atttype(attach->model, MODEL_LEARNING);
	values[0] = ObjectIdGetDatum(attach->target);
	values[1] = SketcherGetDatum(sketcher_create(&attach->config, CurrentMemoryContext));
	values[2] = Int32GetDatum(attach->config.dims);
	values[3] = Float8GetDatum(attach->auto_refresh);
	if (SPI_execute_with_args(psprintf("INSERT INTO %s (target, learning, dims, auto_refresh, "
									   "generation) VALUES ($1, $2, $3, $4, 0)",
									   attach->sql_model),
							  4, types, values, nulls, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not fill a model table");
}

/*
 * The trigger: the last of its kind, as the names go, so that it sees the vector as it will
 * be stored.  Replicated rows get codes, too.
 */
static void
make_trigger(const Attach *attach)
{
	const char *name = quote_identifier(makeObjectName("zz_unifdiag", attach->code_name, "hash"));

	PG_TRY();
	{
		sql_run(
			psprintf("CREATE TRIGGER %1$s BEFORE INSERT OR UPDATE ON %2$s FOR EACH ROW "
					 "WHEN (%3$s.sketcher_columns(%4$s::pg_catalog.regclass, NEW.%5$s, NEW.%6$s)) "
					 "EXECUTE FUNCTION %3$s.sketcher_hash_trigger()",
					 name, attach->sql_target, attach->sql_extension,
					 quote_literal_cstr(attach->sql_model), attach->sql_vector, attach->sql_code));
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(CurTransactionContext);
		error = CopyErrorData();
		FlushErrorState();
		/* Citus's distributed tables, for example */
		if (error->hint == NULL)
			error->hint = "Where a table cannot have triggers, add a column of type bithash, learn "
						  "a model with sketcher_agg, and fill the column with sketcher_hash.";
		ReThrowError(error);
	}
	PG_END_TRY();
	sql_run(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", attach->sql_target, name));
}

/*
 * Stores the row, with the model that it publishes, and lets the trigger make all codes.  The rows have
 * the number of a subtransaction: what comes later in a longer transaction has to be learnt.
 */
static void
make_codes(const Attach *attach, ModelRow *row, int64 rows)
{
	Datum transaction = FullTransactionIdGetDatum(GetCurrentFullTransactionId());
	char *update;

	add_rewritten(row, &transaction, 1);
	model_row_update(row, MODEL_PUBLISHED, MODEL_REWRITTEN);
	/* only partitions have the trigger, too; a row with a null field would not be IS NOT NULL */
	update = psprintf("UPDATE %4$s%1$s SET %2$s = NULL "
					  "WHERE %3$s IS DISTINCT FROM NULL OR %2$s IS NOT NULL",
					  attach->sql_target, attach->sql_code, attach->sql_vector,
					  attach->is_parted ? "" : "ONLY ");
	if (SPI_execute_snapshot(SPI_prepare(update, 0, NULL), NULL, NULL, GetLatestSnapshot(),
							 InvalidSnapshot, false, true, 0) < 0)
		elog(ERROR, "could not execute: %s", update);
	report_kept(attach->target, rows - (int64) SPI_processed);
}

static void
make_codes_in_subtransaction(const Attach *attach, ModelRow *row, int64 rows)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		MemoryContextSwitchTo(context);
		make_codes(attach, row, rows);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		ReThrowError(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
}

/*
 * Learns the existing rows, and lets the trigger make their codes.  The table is locked: there are no
 * others than those that the newest snapshot sees, whatever the isolation level.
 */
static void
backfill(const Attach *attach, const CodeColumn *column)
{
	ModelRow row;
	Learning learning;

	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	(void) model_row_get(attach->model, GetActiveSnapshot(), false, &row);
	learning = learn_rows(&row, column);
	if (learning.skipped > 0 && ROW_IS_NULL(&row, DIMS))
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("number of bits cannot be %d", attach->config.bits),
				errdetail("A code cannot have more bits than its vectors have dimensions."));
	if (learning.skipped > 0)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg(INT64_FORMAT " of " INT64_FORMAT " rows of column \"%s\" cannot be learnt",
					   learning.skipped, learning.skipped + learning.learnt, attach->vector_name),
				errdetail("All vectors need the same number of finite elements."),
				errhint("Change these rows, or attach with backfill => false: a refresh leaves "
						"them without codes."));
	if (learning.learnt >= attach->config.bits)
	{
		model_row_publish(&row);
		make_codes_in_subtransaction(attach, &row, learning.learnt);
	}
	else if (learning.learnt > 0)
		model_row_update(&row, MODEL_PUBLISHED, MODEL_REWRITTEN);
	PopActiveSnapshot();
}

PG_FUNCTION_INFO_V1(sketcher_attach);
Datum
sketcher_attach(PG_FUNCTION_ARGS)
{
	Attach		  attach = read_arguments(fcinfo);
	Relation	  target = open_own(attach.target, AccessExclusiveLock);
	const Oid	  owner = target->rd_rel->relowner;
	const char	 *schema = get_namespace_name(RelationGetNamespace(target));
	ObjectAddress model_address;
	ObjectAddress code_address;
	CodeColumn	  column;
	SqlUser		  user;

	check_target(target);
	(void) leaf_tables(attach.target);
	check_columns(&attach, target);
	attach.is_parted = target->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	attach.sql_target = sql_relation(attach.target);
	attach.sql_model = quote_qualified_identifier(
		schema, makeObjectName(RelationGetRelationName(target), attach.code_name, "model"));
	/* keeps the lock: DDL refuses a table that is open */
	table_close(target, NoLock);

	user = become_user(owner);
	SPI_connect();
	if (!attach.has_code)
		sql_run(psprintf("ALTER TABLE %s ADD COLUMN %s %s.bithash(%d)", attach.sql_target,
						 attach.sql_code, attach.sql_extension, attach.config.bits));
	make_model_table(&attach);
	make_trigger(&attach);
	CommandCounterIncrement();
	target = table_open(attach.target, NoLock);
	get_code_column(target, column_number(target, attach.code_name), &column);
	table_close(target, NoLock);
	/* the model table goes with the code column; a dump does not know this */
	ObjectAddressSet(model_address, RelationRelationId, attach.model);
	ObjectAddressSubSet(code_address, RelationRelationId, attach.target, column.code);
	recordDependencyOn(&model_address, &code_address, DEPENDENCY_AUTO);
	if (PG_GETARG_BOOL(11))
		backfill(&attach, &column);
	else if (!attach.auto_refresh_is_null)
		worker_ask(attach.model);
	SPI_finish();
	restore_user(user);
	PG_RETURN_OID(attach.model);
}

PG_FUNCTION_INFO_V1(sketcher_detach);
Datum
sketcher_detach(PG_FUNCTION_ARGS)
{
	Relation   target = open_own(PG_GETARG_OID(0), AccessExclusiveLock);
	const Oid  owner = target->rd_rel->relowner;
	CodeColumn column;
	SqlUser	   user;

	get_code_column(target, column_number(target, NameStr(*PG_GETARG_NAME(1))), &column);
	table_close(target, NoLock);
	user = become_user(owner);
	SPI_connect();
	sql_run(psprintf("DROP TRIGGER %s ON %s", quote_identifier(column.trigger_name),
					 sql_relation(PG_GETARG_OID(0))));
	/* not CASCADE: an error if something else depends on it, such as a trigger of another table */
	sql_run(psprintf("DROP TABLE %s", sql_relation(column.model)));
	SPI_finish();
	restore_user(user);
	PG_RETURN_VOID();
}

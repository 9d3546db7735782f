/*
 * attach.c
 *		sketcher_attach and sketcher_detach: the model table, the pending table and the
 *		triggers come and go.
 *
 * Every statement is run as the owner of the target, with all names qualified.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"

#include "../compat.h"
#include "sql.h"
#include "table.h"

/* What is being attached; names are quoted where they are called sql_*. */
typedef struct Attach
{
	Oid			target;
	Oid			schema; /* the extension's */
	const char *sql_target;
	const char *sql_vector;
	const char *sql_code;
	const char *sql_extension;
	const char *vector_column;
	const char *code_column;
	char	   *model_name;
	char	   *pending_name;
	char	   *hash_trigger;
	char	   *learn_trigger;
	bool		has_code;
	ModelConfig config;
	text	   *tracker;
	text	   *rotation;
} Attach;

static void
check_target(Relation target)
{
	const char *name = RelationGetRelationName(target);

	if (target->rd_rel->relkind != RELKIND_RELATION &&
		target->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a table", name));
	if (target->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("table \"%s\" is temporary", name),
				errdetail("Vectors are learnt by a background worker, which does not see it."),
				errhint("Use sketcher_agg and sketcher_hash."));
}

/* Only the owner, and only if no policy hides rows from the owner. */
void
table_check_owner(Relation target)
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

static void
check_columns(Attach *attach, Relation target)
{
	TupleDesc		 descriptor = RelationGetDescr(target);
	const AttrNumber vector = get_attnum(attach->target, attach->vector_column);
	const AttrNumber code = get_attnum(attach->target, attach->code_column);
	VectorColumn	 column;

	if (vector <= 0)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("column \"%s\" of table \"%s\" does not exist", attach->vector_column,
					   RelationGetRelationName(target)));
	vector_column_init(&column, TupleDescAttr(descriptor, vector - 1)->atttypid,
					   attach->vector_column, CurrentMemoryContext);
	attach->has_code = code != InvalidAttrNumber;
	if (attach->has_code)
	{
		Form_pg_attribute attribute = code > 0 ? TupleDescAttr(descriptor, code - 1) : NULL;

		if (attribute == NULL || !is_bithash_type(attribute->atttypid) ||
			attribute->attgenerated != '\0' ||
			(attribute->atttypmod != -1 && attribute->atttypmod != attach->config.bits))
			ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("column \"%s\" cannot hold codes of %d bits", attach->code_column,
						   attach->config.bits),
					errdetail("It must be an ordinary column of type bithash(%d) or bithash.",
							  attach->config.bits));
		if (link_exists(target, code, attach->schema))
			ereport(ERROR, errcode(ERRCODE_DUPLICATE_OBJECT),
					errmsg("column \"%s\" of table \"%s\" is attached already", attach->code_column,
						   RelationGetRelationName(target)),
					errhint("Detach it first with sketcher_detach."));
	}
}

static void
make_tables(const Attach *attach, const char *sql_model, const char *sql_pending)
{
	if (!attach->has_code)
		sql_run("ALTER TABLE %s ADD COLUMN %s %s.bithash(%d)", attach->sql_target, attach->sql_code,
				attach->sql_extension, attach->config.bits);
	sql_run(
		"CREATE TABLE %1$s (published %2$s.sketcher, learning %2$s.sketcher, "
		"target pg_catalog.regclass NOT NULL, pending pg_catalog.regclass NOT NULL, "
		"bits pg_catalog.int4 NOT NULL, dims pg_catalog.int4, tracker pg_catalog.text NOT NULL, "
		"rotation pg_catalog.text NOT NULL, stable pg_catalog.bool NOT NULL, "
		"center pg_catalog.bool NOT NULL, forgetting pg_catalog.float8 NOT NULL, "
		"seed pg_catalog.int8 NOT NULL, generation pg_catalog.int8 NOT NULL, "
		"walk_table pg_catalog.regclass, walk_file pg_catalog.oid, walk_page pg_catalog.int8, "
		"walk_since pg_catalog.int8, "
		"CONSTRAINT tie CHECK (%2$s.sketcher_tie(tableoid, target, pending))) USING heap",
		sql_model, attach->sql_extension);
	/* a row with few vectors stays as it is: compressing it, or storing it elsewhere, costs more */
	sql_run(
		"CREATE TABLE %s (rows pg_catalog.int4, vectors pg_catalog.float4[], delta %s.sketcher) "
		"USING heap WITH (toast_tuple_target = 8160)",
		sql_pending, attach->sql_extension);
	sql_run("ALTER TABLE %s ALTER COLUMN vectors SET STORAGE EXTERNAL", sql_pending);
	sql_run("COMMENT ON TABLE %s IS %s", sql_model,
			quote_literal_cstr("unifdiag: the models of a column of codes"));
	sql_run("COMMENT ON TABLE %s IS %s", sql_pending,
			quote_literal_cstr("unifdiag: vectors that wait to be learnt"));
}

/* The number of dimensions of the first vector there is, or 0. */
static int
first_dims(const Attach *attach)
{
	int dims = 0;

	sql_run("SELECT %1$s::pg_catalog.float4[] FROM %2$s WHERE %1$s IS NOT NULL LIMIT 1",
			attach->sql_vector, attach->sql_target);
	if (SPI_processed > 0)
	{
		bool  is_null;
		Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);

		dims = vector_read(DatumGetArrayTypeP(value)).dims;
	}
	return dims;
}

/* Runs a query with a model as its parameter. */
static void
run_with_model(const Attach *attach, const char *query, Sketcher *model, int expected)
{
	Oid	  types[1] = {extension_type(attach->schema, "sketcher")};
	Datum values[1] = {SketcherGetDatum(model)};

	if (SPI_execute_with_args(query, 1, types, values, NULL, false, 0) != expected)
		elog(ERROR, "could not execute: %s", query);
}

/* Learns all rows there are; returns a model that is not in SPI's memory, or NULL. */
static Sketcher *
learn_rows(const Attach *attach, MemoryContext context)
{
	char *query = psprintf("SELECT %s.sketcher_learn($1, %s::pg_catalog.float4[]) FROM %s",
						   attach->sql_extension, attach->sql_vector, attach->sql_target);
	bool  is_null;
	Datum learnt;

	run_with_model(attach, query, sketcher_create(&attach->config, CurrentMemoryContext),
				   SPI_OK_SELECT);
	learnt = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
	return is_null ? NULL : sketcher_writable(learnt, context);
}

static void
insert_model(const Attach *attach, Oid model, Oid pending, Sketcher *learnt, bool publish)
{
	Relation relation = table_open(model, RowExclusiveLock);
	Datum	 values[MODEL_COLUMNS] = {0};
	bool	 nulls[MODEL_COLUMNS] = {false};

#define SET(column, value) values[MODEL_##column - 1] = (value)
#define SET_NULL(column) nulls[MODEL_##column - 1] = true
	SET(PUBLISHED, publish ? SketcherGetDatum(learnt) : (Datum) 0);
	SET(LEARNING, learnt != NULL ? SketcherGetDatum(learnt) : (Datum) 0);
	nulls[MODEL_PUBLISHED - 1] = !publish;
	nulls[MODEL_LEARNING - 1] = learnt == NULL;
	SET(TARGET, ObjectIdGetDatum(attach->target));
	SET(PENDING, ObjectIdGetDatum(pending));
	SET(BITS, Int32GetDatum(attach->config.bits));
	SET(DIMS, Int32GetDatum(attach->config.dims));
	nulls[MODEL_DIMS - 1] = attach->config.dims == 0;
	SET(TRACKER, PointerGetDatum(attach->tracker));
	SET(ROTATION, PointerGetDatum(attach->rotation));
	SET(STABLE, BoolGetDatum(attach->config.stable));
	SET(CENTER, BoolGetDatum(attach->config.center));
	SET(FORGETTING, Float8GetDatum(attach->config.forgetting));
	SET(SEED, Int64GetDatum(attach->config.seed));
	SET(GENERATION, Int64GetDatum(publish ? 1 : 0));
	SET_NULL(WALK_TABLE);
	SET_NULL(WALK_FILE);
	SET_NULL(WALK_PAGE);
	SET_NULL(WALK_SINCE);
#undef SET
#undef SET_NULL
	CatalogTupleInsert(relation, heap_form_tuple(RelationGetDescr(relation), values, nulls));
	table_close(relation, NoLock);
	CommandCounterIncrement();
}

/* Codes for the rows there are, in one pass; the triggers are not there yet. */
static void
hash_rows(const Attach *attach, Sketcher *model)
{
	char *query =
		psprintf("UPDATE %1$s SET %2$s = %3$s.sketcher_hash($1, %4$s::pg_catalog.float4[]) "
				 "WHERE %4$s IS NOT NULL",
				 attach->sql_target, attach->sql_code, attach->sql_extension, attach->sql_vector);

	run_with_model(attach, query, model, SPI_OK_UPDATE);
}

static void
make_triggers(const Attach *attach, Oid model)
{
	const char *argument = quote_literal_cstr(quote_identifier(attach->model_name));
	const char *hash = quote_identifier(attach->hash_trigger);
	const char *learn = quote_identifier(attach->learn_trigger);

	sql_run("CREATE TRIGGER %s BEFORE INSERT OR UPDATE OF %s, %s ON %s FOR EACH ROW "
			"EXECUTE FUNCTION %s.sketcher_hash_trigger(%s)",
			hash, attach->sql_vector, attach->sql_code, attach->sql_target, attach->sql_extension,
			argument);
	sql_run("CREATE TRIGGER %s AFTER INSERT OR UPDATE OF %s ON %s FOR EACH ROW "
			"EXECUTE FUNCTION %s.sketcher_learn_trigger(%s)",
			learn, attach->sql_vector, attach->sql_target, attach->sql_extension, argument);
	/* also for rows that come by replication: they would bring codes of another model */
	sql_run("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s, ENABLE ALWAYS TRIGGER %s", attach->sql_target,
			hash, learn);
	CommandCounterIncrement();
	link_record(get_trigger_oid(attach->target, attach->hash_trigger, false), model);
	link_record(get_trigger_oid(attach->target, attach->learn_trigger, false), model);
}

static Attach
read_arguments(FunctionCallInfo fcinfo)
{
	Attach	  attach = {0};
	int		  dims;
	const Oid schema = extension_schema(fcinfo->flinfo->fn_oid);

	for (int i = 0; i < 10; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("argument %d of sketcher_attach is null", i + 1));
	}
	dims = PG_ARGISNULL(10) ? 0 : PG_GETARG_INT32(10);
	attach.target = PG_GETARG_OID(0);
	attach.schema = schema;
	attach.vector_column = NameStr(*PG_GETARG_NAME(1));
	attach.code_column = NameStr(*PG_GETARG_NAME(2));
	attach.tracker = PG_GETARG_TEXT_PP(4);
	attach.rotation = PG_GETARG_TEXT_PP(5);
	attach.config = sketcher_config(PG_ARGISNULL(10) ? MODEL_MAX_DIMS : dims, PG_GETARG_INT32(3),
									attach.tracker, attach.rotation, PG_GETARG_BOOL(6),
									PG_GETARG_BOOL(7), PG_GETARG_FLOAT8(8), PG_GETARG_INT64(9));
	attach.config.dims = dims;
	attach.sql_vector = quote_identifier(attach.vector_column);
	attach.sql_code = quote_identifier(attach.code_column);
	attach.sql_extension = quote_identifier(get_namespace_name(schema));
	return attach;
}

PG_FUNCTION_INFO_V1(sketcher_attach);
Datum
sketcher_attach(PG_FUNCTION_ARGS)
{
	Attach		  attach = read_arguments(fcinfo);
	MemoryContext context = CurrentMemoryContext;
	Relation	  target = open_named(attach.target, AccessExclusiveLock);
	Oid namespace = RelationGetNamespace(target);
	const char *table_name = pstrdup(RelationGetRelationName(target));
	const Oid	owner = target->rd_rel->relowner;
	const char *schema_name = get_namespace_name(namespace);
	const char *sql_model;
	const char *sql_pending;
	Sketcher   *learnt = NULL;
	bool		publish;
	Oid			model;
	Oid			pending;
	SqlUser		user;

	check_target(target);
	table_check_owner(target);
	check_columns(&attach, target);
	/* only the lock stays: what has it open may not change it */
	table_close(target, NoLock);
	attach.sql_target = quote_qualified_identifier(schema_name, table_name);
	attach.model_name = makeObjectName(table_name, attach.code_column, "model");
	attach.pending_name = makeObjectName(table_name, attach.code_column, "pending");
	/* the last of the triggers of its kind, as the names go: the vector is then as it will be
	 * stored */
	attach.hash_trigger = makeObjectName("zz_unifdiag", attach.code_column, "hash");
	attach.learn_trigger = makeObjectName("zz_unifdiag", attach.code_column, "learn");
	sql_model = quote_qualified_identifier(schema_name, attach.model_name);
	sql_pending = quote_qualified_identifier(schema_name, attach.pending_name);

	user = sql_become(owner);
	SPI_connect();
	make_tables(&attach, sql_model, sql_pending);
	model = get_relname_relid(attach.model_name, namespace);
	pending = get_relname_relid(attach.pending_name, namespace);
	if (attach.config.dims == 0)
	{
		const int dims = first_dims(&attach);

		if (dims > 0)
			attach.config = sketcher_config_for(&attach.config, dims);
	}
	if (attach.config.dims > 0)
		learnt = learn_rows(&attach, context);
	if (learnt != NULL && learnt->model->rows == 0)
		learnt = NULL;
	publish = learnt != NULL && learnt->model->rows >= attach.config.bits;
	insert_model(&attach, model, pending, learnt, publish);
	if (publish)
		hash_rows(&attach, learnt);
	make_triggers(&attach, model);
	SPI_finish();
	sql_become_again(user);
	PG_RETURN_OID(model);
}

PG_FUNCTION_INFO_V1(sketcher_detach);
Datum
sketcher_detach(PG_FUNCTION_ARGS)
{
	const Oid	  schema = extension_schema(fcinfo->flinfo->fn_oid);
	Relation	  target = open_named(PG_GETARG_OID(0), AccessExclusiveLock);
	Oid			  model;
	List		 *triggers;
	ListCell	 *cell;
	ObjectAddress object;

	table_check_owner(target);
	model = link_of_column(target, NameStr(*PG_GETARG_NAME(1)), schema, NULL);
	triggers = link_triggers(target, schema, model);
	table_close(target, NoLock);
	/* links that were recorded just now go with the triggers, too */
	CommandCounterIncrement();
	foreach (cell, triggers)
	{
		ObjectAddressSet(object, TriggerRelationId, lfirst_oid(cell));
		performDeletion(&object, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	}
	/* the pending table goes along; what others have built on the model table keeps it */
	ObjectAddressSet(object, RelationRelationId, model);
	performDeletion(&object, DROP_RESTRICT, 0);
	PG_RETURN_VOID();
}

/*
 * model_table.c
 *		The model table's row: read and changed.  And sketcher_hash with the model that a
 *		model table has published.
 *
 * Reading goes below SQL: whoever inserts into the target has no privileges on the model
 * table, and needs none.  Changes go through SQL, as the owner.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "utils/acl.h"
#include "utils/datum.h"
#include "utils/rls.h"
#include "utils/varlena.h"

#include "table.h"

/* type InvalidOid: sketcher */
static const struct
{
	const char *name;
	Oid			type;
	bool		may_be_null;
} model_columns[MODEL_COLUMNS] = {
	{"target", REGCLASSOID, false},	   {"auto_refresh", FLOAT8OID, true},
	{"published", InvalidOid, true},   {"learning", InvalidOid, false},
	{"dims", INT4OID, true},		   {"generation", INT8OID, false},
	{"learnt", PG_SNAPSHOTOID, true},  {"server", INT8OID, true},
	{"learnt_in", OIDARRAYOID, true},  {"rewritten", XID8ARRAYOID, true},
	{"walk_table", REGCLASSOID, true}, {"walk_file", OIDOID, true},
	{"walk_page", INT8OID, true},
};

/* The columns as CREATE TABLE wants them; the schema of the extension is given. */
char *
model_table_columns(const char *extension)
{
	StringInfoData sql;

	initStringInfo(&sql);
	for (int i = 0; i < MODEL_COLUMNS; i++)
		appendStringInfo(&sql, "%s %s%s, ", model_columns[i].name,
						 OidIsValid(model_columns[i].type)
							 ? format_type_be_qualified(model_columns[i].type)
							 : psprintf("%s.sketcher", extension),
						 model_columns[i].may_be_null ? "" : " NOT NULL");
	appendStringInfo(&sql, "PRIMARY KEY (%s)", model_columns[0].name);
	return sql.data;
}

/* Is this a model table, by its columns? */
static void
check_model_table(Relation model)
{
	TupleDesc descriptor = RelationGetDescr(model);
	bool good = model->rd_rel->relkind == RELKIND_RELATION && descriptor->natts >= MODEL_COLUMNS;

	for (int i = 0; good && i < MODEL_COLUMNS; i++)
	{
		Form_pg_attribute column = TupleDescAttr(descriptor, i);
		const Oid		  type = model_columns[i].type;

		good = !column->attisdropped &&
			   strcmp(NameStr(column->attname), model_columns[i].name) == 0 &&
			   (OidIsValid(type) ? column->atttypid == type
								 : is_type_of(column->atttypid, sketcher_in));
	}
	if (!good)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("\"%s\" is not a model table", RelationGetRelationName(model)),
				errhint("A model table is made by sketcher_attach."));
}

/* Refuses a row with impossible values. */
static void
check_model_row(Relation model, const ModelRow *row)
{
	const char *bad = NULL;

	for (int i = 0; i < MODEL_COLUMNS; i++)
	{
		if (row->nulls[i] && !model_columns[i].may_be_null)
			bad = model_columns[i].name;
	}
	if (!ROW_IS_NULL(row, DIMS) && (DatumGetInt32(ROW_VALUE(row, DIMS)) < 1 ||
									DatumGetInt32(ROW_VALUE(row, DIMS)) > VECTOR_MAX_DIMS))
		bad = "dims";
	if (!ROW_IS_NULL(row, AUTO_REFRESH) && !(DatumGetFloat8(ROW_VALUE(row, AUTO_REFRESH)) >= 0.0 &&
											 DatumGetFloat8(ROW_VALUE(row, AUTO_REFRESH)) <= 1.0))
		bad = "auto_refresh";
	if (!ROW_IS_NULL(row, WALK_TABLE) &&
		(ROW_IS_NULL(row, WALK_PAGE) || ROW_IS_NULL(row, WALK_FILE) ||
		 ROW_IS_NULL(row, PUBLISHED) || DatumGetInt64(ROW_VALUE(row, WALK_PAGE)) < 0 ||
		 DatumGetInt64(ROW_VALUE(row, WALK_PAGE)) > MaxBlockNumber))
		bad = "walk_table";
	if (bad != NULL)
		ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
				errmsg("column \"%s\" of model table \"%s\" has an impossible value", bad,
					   RelationGetRelationName(model)),
				errhint("Detach the column and attach it again."));
}

/*
 * The row, in the current memory context; false if there is none and that is allowed.  Its
 * models are as stored, mostly toast pointers, good for as long as the snapshot is.
 */
bool
model_row_get(Oid oid, Snapshot snapshot, bool missing_ok, ModelRow *row)
{
	Relation		model = open_named(oid, AccessShareLock);
	TupleTableSlot *slot;
	TableScanDesc	scan;
	bool			found;

	check_model_table(model);
	memset(row, 0, sizeof(*row));
	row->model = oid;
	slot = table_slot_create(model, NULL);
	scan = table_beginscan_strat(model, snapshot, 0, NULL, true, false);
	found = table_scan_getnextslot(scan, ForwardScanDirection, slot);
	for (int i = 0; found && i < MODEL_COLUMNS; i++)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(model), i);
		const Datum		  value = slot_getattr(slot, i + 1, &row->nulls[i]);

		if (!row->nulls[i])
			row->values[i] = datumCopy(value, column->attbyval, column->attlen);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	if (found)
		check_model_row(model, row);
	else if (!missing_ok)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("model table \"%s\" is empty", RelationGetRelationName(model)),
				errhint("Detach the column and attach it again."));
	/* the lock stays, for models that are still to be fetched */
	table_close(model, NoLock);
	return found;
}

void
model_row_set(ModelRow *row, int column, Datum value)
{
	row->values[column - 1] = value;
	row->nulls[column - 1] = false;
}

/* Marks the walk: the page from which on codes have to follow the published model. */
void
model_row_set_walk(ModelRow *row, Oid table, Oid file, BlockNumber page)
{
	model_row_set(row, MODEL_WALK_TABLE, ObjectIdGetDatum(table));
	model_row_set(row, MODEL_WALK_FILE, ObjectIdGetDatum(file));
	model_row_set(row, MODEL_WALK_PAGE, Int64GetDatum((int64) page));
}

/* Publishes the learning model: it makes the codes from now on. */
void
model_row_publish(ModelRow *row)
{
	model_row_set(row, MODEL_PUBLISHED, ROW_VALUE(row, LEARNING));
	model_row_set(row, MODEL_GENERATION,
				  Int64GetDatum(DatumGetInt64(ROW_VALUE(row, GENERATION)) + 1));
}

/* Stores the row's columns from first to last; runs in SPI, as the owner. */
void
model_row_update(ModelRow *row, int first, int last)
{
	Relation	   model = table_open(row->model, RowExclusiveLock);
	Oid			   types[MODEL_COLUMNS];
	char		   nulls[MODEL_COLUMNS];
	StringInfoData query;

	check_model_table(model);
	initStringInfo(&query);
	appendStringInfo(&query, "UPDATE ONLY %s SET ", sql_relation(row->model));
	for (int i = 0; i < MODEL_COLUMNS; i++)
	{
		types[i] = TupleDescAttr(RelationGetDescr(model), i)->atttypid;
		nulls[i] = row->nulls[i] ? 'n' : ' ';
		if (i + 1 >= first && i + 1 <= last)
			appendStringInfo(&query, "%s%s = $%d", i + 1 > first ? ", " : "", model_columns[i].name,
							 i + 1);
	}
	table_close(model, NoLock);
	appendStringInfoString(&query, " WHERE target OPERATOR(pg_catalog.=) $1");
	if (SPI_execute_with_args(query.data, MODEL_COLUMNS, types, row->values, nulls, false, 0) !=
			SPI_OK_UPDATE ||
		SPI_processed != 1)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("could not change the row of model table \"%s\"", get_rel_name(row->model)),
				errdetail("A rule, a trigger or a policy of that table prevents it."));
	pfree(query.data);
}

/* sketcher_hash(model_table, v): with the published model, as this query sees it. */
static BitHash *
hash_published(FunctionCallInfo fcinfo, Oid oid)
{
	Relation		model = open_named(oid, AccessShareLock);
	const char	   *name = RelationGetRelationName(model);
	const AclResult allowed = pg_class_aclcheck(oid, GetUserId(), ACL_SELECT);
	ModelRow		row;

	if (allowed != ACLCHECK_OK)
		aclcheck_error(allowed, OBJECT_TABLE, name);
	if (check_enable_rls(oid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("model table \"%s\" has row-level security", name));
	if (!model_row_get(oid, GetActiveSnapshot(), true, &row) || ROW_IS_NULL(&row, PUBLISHED))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("model table \"%s\" has not published a model yet", name),
				errhint("CALL sketcher_refresh when the table has at least as many rows as a "
						"code has bits."));
	table_close(model, NoLock);
	return hash_argument(fcinfo, ROW_VALUE(&row, PUBLISHED));
}

PG_FUNCTION_INFO_V1(sketcher_hash_published);
Datum
sketcher_hash_published(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(hash_published(fcinfo, PG_GETARG_OID(0)));
}

/* The same for a model table that is named by a literal. */
PG_FUNCTION_INFO_V1(sketcher_hash_named);
Datum
sketcher_hash_named(PG_FUNCTION_ARGS)
{
	List *name = textToQualifiedNameList(PG_GETARG_TEXT_PP(0));

	PG_RETURN_POINTER(
		hash_published(fcinfo, RangeVarGetRelid(makeRangeVarFromNameList(name), NoLock, false)));
}

/*
 * columns.c
 *		The code column, and how to find its model table; the vector column, and how to read it.
 *
 * A trigger says which columns and which model table it is for in its condition,
 *
 *		WHEN (sketcher_columns('items_code_model'::regclass, NEW.v, NEW.code))
 *
 * because that is where PostgreSQL keeps columns by number and tables by oid: renames do not
 * matter, partitions get their own column numbers, and a dump writes the current names.
 *
 * A vector column has arrays of numbers, or a type with a cast to real[], which is how
 * pgvector's types come in.  Whoever has chosen the type may have defined the cast.  So it runs as
 * the table's owner, of a partition as that of its topmost parent, and only if that user may
 * execute it, which the executor checks.
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "utils/acl.h"
#include "utils/rls.h"
#include "utils/syscache.h"

#include "table.h"

/* Opens a table that the user has named. */
Relation
open_named(Oid table, LOCKMODE mode)
{
	Relation relation = try_table_open(table, mode);

	if (relation == NULL)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("table with OID %u does not exist", table));
	return relation;
}

Oid
table_owner(Oid table)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Oid		  owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("table with OID %u does not exist", table));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

static void
check_owner(Oid table)
{
	if (!has_privs_of_role(GetUserId(), table_owner(table)))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(table)),
					   get_rel_name(table));
}

/* Only the owner, and only if no policy hides rows from the owner. */
void
check_table_owner(Relation target)
{
	const Oid owner = target->rd_rel->relowner;

	check_owner(RelationGetRelid(target));
	if (check_enable_rls(RelationGetRelid(target), owner, true) == RLS_ENABLED)
		ereport(
			ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			errmsg("row-level security hides rows of table \"%s\" from its owner",
				   RelationGetRelationName(target)),
			errhint(
				"Use ALTER TABLE ... NO FORCE ROW LEVEL SECURITY, or an owner with BYPASSRLS."));
}

/* Opens a table for its owner.  Others may not even wait for the lock: all would wait behind them. */
Relation
open_own(Oid table, LOCKMODE mode)
{
	Relation target;

	check_owner(table);
	target = open_named(table, mode);
	check_table_owner(target);
	return target;
}

/* Is this the function of ours that C calls so? */
static bool
is_function(Oid oid, PGFunction function)
{
	FmgrInfo info;

	fmgr_info(oid, &info);
	return info.fn_addr == function;
}

/* Is this the type whose input function is ours? */
bool
is_type_of(Oid type, PGFunction input)
{
	HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Oid		  function;

	if (!HeapTupleIsValid(tuple))
		return false;
	function = ((Form_pg_type) GETSTRUCT(tuple))->typinput;
	ReleaseSysCache(tuple);
	return is_function(function, input);
}

/*
 * sketcher_columns(model, vector, code): is there something for the trigger to do?  Its
 * arguments are what the trigger reads the columns and the model table from.
 */
PG_FUNCTION_INFO_V1(sketcher_columns);
Datum
sketcher_columns(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!PG_ARGISNULL(1) || !PG_ARGISNULL(2));
}

static AttrNumber
column_of(const Node *argument)
{
	const Var *column = (const Var *) argument;

	return IsA(argument, Var) && column->varno == PRS2_NEW_VARNO ? column->varattno
																 : InvalidAttrNumber;
}

/* The model table and the columns that a trigger's condition names; false if it names none. */
bool
trigger_code_column(const Trigger *trigger, CodeColumn *column)
{
	FuncExpr *call = trigger->tgqual != NULL ? stringToNode(trigger->tgqual) : NULL;
	Const	 *model;

	if (call == NULL || !IsA(call, FuncExpr) || list_length(call->args) != 3 ||
		!is_function(call->funcid, sketcher_columns))
		return false;
	model = linitial(call->args);
	if (!IsA(model, Const) || model->constisnull || model->consttype != REGCLASSOID)
		return false;
	column->trigger = trigger->tgoid;
	column->trigger_name = pstrdup(trigger->tgname);
	column->model = DatumGetObjectId(model->constvalue);
	column->vector = column_of(lsecond(call->args));
	column->code = column_of(lthird(call->args));
	return column->vector > 0 && column->code > 0;
}

/* The attached column with that number or that model table; false if there is none. */
bool
find_code_column(Relation target, AttrNumber code, Oid model, CodeColumn *column)
{
	/* a copy: the relation cache may build it anew whenever catalogs are read */
	TriggerDesc *triggers = CopyTriggerDesc(target->trigdesc);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger *trigger = &triggers->triggers[i];

		if (!trigger->tgisclone && is_function(trigger->tgfoid, sketcher_hash_trigger) &&
			trigger_code_column(trigger, column) &&
			(column->code == code || column->model == model))
			return true;
	}
	return false;
}

/* The same of a column that must be attached, to a model table of the same owner. */
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

/* The number of a column that the user has named. */
AttrNumber
column_number(Relation target, const char *name)
{
	const AttrNumber number = get_attnum(RelationGetRelid(target), name);

	if (number <= 0)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("column \"%s\" of table \"%s\" does not exist", name,
					   RelationGetRelationName(target)));
	return number;
}

/* Refuses a column that cannot hold the codes of a model. */
void
check_code_type(Relation relation, AttrNumber number, int bits)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), number - 1);

	if (!is_type_of(attribute->atttypid, bithash_in) || attribute->attgenerated != '\0' ||
		(attribute->atttypmod != -1 && attribute->atttypmod != bits))
		ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
				errmsg("column \"%s\" of table \"%s\" cannot hold codes of %d bits",
					   NameStr(attribute->attname), RelationGetRelationName(relation), bits),
				errdetail("It must be an ordinary column of type bithash(%d) or bithash.", bits));
}

/* Refuses foreign partitions: codes on another server could not be kept up to date. */
void
check_not_foreign(const char *name, char kind)
{
	if (kind == RELKIND_FOREIGN_TABLE)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("partition \"%s\" is a foreign table", name),
				errdetail("A refresh cannot change codes on another server."),
				errhint("Detach the partition, and attach the column on its own server."));
}

/*
 * Refuses partitions of other owners.  A refresh updates them as the owner of the target, and so would
 * run with these rights whatever their owners have made fire there.
 */
static void
check_part_owner(Oid part, Oid target)
{
	if (table_owner(part) != table_owner(target))
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("table \"%s\" and its partition \"%s\" have different owners",
					   get_rel_name(target), get_rel_name(part)),
				errhint("Use ALTER TABLE %s OWNER TO %s.", sql_relation(part),
						quote_identifier(GetUserNameFromId(table_owner(target), false))));
}

/* The tables that have the rows, locked: the target itself, or its partitions by oid. */
List *
leaf_tables(Oid target)
{
	const bool parted = get_rel_relkind(target) == RELKIND_PARTITIONED_TABLE;
	List	  *all =
		 parted ? find_all_inheritors(target, AccessShareLock, NULL) : list_make1_oid(target);
	List	 *tables = NIL;
	ListCell *cell;

	foreach (cell, all)
	{
		const char kind = get_rel_relkind(lfirst_oid(cell));

		check_not_foreign(get_rel_name(lfirst_oid(cell)), kind);
		check_part_owner(lfirst_oid(cell), target);
		if (kind == RELKIND_RELATION)
			tables = lappend_oid(tables, lfirst_oid(cell));
	}
	list_sort(tables, list_oid_cmp);
	return tables;
}

/* The same columns of a partition, which may have other numbers for them. */
CodeColumn
column_of_part(Relation part, Oid target, const CodeColumn *column)
{
	CodeColumn result = *column;

	if (RelationGetRelid(part) != target)
	{
		result.vector = column_number(part, get_attname(target, column->vector, false));
		result.code = column_number(part, get_attname(target, column->code, false));
	}
	return result;
}

/* Is the table the target, or a partition of it? */
bool
is_part_of(Oid table, Oid target)
{
	return table == target || (get_rel_relispartition(table) &&
							   list_member_oid(get_partition_ancestors(table), target));
}

/* The table whose owner has chosen the types of the columns. */
static Oid
topmost_table(Relation relation)
{
	const Oid table = RelationGetRelid(relation);

	return relation->rd_rel->relispartition ? llast_oid(get_partition_ancestors(table)) : table;
}

/*
 * Finds out how to read a column, and refuses what can never be a vector.  What it needs is kept
 * in the current memory context.
 */
void
vector_column_init(VectorColumn *column, Relation relation, AttrNumber number)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), number - 1);
	SqlUser			  user;

	column->owner = table_owner(topmost_table(relation));
	column->table = RelationGetRelationName(relation);
	user = become_user(column->owner);
	if (!vector_cast_init(&column->cast, attribute->atttypid, attribute->atttypmod,
						  attribute->attcollation))
		ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
				errmsg("column \"%s\" has type %s, which cannot be used as a vector",
					   NameStr(attribute->attname), format_type_be(attribute->atttypid)),
				errhint("A vector is an array of numbers, or a value of a type that has a cast to "
						"real[]."));
	restore_user(user);
}

/* Says which row an error is about. */
static void
name_row(void *argument)
{
	const VectorColumn *column = argument;

	if (column->row != NULL)
		errcontext("row (%u,%u) of table \"%s\"", ItemPointerGetBlockNumber(column->row),
				   ItemPointerGetOffsetNumber(column->row), column->table);
}

/* A value that is not null as an array, in the current memory context; row is NULL for a new one. */
ArrayType *
vector_column_array(VectorColumn *column, Datum datum, ItemPointer row)
{
	ErrorContextCallback context = {.callback = name_row, .arg = column};
	ArrayType			*array;
	SqlUser				 user;

	if (column->cast.state == NULL)
		return DatumGetArrayTypeP(datum);
	column->row = row;
	context.previous = error_context_stack;
	error_context_stack = &context;
	user = become_user(column->owner);
	array = vector_cast_array(&column->cast, datum);
	restore_user(user);
	error_context_stack = context.previous;
	return array;
}

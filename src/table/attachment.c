/*
 * attachment.c
 *		The model table's row: read, changed, and the locks around that.
 *
 * All of this works below SQL: whoever inserts into the target has no privileges on the
 * model table, and needs none.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "../compat.h"
#include "table.h"

/* SQL's own advisory locks have 1 or 2 here */
#define ADVISORY_CLASS 3

extern PGDLLEXPORT Datum sketcher_in(PG_FUNCTION_ARGS);

static const struct
{
	const char *name;
	Oid			type; /* InvalidOid: sketcher */
} model_columns[MODEL_COLUMNS] = {
	{"published", InvalidOid}, {"learning", InvalidOid},	{"target", REGCLASSOID},
	{"pending", REGCLASSOID},  {"bits", INT4OID},			{"dims", INT4OID},
	{"tracker", TEXTOID},	   {"rotation", TEXTOID},		{"stable", BOOLOID},
	{"center", BOOLOID},	   {"forgetting", FLOAT8OID},	{"seed", INT8OID},
	{"generation", INT8OID},   {"walk_table", REGCLASSOID}, {"walk_file", OIDOID},
	{"walk_page", INT8OID},	   {"walk_since", INT8OID},
};

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

/* The schema of the extension, from that of one of its functions. */
Oid
extension_schema(Oid function)
{
	return get_func_namespace(function);
}

Oid
extension_type(Oid schema, const char *name)
{
	const Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
									 ObjectIdGetDatum(schema));

	if (!OidIsValid(type))
		elog(ERROR, "type %s not found", name);
	return type;
}

/* Is this the extension's type with that input function? */
static bool
has_input(Oid type, PGFunction input)
{
	HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	FmgrInfo  function;

	if (!HeapTupleIsValid(tuple))
		return false;
	fmgr_info(((Form_pg_type) GETSTRUCT(tuple))->typinput, &function);
	ReleaseSysCache(tuple);
	return function.fn_addr == input;
}

static bool
is_sketcher_type(Oid type)
{
	static Oid known = InvalidOid; /* asked for with each statement */

	if (type != known && !has_input(type, sketcher_in))
		return false;
	known = type;
	return true;
}

bool
is_bithash_type(Oid type)
{
	static Oid known = InvalidOid;

	if (type != known && !has_input(type, bithash_in))
		return false;
	known = type;
	return true;
}

/* Is this a model table, by its columns? */
void
model_check(Relation model)
{
	TupleDesc descriptor = RelationGetDescr(model);
	bool good = descriptor->natts >= MODEL_COLUMNS && model->rd_rel->relkind == RELKIND_RELATION;

	for (int i = 0; good && i < MODEL_COLUMNS; i++)
	{
		Form_pg_attribute column = TupleDescAttr(descriptor, i);
		const Oid		  type = model_columns[i].type;

		good = !column->attisdropped &&
			   strcmp(NameStr(column->attname), model_columns[i].name) == 0 &&
			   (OidIsValid(type) ? column->atttypid == type : is_sketcher_type(column->atttypid));
	}
	if (!good)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("\"%s\" is not a model table", RelationGetRelationName(model)),
				errhint("A model table is made by sketcher_attach."));
}

static void
unpack(Relation model, HeapTuple tuple, Attachment *attachment)
{
	TupleDesc descriptor = RelationGetDescr(model);
	Datum	 *values = palloc(sizeof(Datum) * descriptor->natts);
	bool	 *nulls = palloc(sizeof(bool) * descriptor->natts);
	int		  dims;

#define VALUE(column) values[MODEL_##column - 1]
#define IS_NULL(column) nulls[MODEL_##column - 1]
	heap_deform_tuple(tuple, descriptor, values, nulls);
	for (int i = MODEL_TARGET; i <= MODEL_GENERATION; i++)
	{
		if (nulls[i - 1] && i != MODEL_DIMS)
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("column \"%s\" of model table \"%s\" is null", model_columns[i - 1].name,
						   RelationGetRelationName(model)));
	}
	dims = IS_NULL(DIMS) ? 0 : DatumGetInt32(VALUE(DIMS));
	attachment->model = RelationGetRelid(model);
	attachment->target = DatumGetObjectId(VALUE(TARGET));
	attachment->pending = DatumGetObjectId(VALUE(PENDING));
	attachment->config =
		sketcher_config(dims > 0 ? dims : MODEL_MAX_DIMS, DatumGetInt32(VALUE(BITS)),
						DatumGetTextPP(VALUE(TRACKER)), DatumGetTextPP(VALUE(ROTATION)),
						DatumGetBool(VALUE(STABLE)), DatumGetBool(VALUE(CENTER)),
						DatumGetFloat8(VALUE(FORGETTING)), DatumGetInt64(VALUE(SEED)));
	attachment->config.dims = dims;
	attachment->generation = DatumGetInt64(VALUE(GENERATION));
	attachment->published = IS_NULL(PUBLISHED) ? (Datum) 0 : VALUE(PUBLISHED);
	attachment->learning = IS_NULL(LEARNING) ? (Datum) 0 : VALUE(LEARNING);
	attachment->walk_table = IS_NULL(WALK_TABLE) ? InvalidOid : DatumGetObjectId(VALUE(WALK_TABLE));
	attachment->walk_file = IS_NULL(WALK_FILE) ? InvalidOid : DatumGetObjectId(VALUE(WALK_FILE));
	attachment->walk_page = IS_NULL(WALK_PAGE) ? 0 : DatumGetInt64(VALUE(WALK_PAGE));
	attachment->walk_since = IS_NULL(WALK_SINCE) ? 0 : DatumGetInt64(VALUE(WALK_SINCE));
	attachment->tuple = tuple;
	pfree(values);
	pfree(nulls);
#undef VALUE
#undef IS_NULL
}

/*
 * The row, in the current memory context.  Its models are toast pointers, good for as long
 * as the snapshot is.
 */
void
attachment_read(Relation model, Snapshot snapshot, Attachment *attachment)
{
	TableScanDesc scan;
	HeapTuple	  tuple;

	model_check(model);
	scan = table_beginscan_strat(model, snapshot, 0, NULL, true, false);
	tuple = heap_getnext(scan, ForwardScanDirection);
	if (tuple != NULL)
		tuple = heap_copytuple(tuple);
	table_endscan(scan);
	if (tuple == NULL)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("model table \"%s\" is empty", RelationGetRelationName(model)),
				errhint("Detach the column and attach it again."));
	unpack(model, tuple, attachment);
}

/* Has somebody added what going past the executor would leave out? */
static bool
has_more(Relation relation)
{
	return relation->rd_rel->relhasrules || relation->trigdesc != NULL ||
		   RelationGetIndexList(relation) != NIL;
}

/* The row as it is now, for whoever holds the lock that keeps it so; with a snapshot active. */
void
attachment_read_latest(Oid model, Attachment *attachment)
{
	Relation relation = table_open(model, AccessShareLock);

	PushActiveSnapshot(GetLatestSnapshot());
	attachment_read(relation, GetActiveSnapshot(), attachment);
	PopActiveSnapshot();
	table_close(relation, AccessShareLock);
}

/* Changes some columns of the row; needs the fold lock. */
void
attachment_update(Oid model, const Attachment *attachment, int *columns, Datum *values, bool *nulls,
				  int count)
{
	Relation  relation = table_open(model, RowExclusiveLock);
	HeapTuple tuple;

	if (has_more(relation))
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("model table \"%s\" has indexes, triggers or rules",
					   RelationGetRelationName(relation)),
				errhint("Drop them."));
	tuple = heap_modify_tuple_by_cols(attachment->tuple, RelationGetDescr(relation), count, columns,
									  values, nulls);
	/* for the toast that is fetched and deleted */
	PushActiveSnapshot(GetTransactionSnapshot());
	CatalogTupleUpdate(relation, &attachment->tuple->t_self, tuple);
	PopActiveSnapshot();
	table_close(relation, NoLock);
	CommandCounterIncrement();
}

/* Is this a pending table, and nothing more than that, since we insert below SQL? */
void
pending_check(Relation pending)
{
	TupleDesc descriptor = RelationGetDescr(pending);

	if (pending->rd_rel->relkind != RELKIND_RELATION || descriptor->natts != PENDING_COLUMNS ||
		TupleDescAttr(descriptor, PENDING_ROWS - 1)->atttypid != INT4OID ||
		TupleDescAttr(descriptor, PENDING_VECTORS - 1)->atttypid != FLOAT4ARRAYOID ||
		!is_sketcher_type(TupleDescAttr(descriptor, PENDING_DELTA - 1)->atttypid))
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("\"%s\" is not a table of pending vectors",
					   RelationGetRelationName(pending)));
	if (has_more(pending))
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("table \"%s\" has indexes, triggers or rules",
					   RelationGetRelationName(pending)),
				errhint("Drop them."));
}

/*
 * The model's row says which table has its pending vectors, and whoever owns the model table
 * may have changed it: to nothing but a table of the same owner.
 */
void
pending_check_owner(Oid pending, Oid model)
{
	if (table_owner(pending) != table_owner(model))
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("model table \"%s\" and its table of pending vectors, \"%s\", have "
					   "different owners",
					   get_rel_name(model), get_rel_name(pending)),
				errhint("Use ALTER TABLE ... OWNER TO."));
}

/* Advisory locks, because those may outlive transactions; the last number is not one of SQL's. */
static LOCKTAG
lock_tag(Oid model, ModelLock lock)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, model, lock, ADVISORY_CLASS);
	return tag;
}

/* To the end of the transaction, or of the session; false if others have it and we do not wait. */
bool
model_lock(Oid model, ModelLock lock, bool session, bool wait)
{
	const LOCKTAG tag = lock_tag(model, lock);

	return LockAcquire(&tag, ExclusiveLock, session, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/* A session's lock only. */
void
model_unlock(Oid model, ModelLock lock)
{
	const LOCKTAG tag = lock_tag(model, lock);

	LockRelease(&tag, ExclusiveLock, true);
}

/* Does somebody else hold the lock? */
bool
model_is_locked(Oid model, ModelLock lock)
{
	const LOCKTAG tag = lock_tag(model, lock);
	int			  count;

	pfree(GetLockConflicts(&tag, ExclusiveLock, &count));
	return count > 0;
}

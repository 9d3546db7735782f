/*
 * link.c
 *		From triggers and columns to model tables: dependencies in pg_depend, which follow
 *		every rename, and the name in a trigger's argument where a dump has lost them.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "../compat.h"
#include "table.h"

/* what this connection knows already */
typedef struct KnownLink
{
	Oid trigger;
	Oid model;
} KnownLink;

static HTAB *known_links = NULL;

/* a link was recorded by the running transaction, which may still roll back */
static bool links_recorded = false;

/* What an object depends on: copies of pg_depend's rows, in the current memory context. */
static List *
dependencies_of(Oid class, Oid object)
{
	Relation	catalog = table_open(DependRelationId, AccessShareLock);
	List	   *dependencies = NIL;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(class));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(object));
	scan = systable_beginscan(catalog, DependDependerIndexId, true, NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend copy = palloc(sizeof(FormData_pg_depend));

		*copy = *(Form_pg_depend) GETSTRUCT(tuple);
		dependencies = lappend(dependencies, copy);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return dependencies;
}

/* Does a dependency between the two exist? */
static bool
depends(Oid class, Oid object, Oid on_relation, int on_column)
{
	ListCell *cell;

	foreach (cell, dependencies_of(class, object))
	{
		Form_pg_depend dependency = lfirst(cell);

		if (dependency->refclassid == RelationRelationId && dependency->refobjid == on_relation &&
			dependency->refobjsubid == on_column)
			return true;
	}
	return false;
}

/* The model table that a trigger depends on: the only table but its own. */
static Oid
dependency_of_trigger(Oid trigger, Oid trigger_table)
{
	ListCell *cell;

	foreach (cell, dependencies_of(TriggerRelationId, trigger))
	{
		Form_pg_depend dependency = lfirst(cell);

		if (dependency->refclassid == RelationRelationId && dependency->refobjid != trigger_table &&
			dependency->deptype == DEPENDENCY_NORMAL)
			return dependency->refobjid;
	}
	return InvalidOid;
}

static void
record(Oid class, Oid object, Oid on_relation, int on_column, DependencyType type)
{
	ObjectAddress depender;
	ObjectAddress referenced;

	if (depends(class, object, on_relation, on_column))
		return;
	ObjectAddressSet(depender, class, object);
	ObjectAddressSubSet(referenced, RelationRelationId, on_relation, on_column);
	recordDependencyOn(&depender, &referenced, type);
	links_recorded = true;
}

/* A trigger's own table and columns. */
typedef struct TriggerFacts
{
	Oid		   parent; /* the trigger it is a copy of, on a partitioned table */
	Oid		   table;
	AttrNumber columns[2];
	int		   column_count;
} TriggerFacts;

static TriggerFacts
trigger_facts(Oid trigger)
{
	Relation		catalog = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData		key;
	SysScanDesc		scan;
	HeapTuple		tuple;
	Form_pg_trigger form;
	TriggerFacts	facts;

	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(trigger));
	scan = systable_beginscan(catalog, TriggerOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "could not find trigger %u", trigger);
	form = (Form_pg_trigger) GETSTRUCT(tuple);
	facts.parent = form->tgparentid;
	facts.table = form->tgrelid;
	facts.column_count = form->tgattr.dim1;
	for (int i = 0; i < Min(facts.column_count, 2); i++)
		facts.columns[i] = form->tgattr.values[i];
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return facts;
}

/*
 * Records what a dump loses: the trigger needs the model table, and that goes with the code
 * column, as the pending table goes with it.
 */
void
link_record(Oid trigger, Oid model)
{
	const TriggerFacts facts = trigger_facts(trigger);
	Attachment		   attachment;

	record(TriggerRelationId, trigger, model, 0, DEPENDENCY_NORMAL);
	attachment_read_latest(model, &attachment);
	if (attachment.target == facts.table && facts.column_count == 2)
	{
		pending_check_owner(attachment.pending, model);
		record(RelationRelationId, model, facts.table, facts.columns[1], DEPENDENCY_AUTO);
		record(RelationRelationId, attachment.pending, model, 0, DEPENDENCY_AUTO);
	}
}

/* Opens a table that the user owns, or returns NULL. */
static Relation
open_own(Oid table)
{
	if (get_rel_name(table) == NULL || !owns_relation(table, GetUserId()))
		return NULL;
	return try_table_open(table, AccessShareLock);
}

/*
 * sketcher_tie(model, target, pending): a constraint of model tables, which always holds.  It
 * is checked when a dump's rows are restored, and so the place to record that the model table
 * goes with its target, before anybody has used either.  Those who own all three may do so.
 */
PG_FUNCTION_INFO_V1(sketcher_tie);
Datum
sketcher_tie(PG_FUNCTION_ARGS)
{
	Relation model = open_own(PG_GETARG_OID(0));
	Relation target = open_own(PG_GETARG_OID(1));
	Relation pending = open_own(PG_GETARG_OID(2));

	if (model != NULL && target != NULL && pending != NULL && target != model && target != pending)
	{
		model_check(model);
		pending_check(pending);
		record(RelationRelationId, RelationGetRelid(model), RelationGetRelid(target), 0,
			   DEPENDENCY_AUTO);
		record(RelationRelationId, RelationGetRelid(pending), RelationGetRelid(model), 0,
			   DEPENDENCY_AUTO);
	}
	/* the locks stay: what they are tied to is not dropped meanwhile */
	if (model != NULL)
		table_close(model, NoLock);
	if (target != NULL)
		table_close(target, NoLock);
	if (pending != NULL)
		table_close(pending, NoLock);
	PG_RETURN_BOOL(true);
}

/* The model table that a trigger's argument names; in the schema of its table, if in none. */
static Oid
model_by_name(const Trigger *trigger, Oid table)
{
	RangeVar *name;
	Oid		  model;

	if (trigger->tgnargs != 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("trigger \"%s\" has %d arguments", trigger->tgname, trigger->tgnargs),
				errdetail("Its function takes one: the name of a model table."));
	name = makeRangeVarFromNameList(textToQualifiedNameList(cstring_to_text(trigger->tgargs[0])));
	if (name->schemaname == NULL)
		name->schemaname = get_namespace_name(get_rel_namespace(table));
	model = RangeVarGetRelid(name, AccessShareLock, true);
	if (!OidIsValid(model))
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("model table \"%s\" of trigger \"%s\" does not exist", trigger->tgargs[0],
					   trigger->tgname),
				errhint("Restore the model table, or drop the trigger."));
	return model;
}

Oid
table_owner(Oid relation)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid		  owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

/*
 * A name proves nothing, nor does a dependency: a constant in a trigger's WHEN makes one.  The
 * owner of the model table agrees if its row has this table as target; otherwise the table's
 * owner must have the rights to do it by hand.
 */
static void
check_consent(const Trigger *trigger, Oid table, Oid model, bool teaches)
{
	const Oid  owner = table_owner(table);
	Attachment attachment;

	attachment_read_latest(model, &attachment);
	if (attachment.target == table)
		return;
	if (teaches ? !has_privs_of_role(owner, table_owner(model))
				: pg_class_aclcheck(model, owner, ACL_SELECT) != ACLCHECK_OK)
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("trigger \"%s\" may not %s model table \"%s\"", trigger->tgname,
					   teaches ? "teach" : "read", get_rel_name(model)),
				errdetail("The owner of table \"%s\" must %s.", get_rel_name(table),
						  teaches ? "own the model table"
								  : "have the privilege to read the model table"));
}

static Oid
find_model(const Trigger *trigger, bool teaches)
{
	Oid			 topmost = trigger->tgoid;
	TriggerFacts facts = trigger_facts(topmost);
	Oid			 model;
	bool		 by_name;

	while (OidIsValid(facts.parent))
	{
		topmost = facts.parent;
		facts = trigger_facts(topmost);
	}
	model = dependency_of_trigger(topmost, facts.table);
	by_name = !OidIsValid(model);
	if (by_name)
		model = model_by_name(trigger, facts.table);
	check_consent(trigger, facts.table, model, teaches);
	if (by_name)
		link_record(topmost, model);
	return model;
}

/* The model table of the trigger that fires. */
Oid
link_of_trigger(TriggerData *trigger, bool teaches)
{
	const Oid  oid = trigger->tg_trigger->tgoid;
	KnownLink *known;
	Oid		   model;

	if (known_links == NULL)
	{
		HASHCTL control = {.keysize = sizeof(Oid), .entrysize = sizeof(KnownLink)};

		known_links = hash_create("unifdiag links", 16, &control, HASH_ELEM | HASH_BLOBS);
	}
	known = hash_search(known_links, &oid, HASH_FIND, NULL);
	if (known != NULL)
		return known->model;
	model = find_model(trigger->tg_trigger, teaches);
	known = hash_search(known_links, &oid, HASH_ENTER, NULL);
	known->model = model;
	return model;
}

/* At the end of a transaction, or of a part that is rolled back: then what it recorded is gone. */
void
link_reset(bool committed)
{
	if (!committed && links_recorded && known_links != NULL)
	{
		hash_destroy(known_links);
		known_links = NULL;
	}
	links_recorded = false;
}

/* One of our trigger functions. */
static Oid
trigger_function(Oid schema, const char *name)
{
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(NULL, 0)), ObjectIdGetDatum(schema));
}

/* The trigger that makes the codes of a column: it has the column as the second in its list. */
static Trigger *
hash_trigger_of(Relation target, AttrNumber code, Oid schema)
{
	const Oid	 function = trigger_function(schema, "sketcher_hash_trigger");
	TriggerDesc *triggers = target->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgfoid == function && trigger->tgnattr == 2 && trigger->tgattr[1] == code &&
			!trigger->tgisclone)
			return trigger;
	}
	return NULL;
}

bool
link_exists(Relation target, AttrNumber code, Oid schema)
{
	return hash_trigger_of(target, code, schema) != NULL;
}

/* The model table of a code column, and, if asked for, its vector column. */
Oid
link_of_column(Relation target, const char *code_column, Oid schema, AttrNumber *vector)
{
	const AttrNumber code = get_attnum(RelationGetRelid(target), code_column);
	const Trigger	*trigger;
	Attachment		 attachment;

	if (code == InvalidAttrNumber)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("column \"%s\" of table \"%s\" does not exist", code_column,
					   RelationGetRelationName(target)));
	trigger = hash_trigger_of(target, code, schema);
	if (trigger == NULL)
		ereport(
			ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("column \"%s\" of table \"%s\" is not attached", code_column,
				   RelationGetRelationName(target)),
			errhint("Attach it with sketcher_attach; a partition is attached through its parent."));
	if (vector != NULL)
		*vector = trigger->tgattr[0];
	/* what reads a model has no say in it: publishing it would leave its own table's codes wrong */
	attachment_read_latest(find_model(trigger, false), &attachment);
	if (attachment.target != RelationGetRelid(target))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("column \"%s\" of table \"%s\" has codes by the model of another table",
					   code_column, RelationGetRelationName(target)),
				errdetail("Trigger \"%s\" uses model table \"%s\".", trigger->tgname,
						  get_rel_name(attachment.model)),
				errhint("Refresh or detach that other table's column."));
	return attachment.model;
}

/* All triggers of a table that use a model table. */
List *
link_triggers(Relation target, Oid schema, Oid model)
{
	const Oid	 hash = trigger_function(schema, "sketcher_hash_trigger");
	const Oid	 learn = trigger_function(schema, "sketcher_learn_trigger");
	TriggerDesc *triggers = target->trigdesc;
	List		*found = NIL;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger *trigger = &triggers->triggers[i];

		if ((trigger->tgfoid == hash || trigger->tgfoid == learn) && !trigger->tgisclone &&
			find_model(trigger, trigger->tgfoid == learn) == model)
			found = lappend_oid(found, trigger->tgoid);
	}
	return found;
}

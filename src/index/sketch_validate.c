/*
 * sketch_validate.c
 *		Whether an operator class fits a sketch index.
 *
 * It has one operator, a distance, whose strategy number tells which; and, unless its type is real[], a
 * support function that makes real[] of the type.  One without any of these is for a type of which there
 * are no indexes.
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "../compat.h"
#include "sketch.h"

/* Says what is wrong with an operator class, and that something is. */
static bool
complain(const char *name, const char *what)
{
	ereport(INFO, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
			errmsg("operator class \"%s\" of access method sketch %s", name, what));
	return false;
}

static bool
validate_operator(const char *name, Form_pg_amop member, Oid key_type)
{
	const char *operation = format_operator(member->amopopr);

	if (member->amopstrategy < 1 || member->amopstrategy > SKETCH_STRATEGIES)
		return complain(name, psprintf("contains operator %s with an invalid strategy number",
									   operation));
	if (member->amoppurpose != AMOP_ORDER)
		return complain(name,
						psprintf("contains operator %s as a search operator, but it is a distance",
								 operation));
	if (member->amoplefttype != key_type || member->amoprighttype != key_type)
		return complain(name,
						psprintf("contains operator %s for another type than its own", operation));
	if (!opfamily_can_sort_type(member->amopsortfamily, FLOAT8OID))
		return complain(name,
						psprintf("contains operator %s with an incorrect ORDER BY operator family",
								 operation));
	if (!check_amop_signature(member->amopopr, FLOAT8OID, key_type, key_type))
		return complain(name, psprintf("contains operator %s with a wrong signature", operation));
	return true;
}

static bool
validate_function(const char *name, Form_pg_amproc member, Oid key_type)
{
	const char *function = format_procedure(member->amproc);

	if (member->amprocnum != SKETCH_VECTOR_PROC)
		return complain(name,
						psprintf("contains function %s with an invalid support number", function));
	if (!check_amproc_signature(member->amproc, FLOAT4ARRAYOID, true, 3, 3, key_type, INT4OID,
								BOOLOID))
		return complain(name, psprintf("contains function %s with a wrong signature", function));
	return true;
}

/* All operators of a family; adds to how many there are. */
static bool
validate_operators(const char *name, Oid family, Oid key_type, int *count)
{
	CatCList *members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	bool	  valid = true;

	for (int i = 0; i < members->n_members; i++)
		valid &= validate_operator(name, (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple),
								   key_type);
	*count = members->n_members;
	ReleaseSysCacheList(members);
	return valid;
}

static bool
validate_functions(const char *name, Oid family, Oid key_type, int *count)
{
	CatCList *members = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));
	bool	  valid = true;

	for (int i = 0; i < members->n_members; i++)
		valid &= validate_function(name, (Form_pg_amproc) GETSTRUCT(&members->members[i]->tuple),
								   key_type);
	*count = members->n_members;
	ReleaseSysCacheList(members);
	return valid;
}

bool
sketch_validate(Oid opclass)
{
	HeapTuple		tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass definition;
	const char	   *name;
	Oid				type;
	int				operators;
	int				functions;
	bool			valid;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	definition = (Form_pg_opclass) GETSTRUCT(tuple);
	name = NameStr(definition->opcname);
	type = definition->opcintype;
	valid = validate_operators(name, definition->opcfamily, type, &operators);
	valid &= validate_functions(name, definition->opcfamily, type, &functions);
	/* without any member it is there to refuse its type: sketch_metric */
	if (operators != 1 && operators + functions > 0)
		valid = complain(name, "does not have exactly one operator, a distance");
	if (functions == 0 && operators > 0 && type != FLOAT4ARRAYOID)
		valid = complain(name, "lacks a support function that makes real[] of its type");
	if (OidIsValid(definition->opckeytype))
		valid = complain(name, "has a storage type");
	ReleaseSysCache(tuple);
	return valid;
}

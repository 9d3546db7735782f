/*
 * hamming_validate.c
 *		Whether an operator class fits a hamming index.
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "../compat.h"
#include "hamming.h"

/* Says what is wrong with an operation, and that something is. */
static bool
complain(const char *name, Oid operation, const char *what)
{
	ereport(INFO, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
			errmsg("operator class \"%s\" of access method hamming contains operator %s %s", name,
				   format_operator(operation), what));
	return false;
}

/* Distances are between values of one type; a bit string may be compared with a bithash as well. */
static bool
are_comparable(Oid left, Oid right)
{
	return left == right || (code_type_of(left) == CODE_BIT && code_type_of(right) == CODE_BITHASH);
}

/* The distance orders rows, by integers or as pgvector's does; the ball selects them. */
static bool
validate_operator(const char *name, Form_pg_amop member, Oid key_type)
{
	const Oid operation = member->amopopr;
	Oid		  result = BOOLOID;

	if (member->amoplefttype != key_type)
		return complain(name, operation, "for another type than its own");
	switch (member->amopstrategy)
	{
		case HAMMING_DISTANCE_STRATEGY:
			if (member->amoppurpose != AMOP_ORDER)
				return complain(name, operation, "as a search operator, but it is a distance");
			if (!are_comparable(key_type, member->amoprighttype))
				return complain(name, operation, "as a distance from another type");
			result = get_op_rettype(operation) == FLOAT8OID ? FLOAT8OID : INT4OID;
			if (!opfamily_can_sort_type(member->amopsortfamily, result) ||
				get_op_rettype(operation) != result)
				return complain(name, operation, "with an incorrect ORDER BY operator family");
			break;
		case HAMMING_BALL_STRATEGY:
			if (member->amoppurpose != AMOP_SEARCH)
				return complain(name, operation, "as an ordering operator, but it is a condition");
			break;
		default:
			return complain(name, operation, "with an invalid strategy number");
	}
	if (!check_amop_signature(operation, result, member->amoplefttype, member->amoprighttype))
		return complain(name, operation, "with a wrong signature");
	return true;
}

bool
hamming_validate(Oid opclass)
{
	HeapTuple		tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass definition;
	CatCList	   *members;
	const char	   *name;
	bool			valid = true;
	int				seen = 0;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	definition = (Form_pg_opclass) GETSTRUCT(tuple);
	name = NameStr(definition->opcname);
	members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(definition->opcfamily));
	for (int i = 0; i < members->n_members; i++)
	{
		Form_pg_amop member = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		if (validate_operator(name, member, definition->opcintype))
			seen |= 1 << member->amopstrategy;
		else
			valid = false;
	}
	for (int strategy = 1; strategy <= HAMMING_STRATEGIES; strategy++)
	{
		if ((seen & 1 << strategy) == 0)
		{
			ereport(INFO, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					errmsg("operator class \"%s\" of access method hamming lacks an operator with "
						   "strategy number %d",
						   name, strategy));
			valid = false;
		}
	}
	if (OidIsValid(definition->opckeytype))
	{
		ereport(INFO, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				errmsg("operator class \"%s\" of access method hamming has a storage type", name));
		valid = false;
	}
	ReleaseSysCacheList(members);
	ReleaseSysCache(tuple);
	return valid;
}

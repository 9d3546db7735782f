/*
 * vector_column.c
 *		The vector column: an array of numbers, or a type with a cast to real[], which is how
 *		pgvector's types come in.
 *
 * A cast is the owner's: he may have defined it, so it runs as him, and only if he may
 * execute it, which the executor checks when the expression is made ready.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "../compat.h"
#include "table.h"

static bool
needs_cast(Oid type)
{
	const Oid base = getBaseType(type);

	return base != FLOAT4ARRAYOID && base != FLOAT8ARRAYOID;
}

/* Refuses what can never be a vector. */
void
check_vector_type(Oid type, const char *name)
{
	Oid					   function;
	const CoercionPathType path =
		needs_cast(type)
			? find_coercion_pathway(FLOAT4ARRAYOID, getBaseType(type), COERCION_EXPLICIT, &function)
			: COERCION_PATH_RELABELTYPE;

	if (path == COERCION_PATH_NONE || path == COERCION_PATH_COERCEVIAIO)
		ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
				errmsg("column \"%s\" has type %s, which is not a vector", name,
					   format_type_be(type)),
				errhint("Vectors are arrays of numbers, or of a type with a cast to real[]."));
}

/* The cast of a column to real[] as an expression whose input is set row by row. */
static ExprState *
make_cast(Oid type, int32 typmod, Oid collation)
{
	CaseTestExpr *input = makeNode(CaseTestExpr);
	Node		 *cast;

	input->typeId = type;
	input->typeMod = typmod;
	input->collation = collation;
	cast = coerce_to_target_type(NULL, (Node *) input, type, FLOAT4ARRAYOID, -1, COERCION_EXPLICIT,
								 COERCE_EXPLICIT_CAST, -1);
	return ExecInitExpr(expression_planner((Expr *) cast), NULL);
}

/* Finds out how to read a column; what it needs is kept in the current memory context. */
void
vector_column_init(VectorColumn *column, Relation relation, AttrNumber number)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), number - 1);
	SqlUser			  user;

	memset(column, 0, sizeof(*column));
	column->owner = relation->rd_rel->relowner;
	check_vector_type(attribute->atttypid, NameStr(attribute->attname));
	if (!needs_cast(attribute->atttypid))
		return;
	user = become_user(column->owner);
	column->context = CreateStandaloneExprContext();
	column->cast = make_cast(attribute->atttypid, attribute->atttypmod, attribute->attcollation);
	restore_user(user);
}

/* A value that is not null as an array, in the current memory context. */
ArrayType *
vector_column_array(VectorColumn *column, Datum datum)
{
	if (column->cast != NULL)
	{
		SqlUser user = become_user(column->owner);
		bool	is_null;

		column->context->caseValue_datum = datum;
		column->context->caseValue_isNull = false;
		datum = ExecEvalExpr(column->cast, column->context, &is_null);
		restore_user(user);
		if (is_null)
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("the cast of a vector to real[] returned null"));
	}
	return DatumGetArrayTypeP(datum);
}

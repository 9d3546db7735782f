/*
 * vector_argument.c
 *		Vectors as arguments of functions, without casts.
 *
 * A function that takes "any" gets real[] and double precision[] as they are; of other types the
 * planner makes real[], by their cast.  Another one, that takes text, is what literals and
 * parameters without a type resolve to: {1,2} as arrays are written, or [1,2].
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "vectors.h"

static bool
is_array_of_floats(Oid type)
{
	const Oid base = getBaseType(type);

	return base == FLOAT4ARRAYOID || base == FLOAT8ARRAYOID;
}

static void
report_no_vector(Oid type)
{
	ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("type %s is not a vector", format_type_be(type)),
			errhint("Vectors are arrays of numbers, or of a type with a cast to real[]."));
}

/* The last argument as real[]; NULL if it needs no cast. */
static Node *
cast_vector(PlannerInfo *root, Node *argument)
{
	const Oid type = exprType(argument);
	Node	 *cast;

	if (is_array_of_floats(type))
		return NULL;
	cast = coerce_to_target_type(NULL, (Node *) copyObject(argument), type, FLOAT4ARRAYOID, -1,
								 COERCION_EXPLICIT, COERCE_EXPLICIT_CAST, -1);
	if (cast == NULL || IsA(cast, CoerceViaIO))
		report_no_vector(type);
	return eval_const_expressions(root, cast);
}

/* Planner support of functions whose second argument is a vector of "any" type. */
PG_FUNCTION_INFO_V1(vector_argument_support);
Datum
vector_argument_support(PG_FUNCTION_ARGS)
{
	Node *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSimplify))
	{
		SupportRequestSimplify *simplify = (SupportRequestSimplify *) request;
		Node				   *cast = cast_vector(simplify->root, lsecond(simplify->fcall->args));

		if (cast != NULL)
		{
			FuncExpr *call = makeNode(FuncExpr);

			memcpy(call, simplify->fcall, sizeof(*call));
			call->args = list_make2(copyObject(linitial(simplify->fcall->args)), cast);
			PG_RETURN_POINTER(call);
		}
	}
	PG_RETURN_POINTER(NULL);
}

/* [1,2] becomes {1,2}; what is neither, array_in refuses. */
static ArrayType *
parse_vector(const text *written)
{
	char *string = text_to_cstring(written);
	char *first = string + strspn(string, " \t\n\r\f\v");
	char *last = string + strlen(string);

	while (last > first && strchr(" \t\n\r\f\v", last[-1]) != NULL)
		last--;
	if (last - first >= 2 && *first == '[' && last[-1] == ']')
	{
		*first = '{';
		last[-1] = '}';
	}
	return DatumGetArrayTypeP(OidInputFunctionCall(F_ARRAY_IN, string, FLOAT4OID, -1));
}

/* An argument of a function, in the current memory context. */
Vector
vector_argument(FunctionCallInfo fcinfo, int number)
{
	const Oid type = get_fn_expr_argtype(fcinfo->flinfo, number);

	if (type == TEXTOID)
		return vector_read(parse_vector(PG_GETARG_TEXT_PP(number)));
	/* whoever calls without a planner */
	if (!OidIsValid(type) || !is_array_of_floats(type))
		report_no_vector(type);
	return vector_read(PG_GETARG_ARRAYTYPE_P(number));
}

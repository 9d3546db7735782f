/*
 * vector_argument.c
 *		Vectors as arguments of functions, without casts.
 *
 * A function that takes "any" gets real[] and double precision[] as they are; other types are cast
 * to real[].  The planner does that, but first it calls a function whose arguments are all
 * constants; then the cast is made here, as for aggregates, which have no planner support.
 * Another function, that takes text, is what literals and parameters without a type resolve
 * to: {1,2} as arrays are written, or [1,2].
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
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

/* An expression cast to real[]; NULL if there is no such cast. */
static Node *
cast_to_reals(Node *value)
{
	Node *cast = coerce_to_target_type(NULL, value, exprType(value), FLOAT4ARRAYOID, -1,
									   COERCION_EXPLICIT, COERCE_EXPLICIT_CAST, -1);

	return cast == NULL || IsA(cast, CoerceViaIO) ? NULL : cast;
}

static void
report_no_vector(Oid type)
{
	ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("type %s cannot be used as a vector", format_type_be(type)),
			errhint("A vector is an array of numbers, or a value of a type that has a cast to "
					"real[]."));
}

/* The last argument as real[]; NULL if it needs no cast. */
static Node *
cast_argument(PlannerInfo *root, Node *argument)
{
	Node *cast;

	if (is_array_of_floats(exprType(argument)))
		return NULL;
	cast = cast_to_reals((Node *) copyObject(argument));
	if (cast == NULL)
		report_no_vector(exprType(argument));
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
		Node *cast = cast_argument(simplify->root, lsecond(simplify->fcall->args));

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

/*
 * How to read values of a type as vectors; false if they never are.  Memory is the current
 * context's.  The cast runs with the rights of whoever is the user then and when it is used.
 */
bool
vector_cast_init(VectorCast *cast, Oid type, int32 typmod, Oid collation)
{
	CaseTestExpr *input;
	Node		 *expression;

	memset(cast, 0, sizeof(*cast));
	cast->type = type;
	if (is_array_of_floats(type))
		return true;
	/* an expression whose input is set value by value */
	input = makeNode(CaseTestExpr);
	input->typeId = type;
	input->typeMod = typmod;
	input->collation = collation;
	expression = cast_to_reals((Node *) input);
	if (expression == NULL)
		return false;
	cast->context = CreateStandaloneExprContext();
	cast->state = ExecInitExpr(expression_planner((Expr *) expression), NULL);
	return true;
}

/* A value that is not null as an array, in the current memory context. */
ArrayType *
vector_cast_array(VectorCast *cast, Datum value)
{
	if (cast->state != NULL)
	{
		bool is_null;

		cast->context->caseValue_datum = value;
		cast->context->caseValue_isNull = false;
		value = ExecEvalExpr(cast->state, cast->context, &is_null);
		if (is_null)
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("cast of a vector to real[] returned null"));
	}
	return DatumGetArrayTypeP(value);
}

/* The type of an argument: as declared, or what "any" is in this call. */
static Oid
argument_type(FmgrInfo *function, int number)
{
	Oid *types;
	int	 count;

	get_func_signature(function->fn_oid, &types, &count);
	return types[number] == ANYOID ? get_fn_expr_argtype(function, number) : types[number];
}

static VectorCast *
make_cast(FmgrInfo *function, int number)
{
	const Oid	  type = argument_type(function, number);
	MemoryContext caller = MemoryContextSwitchTo(function->fn_mcxt);
	VectorCast	 *cast = palloc0(sizeof(VectorCast));

	if (type == TEXTOID)
		cast->type = type;
	else if (!OidIsValid(type) || !vector_cast_init(cast, type, -1, get_typcollation(type)))
		report_no_vector(type);
	MemoryContextSwitchTo(caller);
	return cast;
}

/*
 * An argument of a function, in the current memory context.  *cast is NULL at first, and is kept for
 * the same argument of further calls.
 */
Vector
vector_argument(FunctionCallInfo fcinfo, int number, VectorCast **cast)
{
	if (*cast == NULL)
		*cast = make_cast(fcinfo->flinfo, number);
	if ((*cast)->type == TEXTOID)
		return vector_read(parse_vector(PG_GETARG_TEXT_PP(number)));
	return vector_read(vector_cast_array(*cast, PG_GETARG_DATUM(number)));
}

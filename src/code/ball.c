/*
 * ball.c
 *		code <@ hamming_ball: hamming_within as an operator, which an index can use.
 *
 * An index condition is an operator with two arguments.  The planner asks the support
 * function of hamming_within(code, center, radius) for one, and gets
 * code <@ hamming_ball(center, radius).
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "../compat.h"
#include "ball.h"
#include "distance.h"

/* the operator's number in the operator class; src/index/hamming.h has all of them */
#define BALL_STRATEGY 2

HammingBall *
make_ball(BitHashView center, int32 radius)
{
	const Size	 size = offsetof(HammingBall, bits) + BITHASH_BYTES(center.nbits);
	HammingBall *ball = palloc0(size);

	SET_VARSIZE(ball, size);
	ball->radius = radius;
	ball->nbits = center.nbits;
	memcpy(ball->bits, center.bits, BITHASH_BYTES(center.nbits));
	return ball;
}

PG_FUNCTION_INFO_V1(hamming_ball);
Datum
hamming_ball(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(make_ball(PG_GETARG_BITHASH_VIEW(0), PG_GETARG_INT32(1)));
}

/* "(center,radius)", as a row of the two would be */
PG_FUNCTION_INFO_V1(hamming_ball_in);
Datum
hamming_ball_in(PG_FUNCTION_ARGS)
{
	const char *string = PG_GETARG_CSTRING(0);
	const char *comma = strchr(string, ',');
	const char *end = string + strlen(string);
	char	   *center;
	char	   *radius;
	Datum		code;

	if (string[0] != '(' || comma == NULL || end[-1] != ')')
		ereturn(fcinfo->context, (Datum) 0, errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				errmsg("invalid input syntax for type %s: \"%s\"", "hamming_ball", string),
				errdetail("A ball is written as \"(center,radius)\"."));
	center = pnstrdup(string + 1, comma - string - 1);
	radius = pnstrdup(comma + 1, end - comma - 2);
	code = DirectFunctionCall3(bithash_in, CStringGetDatum(center), ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
	PG_RETURN_POINTER(make_ball(DatumGetBitHashView(code), pg_strtoint32(radius)));
}

PG_FUNCTION_INFO_V1(hamming_ball_out);
Datum
hamming_ball_out(PG_FUNCTION_ARGS)
{
	const HammingBall *ball = DatumGetHammingBall(PG_GETARG_DATUM(0));
	BitHash			  *center = bithash_make(ball->nbits);
	char			  *code;

	memcpy(center->bits, ball->bits, BITHASH_BYTES(ball->nbits));
	code = DatumGetCString(DirectFunctionCall1(bithash_out, PointerGetDatum(center)));
	PG_RETURN_CSTRING(psprintf("(%s,%d)", code, (int) ball->radius));
}

PG_FUNCTION_INFO_V1(hamming_in_ball);
Datum
hamming_in_ball(PG_FUNCTION_ARGS)
{
	const HammingBall *ball = DatumGetHammingBall(PG_GETARG_DATUM(1));
	const int32 distance = hamming_distance_views(PG_GETARG_BITHASH_VIEW(0), ball_center(ball));

	PG_RETURN_BOOL(distance <= ball->radius);
}

/*
 * code <@ hamming_ball(center, radius), if the two can be known when the index is searched.
 * The function that makes the ball lives where hamming_within does, whatever the search path, and
 * takes the types that this one has there.  It is not looked up by name as users do: whoever reads
 * a view need not be allowed to use that schema.
 */
List *
hamming_within_condition(SupportRequestIndexCondition *request)
{
	List *arguments;
	Node *code;
	Node *center;
	Node *radius;
	Oid	 *types;
	Oid	  ball_types[2];
	int	  ntypes;
	Oid	  ball_type;
	Oid	  make;
	Oid	  operation;

	if (!IsA(request->node, FuncExpr) || request->indexarg > 1)
		return NIL;
	arguments = ((FuncExpr *) request->node)->args;
	code = list_nth(arguments, request->indexarg);
	center = list_nth(arguments, 1 - request->indexarg);
	radius = lthird(arguments);
	if (!is_pseudo_constant_for_index(request->root, center, request->index) ||
		!is_pseudo_constant_for_index(request->root, radius, request->index))
		return NIL;

	get_func_signature(request->funcid, &types, &ntypes);
	ball_types[0] = types[1 - request->indexarg];
	ball_types[1] = types[2];
	make = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("hamming_ball"),
						   PointerGetDatum(buildoidvector(ball_types, lengthof(ball_types))),
						   ObjectIdGetDatum(get_func_namespace(request->funcid)));
	if (!OidIsValid(make))
		return NIL;
	ball_type = get_func_rettype(make);
	operation = get_opfamily_member(request->opfamily, request->index->opcintype[request->indexcol],
									ball_type, BALL_STRATEGY);
	if (!OidIsValid(operation))
		return NIL;
	request->lossy = false;
	return list_make1(make_opclause(
		operation, BOOLOID, false, (Expr *) copyObject(code),
		(Expr *) makeFuncExpr(make, ball_type, list_make2(copyObject(center), copyObject(radius)),
							  InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL),
		InvalidOid, InvalidOid));
}

/*
 * vector_distance.c
 *		Distances between vectors in SQL.
 *
 * They are those of pgvector's operators of the same names.  A zero vector has no direction: its
 * cosine distance is NaN, which sorts after all numbers.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "../compat.h"
#include "vector_distance.h"

/*
 * Sums in single precision that are larger than this, or smaller than its inverse, may have
 * lost terms that are too large or too small for it.
 */
#define TRUSTED 1e30F

static const VectorKernel *kernel;

void
vector_distance_use(const char *name)
{
	kernel = name == NULL ? vector_kernel_best() : vector_kernel_named(name);
}

/* Is a sum in single precision exact enough?  False for NaN, too. */
static bool
is_trusted(float sum)
{
	return fabsf(sum) < TRUSTED && fabsf(sum) > 1.0F / TRUSTED;
}

static void
check_same_dims(Vector a, Vector b)
{
	if (a.dims != b.dims)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("vectors have different dimensions: %d and %d", a.dims, b.dims));
}

/* Only sums that are not trusted can have elements that are not finite: refuses those. */
static void
check_finite(Vector a, Vector b)
{
	vector_of(a.values, a.dims);
	vector_of(b.values, b.dims);
}

double
distance_l2(Vector a, Vector b)
{
	double square;

	check_same_dims(a, b);
	square = kernel->squared_distance(a.values, b.values, a.dims);
	if (!is_trusted((float) square))
	{
		check_finite(a, b);
		square = exact_squared_distance(a.values, b.values, a.dims);
	}
	return sqrt(square);
}

double
distance_negative_product(Vector a, Vector b)
{
	double product;

	check_same_dims(a, b);
	product = kernel->inner_product(a.values, b.values, a.dims);
	if (!is_trusted((float) product))
	{
		check_finite(a, b);
		product = exact_inner_product(a.values, b.values, a.dims);
	}
	/* not -0 */
	return 0.0 - product;
}

double
distance_cosine(Vector a, Vector b)
{
	VectorProducts products;
	double		   ab;
	double		   aa;
	double		   bb;

	check_same_dims(a, b);
	products = kernel->products(a.values, b.values, a.dims);
	ab = products.ab;
	aa = products.aa;
	bb = products.bb;
	if (!is_trusted(products.ab) || !is_trusted(products.aa) || !is_trusted(products.bb))
	{
		check_finite(a, b);
		ab = exact_inner_product(a.values, b.values, a.dims);
		aa = exact_inner_product(a.values, a.values, a.dims);
		bb = exact_inner_product(b.values, b.values, a.dims);
	}
	if (aa == 0.0 || bb == 0.0)
		return get_float8_nan();
	/* rounding may bring a cosine beyond its range */
	return 1.0 - Max(-1.0, Min(1.0, ab / sqrt(aa * bb)));
}

PG_FUNCTION_INFO_V1(real_l2_distance);
Datum
real_l2_distance(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(
		distance_l2(vector_look(PG_GETARG_ARRAYTYPE_P(0)), vector_look(PG_GETARG_ARRAYTYPE_P(1))));
}

PG_FUNCTION_INFO_V1(real_cosine_distance);
Datum
real_cosine_distance(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(distance_cosine(vector_look(PG_GETARG_ARRAYTYPE_P(0)),
									 vector_look(PG_GETARG_ARRAYTYPE_P(1))));
}

PG_FUNCTION_INFO_V1(real_negative_inner_product);
Datum
real_negative_inner_product(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(distance_negative_product(vector_look(PG_GETARG_ARRAYTYPE_P(0)),
											   vector_look(PG_GETARG_ARRAYTYPE_P(1))));
}

/* The distance between an array and something else; the SQL script says what it is for. */
PG_FUNCTION_INFO_V1(no_distance);
Datum
no_distance(PG_FUNCTION_ARGS)
{
	ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("there is no distance between types %s and %s",
				   format_type_be(get_fn_expr_argtype(fcinfo->flinfo, 0)),
				   format_type_be(get_fn_expr_argtype(fcinfo->flinfo, 1))),
			errhint("Cast one to the type of the other."));
	PG_RETURN_NULL();
}

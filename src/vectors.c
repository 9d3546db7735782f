/*
 * vectors.c
 *		Reads vectors from real[] and double precision[], and refuses what is not a vector.
 *
 * The only file that looks into users' arrays.  pgvector's types arrive here as real[], by
 * its own casts.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "catalog/pg_type.h"

#include "compat.h"
#include "vectors.h"
#include "wide.h"

/* The exponent of infinity and NaN has all bits set. */
WIDE static bool
all_finite(const float *values, int count)
{
	const uint32 *bits = (const uint32 *) values;
	uint32		  found = 0;

	for (int i = 0; i < count; i++)
		found |= (bits[i] & 0x7f800000U) == 0x7f800000U;
	return found == 0;
}

/* Says which element is not finite. */
static void
report_not_finite(const float *values, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (!isfinite(values[i]))
			ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
					errmsg("vector element %d is %s", i + 1,
						   isnan(values[i]) ? "NaN" : "infinite"));
	}
}

static void
check_shape(ArrayType *array)
{
	if (ARR_NDIM(array) > 1)
		ereport(ERROR, errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				errmsg("vector must be an array of one dimension, not of %d", ARR_NDIM(array)));
	if (ARR_NDIM(array) == 0)
		ereport(ERROR, errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("vector has no elements"));
	if (ARR_DIMS(array)[0] > VECTOR_MAX_DIMS)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				errmsg("vector has %d dimensions", ARR_DIMS(array)[0]),
				errdetail("A vector has at most %d dimensions.", VECTOR_MAX_DIMS));
	if (ARR_HASNULL(array))
	{
		const uint8 *not_null = ARR_NULLBITMAP(array);

		for (int i = 0; not_null != NULL && i < ARR_DIMS(array)[0]; i++)
		{
			if ((not_null[i / 8] & (1 << (i % 8))) == 0)
				ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("vector element %d is null", i + 1));
		}
	}
}

/* A copy in single precision, in the current memory context. */
static float *
to_single(const float8 *values, int count)
{
	float *single = palloc(sizeof(float) * count);

	for (int i = 0; i < count; i++)
	{
		if (isfinite(values[i]) && fabs(values[i]) > FLT_MAX)
			ereport(ERROR, errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					errmsg("vector element %d, %g, is out of range for type real", i + 1,
						   values[i]));
		single[i] = (float) values[i];
	}
	return single;
}

/*
 * A vector whose elements may still be infinite or NaN, which is the caller's to find out.  They
 * stay in the array if they are real, which must live as long as they do.
 */
Vector
vector_look(ArrayType *array)
{
	Vector vector;

	check_shape(array);
	vector.dims = ARR_DIMS(array)[0];
	if (ARR_ELEMTYPE(array) == FLOAT8OID)
		vector.values = to_single((const float8 *) ARR_DATA_PTR(array), vector.dims);
	else
	{
		Assert(ARR_ELEMTYPE(array) == FLOAT4OID);
		vector.values = (const float *) ARR_DATA_PTR(array);
	}
	return vector;
}

/* The same, of finite elements. */
Vector
vector_read(ArrayType *array)
{
	const Vector vector = vector_look(array);

	return vector_of(vector.values, vector.dims);
}

/* The same for what may be none; false if it is not. */
bool
vector_try_read(ArrayType *array, Vector *vector)
{
	if (ARR_NDIM(array) != 1 || ARR_DIMS(array)[0] > VECTOR_MAX_DIMS || array_contains_nulls(array))
		return false;
	vector->dims = ARR_DIMS(array)[0];
	if (ARR_ELEMTYPE(array) == FLOAT8OID)
	{
		const float8 *values = (const float8 *) ARR_DATA_PTR(array);

		for (int i = 0; i < vector->dims; i++)
		{
			if (!(fabs(values[i]) <= FLT_MAX))
				return false;
		}
		vector->values = to_single(values, vector->dims);
	}
	else
		vector->values = (const float *) ARR_DATA_PTR(array);
	return all_finite(vector->values, vector->dims);
}

/* A vector of these elements, which must be finite. */
Vector
vector_of(const float *values, int dims)
{
	const Vector vector = {dims, values};

	if (!all_finite(values, dims))
		report_not_finite(values, dims);
	return vector;
}

/* The vector scaled to length 1, in the given room; a vector of zeros stays as it is. */
Vector
vector_normalized(Vector vector, float *values)
{
	const Vector normalized = {vector.dims, values};
	double		 squares = 0.0;
	double		 factor;

	for (int i = 0; i < vector.dims; i++)
		squares += (double) vector.values[i] * vector.values[i];
	factor = squares > 0.0 ? 1.0 / sqrt(squares) : 0.0;
	for (int i = 0; i < vector.dims; i++)
		values[i] = (float) (factor * vector.values[i]);
	return normalized;
}

void
vector_check_dims(Vector vector, int model_dims)
{
	if (vector.dims != model_dims)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("vector has %d dimensions, but the model has %d", vector.dims, model_dims));
}

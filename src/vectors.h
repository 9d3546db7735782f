/*
 * vectors.h
 *		The vectors that users pass in, as rows of finite floats.
 */
#ifndef UNIFDIAG_VECTORS_H
#define UNIFDIAG_VECTORS_H

#include "fmgr.h"
#include "utils/array.h"

#define VECTOR_MAX_DIMS 16000

typedef struct Vector
{
	int			 dims;
	const float *values;
} Vector;

extern Vector vector_look(ArrayType *array);
extern Vector vector_read(ArrayType *array);
extern bool	  vector_try_read(ArrayType *array, Vector *vector);
extern Vector vector_of(const float *values, int dims);
extern Vector vector_normalized(Vector vector, float *values);
extern void	  vector_check_dims(Vector vector, int model_dims);

/* vector_argument.c: values of other types, by their cast to real[] */
typedef struct VectorCast
{
	Oid					type;  /* of the values */
	struct ExprState   *state; /* NULL if they need no cast */
	struct ExprContext *context;
} VectorCast;

extern bool		  vector_cast_init(VectorCast *cast, Oid type, int32 typmod, Oid collation);
extern ArrayType *vector_cast_array(VectorCast *cast, Datum value);
extern Vector	  vector_argument(FunctionCallInfo fcinfo, int number, VectorCast **cast);

#endif /* UNIFDIAG_VECTORS_H */

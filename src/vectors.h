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

/* vector_argument.c: an argument of type "any" or text */
extern Vector vector_argument(FunctionCallInfo fcinfo, int number);

#define PG_GETARG_VECTOR(n) vector_read(PG_GETARG_ARRAYTYPE_P(n))

#endif /* UNIFDIAG_VECTORS_H */

/*
 * vector_distance.h
 *		Distances between vectors, as the server computes them.
 */
#ifndef UNIFDIAG_VECTOR_DISTANCE_H
#define UNIFDIAG_VECTOR_DISTANCE_H

#include "../vectors.h"
#include "vector_kernels.h"

/*
 * Names that pgvector's library has, too, would be taken for its functions where both are loaded:
 * before 16 the server's makefiles do not hide a library's names from others.
 */

/* of vectors that vector_look has returned; an error if one is not of finite numbers */
typedef double (*VectorDistance)(Vector a, Vector b);

extern double distance_l2(Vector a, Vector b);
extern double distance_cosine(Vector a, Vector b);
extern double distance_negative_product(Vector a, Vector b);

/* uses the kernel of that name, or the best one if it is NULL */
extern void vector_distance_use(const char *kernel);

#endif /* UNIFDIAG_VECTOR_DISTANCE_H */

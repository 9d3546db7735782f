/*
 * linalg.h
 *		Linear algebra on row-major matrices: the only interface to BLAS and LAPACK.
 *
 * A matrix is given by its first element; rows follow each other without gaps unless a
 * stride says otherwise.  "f" is single, "d" double precision.  Call linalg_load once
 * before anything else.
 */
#ifndef UNIFDIAG_LINALG_H
#define UNIFDIAG_LINALG_H

#include <stdbool.h>

/* Loads the library on first use; if it cannot be had, says why and returns false. */
extern bool linalg_load(const char **reason);

/* C (m x n) = alpha A B + beta C; A and B are transposed first if asked for */
extern void
multiply_f(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float *a,
		   int stride_a, const float *b, int stride_b, float beta, float *c, int stride_c);
extern void multiply_d(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha,
					   const double *a, const double *b, double beta, double *c);

/* y = alpha A x + beta y, A m x n; with the transpose y has n elements */
extern void multiply_vector_f(bool transpose, int m, int n, float alpha, const float *a,
							  int stride_a, const float *x, float beta, float *y);
extern void multiply_vector_d(bool transpose, int m, int n, double alpha, const double *a,
							  const double *x, double beta, double *y);

/* A (m x n) += alpha x y' */
extern void
add_outer_f(int m, int n, float alpha, const float *x, const float *y, float *a, int stride_a);

/* C (n x n, symmetric) = alpha A' A + beta C, A m x n */
extern void add_squares_d(int n, int m, double alpha, const double *a, double beta, double *c);

extern double dot_d(int n, const double *x, const double *y);

/* X = inverse(L') X in place; L n x n lower triangular with a unit diagonal, X n x m */
extern void solve_unit_lower_transposed(int n, int m, const double *l, double *x);

/*
 * Eigenvalues, ascending, of a symmetric matrix, which is overwritten with the eigenvectors,
 * a row each.
 */
extern bool symmetric_eigen(int n, double *a, double *values);

/* The inverse of a symmetric positive definite matrix, in place; false if it is not. */
extern bool positive_inverse(int n, double *a);

/* The orthogonal matrix nearest to A (n x n): U V' of its singular value decomposition. */
extern bool nearest_orthogonal(int n, double *a);

/* The same for one that is nearly orthogonal. */
extern void restore_orthogonal(int n, double *a);

#endif /* UNIFDIAG_LINALG_H */

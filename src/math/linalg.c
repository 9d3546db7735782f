/*
 * linalg.c
 *		Linear algebra by OpenBLAS, loaded when it is first needed.
 *
 * The library is not linked but opened, for two reasons.  Opening it takes milliseconds,
 * which connections that only compare codes need not spend.  And when it is opened it
 * starts a thread for every CPU, unless the environment says otherwise beforehand: a
 * PostgreSQL process must stay single-threaded, or signals might be handled in a thread
 * that knows nothing of the server.
 */
#include "linalg.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "memory.h"

/* a matrix whose products of rows are this far from an orthogonal one's needs one step more */
#define ORTHOGONAL_TOLERANCE 1e-7
#define MAX_ORTHOGONAL_STEPS 8

enum
{
	ROW_MAJOR = 101,
	NO_TRANSPOSE = 111,
	TRANSPOSE = 112,
	LOWER = 122,
	UNIT = 132,
	LEFT = 141
};

/* the routines, by the prototypes of CBLAS and of LAPACK's Fortran */
static struct
{
	void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
				  float, float *, int);
	void (*dgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int,
				  double, double *, int);
	void (*sgemv)(int, int, int, int, float, const float *, int, const float *, int, float, float *,
				  int);
	void (*dgemv)(int, int, int, int, double, const double *, int, const double *, int, double,
				  double *, int);
	void (*sger)(int, int, int, float, const float *, int, const float *, int, float *, int);
	void (*dger)(int, int, int, double, const double *, int, const double *, int, double *, int);
	double (*ddot)(int, const double *, int, const double *, int);
	void (*dtrsm)(int, int, int, int, int, int, int, double, const double *, int, double *, int);
	void (*dsyevd)(const char *, const char *, const int *, double *, const int *, double *,
				   double *, const int *, int *, const int *, int *);
	void (*dpotrf)(const char *, const int *, double *, const int *, int *);
	void (*dpotri)(const char *, const int *, double *, const int *, int *);
	void (*dgesdd)(const char *, const int *, const int *, double *, const int *, double *,
				   double *, const int *, double *, const int *, double *, const int *, int *,
				   int *);
} blas;

static const struct
{
	const char *name;
	void	   *routine;
} routines[] = {
	{"cblas_sgemm", &blas.sgemm}, {"cblas_dgemm", &blas.dgemm}, {"cblas_sgemv", &blas.sgemv},
	{"cblas_dgemv", &blas.dgemv}, {"cblas_sger", &blas.sger},	{"cblas_dger", &blas.dger},
	{"cblas_ddot", &blas.ddot},	  {"cblas_dtrsm", &blas.dtrsm}, {"dsyevd_", &blas.dsyevd},
	{"dpotrf_", &blas.dpotrf},	  {"dpotri_", &blas.dpotri},	{"dgesdd_", &blas.dgesdd},
};

bool
linalg_load(const char **reason)
{
	static void *library = NULL;

	if (library != NULL)
		return true;
	setenv("OPENBLAS_NUM_THREADS", "1", 1);
	library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library != NULL && i < sizeof(routines) / sizeof(routines[0]); i++)
	{
		*(void **) routines[i].routine = dlsym(library, routines[i].name);
		if (*(void **) routines[i].routine == NULL)
		{
			dlclose(library);
			library = NULL;
		}
	}
	if (library == NULL)
		*reason = dlerror();
	return library != NULL;
}

/* Products with a single row or column go to the routines for vectors, which are faster. */
void
multiply_f(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float *a,
		   int stride_a, const float *b, int stride_b, float beta, float *c, int stride_c)
{
	if (m == 1 && !transpose_a)
		multiply_vector_f(!transpose_b, transpose_b ? n : k, transpose_b ? k : n, alpha, b,
						  stride_b, a, beta, c);
	else if (k == 1 && transpose_a && !transpose_b && beta == 1.0F)
		add_outer_f(m, n, alpha, a, b, c, stride_c);
	else
		blas.sgemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE,
				   transpose_b ? TRANSPOSE : NO_TRANSPOSE, m, n, k, alpha, a, stride_a, b, stride_b,
				   beta, c, stride_c);
}

void
multiply_d(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha, const double *a,
		   const double *b, double beta, double *c)
{
	blas.dgemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE,
			   transpose_b ? TRANSPOSE : NO_TRANSPOSE, m, n, k, alpha, a, transpose_a ? m : k, b,
			   transpose_b ? k : n, beta, c, n);
}

void
multiply_vector_f(bool transpose, int m, int n, float alpha, const float *a, int stride_a,
				  const float *x, float beta, float *y)
{
	blas.sgemv(ROW_MAJOR, transpose ? TRANSPOSE : NO_TRANSPOSE, m, n, alpha, a, stride_a, x, 1,
			   beta, y, 1);
}

void
multiply_vector_d(bool transpose, int m, int n, double alpha, const double *a, const double *x,
				  double beta, double *y)
{
	blas.dgemv(ROW_MAJOR, transpose ? TRANSPOSE : NO_TRANSPOSE, m, n, alpha, a, n, x, 1, beta, y,
			   1);
}

void
add_outer_f(int m, int n, float alpha, const float *x, const float *y, float *a, int stride_a)
{
	blas.sger(ROW_MAJOR, m, n, alpha, x, 1, y, 1, a, stride_a);
}

void
add_outer_d(int m, int n, double alpha, const double *x, const double *y, double *a)
{
	blas.dger(ROW_MAJOR, m, n, alpha, x, 1, y, 1, a, n);
}

double
dot_d(int n, const double *x, const double *y)
{
	return blas.ddot(n, x, 1, y, 1);
}

void
solve_unit_lower_transposed(int n, int m, const double *l, double *x)
{
	blas.dtrsm(ROW_MAJOR, LEFT, LOWER, TRANSPOSE, UNIT, n, m, 1.0, l, n, x, m);
}

/*
 * LAPACK's matrices are column-major: a symmetric one is the same either way, and its
 * eigenvectors, columns there, are rows here.
 */
bool
symmetric_eigen(int n, double *a, double *values)
{
	const int work_size = 1 + 6 * n + 2 * n * n;
	const int integer_work_size = 3 + 5 * n;
	double	 *work = math_alloc((size_t) work_size, sizeof(double));
	int		 *integer_work = math_alloc((size_t) integer_work_size, sizeof(int));
	int		  info;

	blas.dsyevd("V", "L", &n, a, &n, values, work, &work_size, integer_work, &integer_work_size,
				&info);
	math_free(work);
	math_free(integer_work);
	return info == 0;
}

bool
positive_inverse(int n, double *a)
{
	int info;

	blas.dpotrf("L", &n, a, &n, &info);
	if (info == 0)
		blas.dpotri("L", &n, a, &n, &info);
	/* the lower triangle of columns is the upper one of rows: copy it to the other */
	for (int i = 0; i < n; i++)
	{
		for (int j = 0; j < i; j++)
			a[(size_t) i * n + j] = a[(size_t) j * n + i];
	}
	return info == 0;
}

/*
 * LAPACK sees A' = U S V' and returns U and V' by columns, which by rows are U' and V; the
 * nearest orthogonal matrix to A is V U'.
 */
bool
nearest_orthogonal(int n, double *a)
{
	const size_t size = (size_t) n * (size_t) n;
	const int	 work_size = 4 * n * n + 7 * n;
	double		*u = math_alloc(size, sizeof(double));
	double		*vt = math_alloc(size, sizeof(double));
	double		*values = math_alloc((size_t) n, sizeof(double));
	double		*work = math_alloc((size_t) work_size, sizeof(double));
	int			*integer_work = math_alloc((size_t) n * 8, sizeof(int));
	int			 info;

	blas.dgesdd("A", &n, &n, a, &n, values, u, &n, vt, &n, work, &work_size, integer_work, &info);
	if (info == 0)
		multiply_d(false, false, n, n, n, 1.0, vt, u, 0.0, a);
	math_free(u);
	math_free(vt);
	math_free(values);
	math_free(work);
	math_free(integer_work);
	return info == 0;
}

/*
 * Newton and Schulz: R <- R - (R R' - I)/2 R squares the distance from orthogonal each time,
 * if it was small, and ends at the nearest orthogonal matrix.
 */
void
restore_orthogonal(int n, double *a)
{
	const size_t size = (size_t) n * (size_t) n;
	double		*skew = math_alloc(size, sizeof(double));
	double		*change = math_alloc(size, sizeof(double));

	for (int step = 0; step < MAX_ORTHOGONAL_STEPS; step++)
	{
		double largest = 0.0;

		multiply_d(false, true, n, n, n, 1.0, a, a, 0.0, skew);
		for (int i = 0; i < n; i++)
			skew[(size_t) i * (size_t) n + i] -= 1.0;
		for (size_t i = 0; i < size; i++)
			largest = fmax(largest, fabs(skew[i]));
		multiply_d(false, false, n, n, n, 0.5, skew, a, 0.0, change);
		for (size_t i = 0; i < size; i++)
			a[i] -= change[i];
		if (largest <= ORTHOGONAL_TOLERANCE)
			break;
	}
	math_free(skew);
	math_free(change);
}

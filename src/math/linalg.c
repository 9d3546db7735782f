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
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

/* a matrix whose products of rows are this far from an orthogonal one's needs one step more */
#define ORTHOGONAL_TOLERANCE 1e-5
#define MAX_ORTHOGONAL_STEPS 8

#define MIRROR_TILE 16

/* room for OpenBLAS and its buffer, of which it only touches what it uses: 128 MB, for which it asks twice */
#define LIBRARY_ROOM ((size_t) 384 << 20)

/* multiplications of a product that may be made without a look for a cancelled query */
#define PRODUCT_WORK 1e9

enum
{
	ROW_MAJOR = 101,
	NO_TRANSPOSE = 111,
	TRANSPOSE = 112,
	UPPER = 121,
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
	double (*ddot)(int, const double *, int, const double *, int);
	void (*dsyrk)(int, int, int, int, int, double, const double *, int, double, double *, int);
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
	{"cblas_dgemv", &blas.dgemv}, {"cblas_sger", &blas.sger},	{"cblas_ddot", &blas.ddot},
	{"cblas_dsyrk", &blas.dsyrk}, {"cblas_dtrsm", &blas.dtrsm}, {"dsyevd_", &blas.dsyevd},
	{"dpotrf_", &blas.dpotrf},	  {"dpotri_", &blas.dpotri},	{"dgesdd_", &blas.dgesdd},
};

/* what systems call the library: Debian and most, Alpine, those with development files only, macOS
 */
static const char *const library_names[] = {"libopenblas.so.0", "libopenblas.so.3",
											"libopenblasp.so.0", "libopenblas.so",
											"libopenblas.dylib"};

/* Returns the library, with all routines found in it, or NULL: dlerror() says why. */
static void *
open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library != NULL && i < sizeof(routines) / sizeof(routines[0]); i++)
	{
		*(void **) routines[i].routine = dlsym(library, routines[i].name);
		/* one that lacks something stays open: closing it would lose the reason */
		if (*(void **) routines[i].routine == NULL)
			library = NULL;
	}
	return library;
}

/*
 * The library maps a buffer when it is loaded, or when it first needs one, and keeps it.  If there is no
 * room it tries for ever; so it is not even loaded then, and gets the buffer now.
 */
static bool
has_room(void)
{
	void *room = malloc(LIBRARY_ROOM);

	free(room);
	return room != NULL;
}

static void
reserve_buffer(void)
{
	const int one = 1;
	double	  matrix = 1.0;
	int		  info;

	blas.dpotrf("L", &one, &matrix, &one, &info);
}

bool
linalg_load(const char **reason)
{
	static void *library = NULL;
	static char	 first_reason[256];

	if (library != NULL)
		return true;
	if (!has_room())
	{
		*reason = "out of memory";
		return false;
	}
	setenv("OPENBLAS_NUM_THREADS", "1", 1);
	for (size_t i = 0; library == NULL && i < sizeof(library_names) / sizeof(library_names[0]); i++)
	{
		library = open_library(library_names[i]);
		/* the first name is what the library is called where it is missing */
		if (library == NULL && i == 0)
			snprintf(first_reason, sizeof(first_reason), "%s", dlerror());
	}
	*reason = first_reason;
	if (library != NULL)
		reserve_buffer();
	return library != NULL;
}

/* Rows of a product that are made at once: before each such part a query can be cancelled. */
static int
rows_at_once(int m, int n, int k)
{
	const double rows = fmax(PRODUCT_WORK / ((double) n * k), 1.0);

	math_check_cancelled();
	return rows >= m ? m : (int) rows;
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
	{
		for (int done = 0, rows; done < m; done += rows)
		{
			rows = rows_at_once(m - done, n, k);
			blas.sgemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE,
					   transpose_b ? TRANSPOSE : NO_TRANSPOSE, rows, n, k, alpha,
					   a + (size_t) done * (size_t) (transpose_a ? 1 : stride_a), stride_a, b,
					   stride_b, beta, c + (size_t) done * (size_t) stride_c, stride_c);
		}
	}
}

void
multiply_d(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha, const double *a,
		   const double *b, double beta, double *c)
{
	for (int done = 0, rows; done < m; done += rows)
	{
		rows = rows_at_once(m - done, n, k);
		blas.dgemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE,
				   transpose_b ? TRANSPOSE : NO_TRANSPOSE, rows, n, k, alpha,
				   a + (size_t) done * (size_t) (transpose_a ? 1 : k), transpose_a ? m : k, b,
				   transpose_b ? k : n, beta, c + (size_t) done * (size_t) n, n);
	}
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

/* Copies the upper triangle to the lower one, by tiles: columns are far apart in memory. */
static void
mirror_upper(int n, double *a)
{
	for (int top = 0; top < n; top += MIRROR_TILE)
	{
		for (int left = 0; left <= top; left += MIRROR_TILE)
		{
			for (int i = top; i < n && i < top + MIRROR_TILE; i++)
			{
				for (int j = left; j < i && j < left + MIRROR_TILE; j++)
					a[(size_t) i * (size_t) n + j] = a[(size_t) j * (size_t) n + i];
			}
		}
	}
}

void
add_squares_d(int n, int m, double alpha, const double *a, double beta, double *c)
{
	blas.dsyrk(ROW_MAJOR, UPPER, TRANSPOSE, n, m, alpha, a, n, beta, c, n);
	mirror_upper(n, c);
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
	math_check_cancelled();
	if (info == 0)
		blas.dpotri("L", &n, a, &n, &info);
	/* the lower triangle of columns is the upper one of rows: copy it to the other */
	mirror_upper(n, a);
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

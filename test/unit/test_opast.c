/*
 * test_opast.c
 *		Learning the basis: against a plain double-precision OPAST.
 */
#include "data.h"

/*
 * The reference: the formulae of src/math/README.md one row at a time, in double precision and
 * with loops.
 */
typedef struct Reference
{
	int		dims;
	int		bits;
	int		rank;
	double	forgetting;
	double	weight;
	double *mean;
	double *basis;
	double *covariance;
	double *inverse;
} Reference;

static Reference *
reference_create(int dims, int bits, double forgetting)
{
	Reference *r = math_alloc(1, sizeof(Reference));

	r->dims = dims;
	r->bits = bits;
	r->forgetting = forgetting;
	r->mean = math_alloc((size_t) dims, sizeof(double));
	r->basis = math_alloc((size_t) bits * (size_t) dims, sizeof(double));
	r->covariance = math_alloc((size_t) bits * (size_t) bits, sizeof(double));
	r->inverse = math_alloc((size_t) bits * (size_t) bits, sizeof(double));
	return r;
}

static void
reference_free(Reference *r)
{
	free(r->mean);
	free(r->basis);
	free(r->covariance);
	free(r->inverse);
	free(r);
}

static double
product(const double *a, const double *b, int n)
{
	double sum = 0.0;

	for (int i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Gauss and Jordan */
static void
invert(const double *matrix, double *inverse, int n)
{
	double *work = math_alloc((size_t) n * (size_t) n, sizeof(double));

	memcpy(work, matrix, (size_t) n * (size_t) n * sizeof(double));
	for (int i = 0; i < n * n; i++)
		inverse[i] = i / n == i % n;
	for (int i = 0; i < n; i++)
	{
		const double pivot = work[i * n + i];

		for (int j = 0; j < n; j++)
		{
			work[i * n + j] /= pivot;
			inverse[i * n + j] /= pivot;
		}
		for (int k = 0; k < n; k++)
		{
			const double factor = work[k * n + i];

			for (int j = 0; j < n && k != i; j++)
			{
				work[k * n + j] -= factor * work[i * n + j];
				inverse[k * n + j] -= factor * inverse[i * n + j];
			}
		}
	}
	free(work);
}

static void
reference_grow(Reference *r, double *x, double *y)
{
	double length;

	for (int i = 0; i < r->rank; i++)
	{
		y[i] = product(r->basis + i * r->dims, x, r->dims);
		for (int k = 0; k < r->dims; k++)
			x[k] -= y[i] * r->basis[i * r->dims + k];
	}
	length = sqrt(product(x, x, r->dims));
	y[r->rank] = length;
	for (int k = 0; k < r->dims; k++)
		r->basis[r->rank * r->dims + k] = x[k] / length;
	r->rank++;
}

static void
reference_turn(Reference *r, const double *x, double *y)
{
	const int dims = r->dims;
	const int bits = r->bits;
	double	 *z = math_alloc((size_t) bits, sizeof(double));
	double	 *p = math_alloc((size_t) dims, sizeof(double));
	double	  gamma;
	double	  tau;
	double	  zz;

	for (int i = 0; i < bits; i++)
		y[i] = product(r->basis + i * dims, x, dims);
	for (int i = 0; i < bits; i++)
		z[i] = product(r->inverse + i * bits, y, bits) / r->forgetting;
	gamma = 1.0 / (1.0 + product(y, z, bits));
	for (int i = 0; i < bits * bits; i++)
		r->inverse[i] = r->inverse[i] / r->forgetting - gamma * z[i / bits] * z[i % bits];
	for (int k = 0; k < dims; k++)
	{
		p[k] = x[k];
		for (int i = 0; i < bits; i++)
			p[k] -= r->basis[i * dims + k] * y[i];
		p[k] *= gamma;
	}
	zz = product(z, z, bits);
	tau = (1.0 / sqrt(1.0 + product(p, p, dims) * zz) - 1.0) / zz;
	for (int k = 0; k < dims; k++)
	{
		double turned = 0.0;

		for (int i = 0; i < bits; i++)
			turned += r->basis[i * dims + k] * z[i];
		p[k] = tau * turned + (1.0 + tau * zz) * p[k];
	}
	for (int i = 0; i < bits; i++)
	{
		for (int k = 0; k < dims; k++)
			r->basis[i * dims + k] += z[i] * p[k];
	}
	free(z);
	free(p);
}

static void
reference_learn(Reference *r, const float *row)
{
	const double before = r->forgetting * r->weight;
	double		*x = math_alloc((size_t) r->dims, sizeof(double));
	double		*y = math_alloc((size_t) r->bits, sizeof(double));

	r->weight = before + 1.0;
	for (int k = 0; k < r->dims; k++)
	{
		x[k] = sqrt(before / r->weight) * (row[k] - r->mean[k]);
		r->mean[k] += (row[k] - r->mean[k]) / r->weight;
	}
	if (before > 0.0)
	{
		const bool growing = r->rank < r->bits;

		if (growing)
			reference_grow(r, x, y);
		else
			reference_turn(r, x, y);
		for (int i = 0; i < r->bits * r->bits; i++)
			r->covariance[i] = r->forgetting * r->covariance[i] + y[i / r->bits] * y[i % r->bits];
		if (growing && r->rank == r->bits)
			invert(r->covariance, r->inverse, r->bits);
	}
	free(x);
	free(y);
}

/* The largest differences of basis and (relative) covariance. */
static bool
equals_reference(const Model *model, const Reference *r, double tolerance)
{
	const double scale = ldexp(1.0, 2 * model->exponent);
	double		 worst = 0.0;

	for (int i = 0; i < r->bits * r->dims; i++)
		worst = fmax(worst, fabs(model->basis[i] - r->basis[i]));
	for (int i = 0; i < r->bits * r->bits; i++)
		worst =
			fmax(worst, fabs(model->covariance[i] * scale - r->covariance[i]) / r->covariance[0]);
	for (int k = 0; k < r->dims; k++)
		worst = fmax(worst, fabs(model->mean[k] - r->mean[k]));
	if (!(worst <= tolerance))
		printf("# differs by %g\n", worst);
	return worst <= tolerance;
}

static void
test_against_reference(int dims, int bits, double forgetting)
{
	const int	rows = 4000;
	float	   *data = make_rows(rows, dims, dims, 1);
	Reference  *reference = reference_create(dims, bits, forgetting);
	ModelConfig config = make_config(dims, bits);

	config.forgetting = forgetting;
	for (int t = 0; t < rows; t++)
		reference_learn(reference, data + (size_t) t * (size_t) dims);
	for (int block = 1; block <= 64; block = block * 3 + 4)
	{
		Model *model = learn_rows(&config, block, data, 0, rows);

		ok(equals_reference(model, reference, 2e-4),
		   "%d rows, %d to %d, forgetting %g: blocks of %d equal the reference", rows, dims, bits,
		   forgetting, block);
		model_free(model);
	}
	reference_free(reference);
	free(data);
}

/*
 * Rows whose variances fall by a factor each, so that the last of the basis has the given part of
 * the first: where products with the inverse lose most to rounding.
 */
static float *
make_steep_rows(int rows, int dims, int bits, double least)
{
	float	*data = math_alloc((size_t) rows * (size_t) dims, sizeof(float));
	uint64_t seed = 5;

	for (int i = 0; i < rows * dims; i++)
		data[i] = (float) (next_normal(&seed) * pow(least, (double) (i % dims) / (2.0 * bits)));
	return data;
}

/* The sine of the largest angle between the subspaces, by the residuals of single directions. */
static double
subspace_distance(const Model *model, const Reference *r)
{
	double worst = 0.0;

	for (int i = 0; i < r->bits; i++)
	{
		double residual = 1.0;

		for (int j = 0; j < r->bits; j++)
		{
			double component = 0.0;

			for (int k = 0; k < r->dims; k++)
				component += model->basis[i * r->dims + k] * r->basis[j * r->dims + k];
			residual -= component * component;
		}
		worst = fmax(worst, sqrt(fmax(residual, 0.0)));
	}
	return worst;
}

/*
 * The subspace is as near to the reference's as the basis can be, which is single.  Tolerances are
 * two to three times what was measured on several processors.
 */
static void
test_steep_variances(void)
{
	const int	 rows = 3000;
	const int	 dims = 60;
	const int	 bits = 20;
	const double least[] = {1e-2, 1e-4, 1e-6};
	const double tolerance[] = {1e-3, 1e-3, 0.05};

	for (int i = 0; i < 3; i++)
	{
		const ModelConfig config = make_config(dims, bits);
		float			 *data = make_steep_rows(rows, dims, bits, least[i]);
		Reference		 *reference = reference_create(dims, bits, 1.0);
		Model			 *model = learn_rows(&config, 0, data, 0, rows);
		double			  distance;

		for (int t = 0; t < rows; t++)
			reference_learn(reference, data + (size_t) t * (size_t) dims);
		distance = subspace_distance(model, reference);
		ok(distance < tolerance[i],
		   "variances down to %g of the largest: the same subspace, to %.1e", least[i], distance);
		model_free(model);
		reference_free(reference);
		free(data);
	}
}

int
main(void)
{
	require_linalg();
	test_against_reference(40, 8, 1.0);
	test_against_reference(40, 8, 0.995);
	test_against_reference(30, 1, 1.0);
	test_against_reference(100, 32, 1.0);
	test_steep_variances();
	return done_testing();
}

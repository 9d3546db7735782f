/*
 * tracker_opast.c
 *		OPAST: the principal subspace, followed row by row and computed block by block.
 *
 * src/math/README.md has the formulae.  The first rows build the basis: each adds its part
 * outside of it as a new direction.  Once it is full, blocks of rows turn it.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "../wide.h"
#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "rows.h"

/* a row adds a direction if this share of its length lies outside the basis */
#define MIN_RESIDUAL 1e-4

/* a row turns the basis if this share of its squared length lies outside; less is rounding */
#define MIN_SQUARED_RESIDUAL 1e-6

/* rounding of that share, which is a difference of products in single precision */
#define PRODUCT_ROUNDING 1e-7

/* how far from orthonormal a row may move the basis, and a block before that is removed at once */
#define MAX_ROW_SKEW 1e-3
#define MAX_BLOCK_SKEW 1e-5

/* gains as large as this turn the basis all the way to the row, and are in the range of floats */
#define MAX_GAIN 1e30

/* by how much rounding to single precision may change 1 + y'Zy, for rows of the usual length */
#define MAX_SINGLE_ERROR 1e-3

/* after this many rows for each bit rounding is removed */
#define REFRESH_ROWS_PER_BIT 8
#define MIN_REFRESH_ROWS 256

/* One row while the basis is not full: exact, as long as the rows' rank is below bits. */
static void
grow(Model *model, float *row, double norm)
{
	const int bits = model->config.bits;
	const int dims = model->config.dims;
	int		  rank = model->rank;
	float	 *components;
	double	 *y;

	/* nothing changes, if nothing is forgotten either */
	if (norm == 0.0 && model->config.forgetting == 1.0)
		return;
	components = math_alloc((size_t) bits, sizeof(float));
	y = math_alloc((size_t) bits, sizeof(double));

	/* twice: the second pass removes what rounding left of the first */
	for (int pass = 0; pass < 2 && rank > 0; pass++)
	{
		multiply_vector_f(false, rank, dims, 1.0F, model->basis, dims, row, 0.0F, components);
		multiply_vector_f(true, rank, dims, -1.0F, model->basis, dims, components, 1.0F, row);
		for (int i = 0; i < rank; i++)
			y[i] += components[i];
	}
	y[rank] = sqrt(squared_length(row, dims));
	if (y[rank] > MIN_RESIDUAL * sqrt(norm))
	{
		float *direction = model->basis + (size_t) rank * (size_t) dims;

		memcpy(direction, row, (size_t) dims * sizeof(float));
		orthonormalise_row(model->basis, dims, rank, direction);
		rank = ++model->rank;
		model->complete = rank == bits;
	}
	for (int i = 0; i < rank; i++)
	{
		for (int j = 0; j < rank; j++)
		{
			double *element = model->covariance + (size_t) i * bits + j;

			*element = model->config.forgetting * *element + y[i] * y[j];
		}
	}
	math_free(components);
	math_free(y);
}

/* The block's arrays; all have a row for each row of the block. */
typedef struct Block
{
	int		rows;
	int		stride;	  /* of products: bits + rows */
	float  *products; /* W x, and the products with the block's rows */
	double *y;		  /* W x at the row's turn */
	float  *y_single;
	double *z; /* gains, of length 1 */
	float  *z_single;
	double *v; /* what multiplies W in the update */
	float  *v_single;
	double *kappa;
	double *omega;	/* what z z' is of the change of the inverse */
	double *shares; /* for products with the rows before or after */
	float  *shares_single;
	double *lower;	 /* products of v with z of earlier rows */
	float  *inverse; /* the model's as the block began, in single precision; NULL if not safe */
	bool	lost;	 /* the model's was made anew since, and lacks the block's first rows */
	double	skew;	 /* by how much rounding may have moved the basis from orthonormal */
} Block;

/*
 * Is the inverse safe in single precision?  Its products y'Zy are off by up to the rounding of
 * the largest elements of Z times y'y: that must be little beside 1, which they are added to.
 */
static bool
is_single_safe(const Model *model)
{
	const size_t bits = (size_t) model->config.bits;
	double		 variance = 0.0;
	double		 gain = 0.0;

	for (size_t i = 0; i < bits; i++)
	{
		variance += model->covariance[i * bits + i];
		gain += model->inverse[i * bits + i];
	}
	return FLT_EPSILON * variance * gain <= MAX_SINGLE_ERROR * model->weight;
}

static void
block_alloc(Block *block, const Model *model)
{
	const size_t bits = (size_t) model->config.bits;
	const size_t rows = (size_t) model->waiting;
	const size_t size = rows * bits;

	block->rows = model->waiting;
	block->stride = model->config.bits + model->waiting;
	block->products = math_alloc(rows * (size_t) block->stride, sizeof(float));
	block->y = math_alloc(size, sizeof(double));
	block->y_single = math_alloc(bits, sizeof(float));
	block->z = math_alloc(size, sizeof(double));
	block->z_single = math_alloc(size, sizeof(float));
	block->v = math_alloc(size, sizeof(double));
	block->v_single = math_alloc(size, sizeof(float));
	block->kappa = math_alloc(rows, sizeof(double));
	block->omega = math_alloc(rows, sizeof(double));
	block->shares = math_alloc(rows, sizeof(double));
	block->shares_single = math_alloc(rows, sizeof(float));
	block->lower = math_alloc(rows * rows, sizeof(double));
	block->inverse = NULL;
	block->lost = false;
	block->skew = 0.0;
	/* for one row a copy would cost more than it saves */
	if (block->rows > 1 && is_single_safe(model))
	{
		block->inverse = math_alloc(bits * bits, sizeof(float));
		copy_single(model->inverse, block->inverse, bits * bits);
	}
}

static void
block_free(Block *block)
{
	math_free(block->products);
	math_free(block->y);
	math_free(block->y_single);
	math_free(block->z);
	math_free(block->z_single);
	math_free(block->v);
	math_free(block->v_single);
	math_free(block->kappa);
	math_free(block->omega);
	math_free(block->shares);
	math_free(block->shares_single);
	math_free(block->lower);
	if (block->inverse != NULL)
		math_free(block->inverse);
}

/* The products of two rows with themselves and with each other. */
typedef struct Products
{
	double yy;
	double yz;
	double zz;
} Products;

WIDE static Products
multiply_pair(const double *y, const double *z, int n)
{
	Double4	 yy = {0.0};
	Double4	 yz = {0.0};
	Double4	 zz = {0.0};
	Products products;
	int		 i = 0;

	for (; i + 4 <= n; i += 4)
	{
		Double4 some_y;
		Double4 some_z;

		memcpy(&some_y, y + i, sizeof(some_y));
		memcpy(&some_z, z + i, sizeof(some_z));
		yy += some_y * some_y;
		yz += some_y * some_z;
		zz += some_z * some_z;
	}
	products.yy = sum4(&yy);
	products.yz = sum4(&yz);
	products.zz = sum4(&zz);
	for (; i < n; i++)
	{
		products.yy += y[i] * y[i];
		products.yz += y[i] * z[i];
		products.zz += z[i] * z[i];
	}
	return products;
}

/* (Z - sum of omega_s z_s z_s') y, Z the inverse as the block began, s the block's rows before t */
static void
multiply_inverse(const Model *model, Block *block, int t, const double *y, double *product)
{
	const int bits = model->config.bits;

	multiply_vector_d(false, bits, bits, 1.0, model->inverse, y, 0.0, product);
	if (t == 0)
		return;
	multiply_vector_d(false, t, bits, 1.0, block->z, y, 0.0, block->shares);
	for (int s = 0; s < t; s++)
		block->shares[s] *= block->omega[s];
	multiply_vector_d(true, t, bits, -1.0, block->z, block->shares, 1.0, product);
}

/* The same in single precision. */
static void
multiply_inverse_single(const Model *model, Block *block, int t, const float *y, float *product)
{
	const int bits = model->config.bits;
	float	 *shares = block->shares_single;

	multiply_vector_f(false, bits, bits, 1.0F, block->inverse, bits, y, 0.0F, product);
	if (t == 0)
		return;
	multiply_vector_f(false, t, bits, 1.0F, block->z_single, bits, y, 0.0F, shares);
	for (int s = 0; s < t; s++)
		shares[s] *= (float) block->omega[s];
	multiply_vector_f(true, t, bits, -1.0F, block->z_single, bits, shares, 1.0F, product);
}

/* z = Z y and products with it; false if y'Zy is lost to rounding. */
static bool
compute_gain(const Model *model, Block *block, int t, Products *pair)
{
	const int	  bits = model->config.bits;
	const double  growth = pow(model->config.forgetting, -t);
	const size_t  row = (size_t) t * (size_t) bits;
	const double *y = block->y + row;
	double		 *z = block->z + row;
	float		 *z_single = block->z_single + row;

	if (block->inverse != NULL)
	{
		multiply_inverse_single(model, block, t, block->y_single, z_single);
		copy_double(z_single, z, (size_t) bits);
	}
	else
		multiply_inverse(model, block, t, y, z);
	for (int i = 0; i < bits && growth != 1.0; i++)
		z[i] *= growth;
	*pair = multiply_pair(y, z, bits);
	return pair->yz >= 0.0 && isfinite(pair->yz) && isfinite(pair->zz);
}

/*
 * The same, by other means if rounding has made nonsense of it, as it may when rows are longer by
 * many orders than those before: in double precision, and then from the covariance.
 */
static void
compute_gain_safely(Model *model, Block *block, int t, Products *pair)
{
	const size_t bits = (size_t) model->config.bits;

	if (compute_gain(model, block, t, pair))
		return;
	if (block->inverse != NULL)
	{
		math_free(block->inverse);
		block->inverse = NULL;
		if (compute_gain(model, block, t, pair))
			return;
	}
	model_invert(model);
	block->lost = true;
	memset(block->omega, 0, (size_t) t * sizeof(double));
	if (compute_gain(model, block, t, pair))
		return;
	memset(block->z + (size_t) t * bits, 0, bits * sizeof(double));
	pair->yz = pair->zz = 0.0;
}

/*
 * One row's turn, in bits-sized arithmetic: the gain z, its part in the inverse, and what the row
 * changes in the products of the rows after it.
 */
WIDE static void
step(Model *model, Block *block, int t)
{
	const int	 bits = model->config.bits;
	const double forgetting = model->config.forgetting;
	const size_t row = (size_t) t * (size_t) bits;
	float		*products = block->products + (size_t) t * (size_t) block->stride;
	double		*y = block->y + row;
	double		*z = block->z + row;
	float		*z_single = block->z_single + row;
	double		*v = block->v + row;
	float		*v_single = block->v_single + row;
	const int	 later = block->rows - t - 1;
	const double norm = model->norms[t];
	Products	 pair;
	double		 gamma;
	double		 z_length;
	double		 residual;
	double		 gain;
	double		 reach;
	double		 root;
	double		 skew;
	double		 tau;

	for (int i = 0; i < bits; i++)
		y[i] = block->y_single[i] = products[i];
	/* z is the formulae's times the forgetting factor, and gamma less by as much */
	compute_gain_safely(model, block, t, &pair);
	gamma = 1.0 / fmax(forgetting + pair.yz, DBL_MIN);
	z_length = sqrt(pair.zz);
	block->omega[t] = gamma * pair.zz * pow(forgetting, t);

	residual = norm - pair.yy;
	/* nor does a row at right angles to the basis turn it */
	if (residual < MIN_SQUARED_RESIDUAL * norm || !(z_length > 0.0))
		residual = 0.0;
	/* with z of length 1, and what it multiplies scaled by the inverse, nothing overflows */
	gain = fmin(gamma * z_length, MAX_GAIN);
	reach = gain * sqrt(residual);
	root = sqrt(1.0 + reach * reach);
	/* the row's direction is as long as the residual is right: sin^2 of the angle times its rounding */
	skew = gain / root * (gain / root) * PRODUCT_ROUNDING * norm;
	if (residual == 0.0 || skew > MAX_ROW_SKEW)
	{
		gain = skew = 0.0;
		root = 1.0;
	}
	block->skew += skew;
	tau = 1.0 / root - 1.0;
	block->kappa[t] = gain / root;
	for (int i = 0; i < bits; i++)
	{
		z[i] = z_length > 0.0 ? z[i] / z_length : 0.0;
		z_single[i] = (float) z[i];
		v[i] = tau * z[i] - block->kappa[t] * y[i];
		v_single[i] = (float) v[i];
	}
	if (later > 0)
	{
		float *next = products + block->stride;
		float *shares = block->shares_single;

		for (int u = 0; u < later; u++)
			shares[u] = (float) block->kappa[t] * products[bits + t + 1 + u];
		multiply_vector_f(false, later, bits, 1.0F, next, block->stride, v_single, 1.0F, shares);
		add_outer_f(later, bits, 1.0F, shares, z_single, next, block->stride);
	}
}

WIDE static void
scale_row(float *row, int dims, float factor)
{
	for (int k = 0; k < dims; k++)
		row[k] *= factor;
}

/*
 * All rows' changes to W at once: W + Z' inverse(I - L) (V W + K X), where row s of Z, V is
 * its z, v; L has v_s z_r for r < s; K has the kappas on its diagonal; X is the block.
 */
static void
update_basis(Model *model, Block *block)
{
	const int	 bits = model->config.bits;
	const int	 dims = model->config.dims;
	const int	 rows = block->rows;
	const size_t size = (size_t) rows * (size_t) bits;
	float		*factor = block->products; /* no longer needed, and large enough */

	multiply_d(false, true, rows, rows, bits, -1.0, block->v, block->z, 0.0, block->lower);
	solve_unit_lower_transposed(rows, bits, block->lower, block->z);
	copy_single(block->z, factor, size);
	for (int t = 0; t < rows; t++)
		scale_row(model->block + (size_t) t * (size_t) dims, dims, (float) block->kappa[t]);
	multiply_f(false, false, rows, dims, bits, 1.0F, block->v_single, bits, model->basis, dims,
			   1.0F, model->block, dims);
	multiply_f(true, false, bits, dims, rows, 1.0F, factor, bits, model->block, dims, 1.0F,
			   model->basis, dims);
}

/* All rows' changes to the covariance and to its inverse; uses up y. */
WIDE static void
update_covariance(Model *model, Block *block)
{
	const int	 bits = model->config.bits;
	const double forgetting = model->config.forgetting;
	double		 weight = 1.0;

	/* the last row has weight one, each before it has been forgotten once more */
	for (int t = block->rows - 1; t >= 0 && forgetting != 1.0; t--)
	{
		double		*y = block->y + (size_t) t * (size_t) bits;
		const double root = sqrt(weight);

		for (int i = 0; i < bits; i++)
			y[i] *= root;
		weight *= forgetting;
	}
	add_squares_d(bits, block->rows, 1.0, block->y, weight, model->covariance);
	if (block->lost)
	{
		model_forget_inverse(model);
		return;
	}
	for (int t = 0; t < block->rows; t++)
	{
		double		 *y = block->y + (size_t) t * (size_t) bits;
		const double *z = block->z + (size_t) t * (size_t) bits;
		const double  root = sqrt(block->omega[t]);

		for (int i = 0; i < bits; i++)
			y[i] = root * z[i];
	}
	add_squares_d(bits, block->rows, -1.0 / weight, block->y, 1.0 / weight, model->inverse);
}

/* Rows between two refreshes: few if rows are soon forgotten, since gains are then large. */
static double
refresh_interval(const Model *model)
{
	const double most = fmax(REFRESH_ROWS_PER_BIT * model->config.bits, MIN_REFRESH_ROWS);

	return fmin(most, model_memory(&model->config));
}

/* Products of the block's rows with other rows, from that column on. */
static void
multiply_block(const Model *model, Block *block, const float *rows, int count, int column)
{
	const int dims = model->config.dims;

	multiply_f(false, true, block->rows, count, dims, 1.0F, model->block, dims, rows, dims, 0.0F,
			   block->products + column, block->stride);
}

static void
learn(Model *model)
{
	const int bits = model->config.bits;
	Block	  block;

	/* until the basis is full, rows come one at a time */
	if (model->rank < bits)
	{
		grow(model, model->block, model->norms[0]);
		return;
	}
	if (model->inverse == NULL)
		model_refresh(model);
	block_alloc(&block, model);
	multiply_block(model, &block, model->basis, bits, 0);
	multiply_block(model, &block, model->block, block.rows, bits);
	for (int t = 0; t < block.rows; t++)
	{
		math_check_cancelled();
		step(model, &block, t);
	}
	/* a query that is cancelled in here would leave rows half learnt, and learn them again */
	math_hold_cancel();
	model_note_projections(model, block.y, block.rows);
	update_covariance(model, &block);
	update_basis(model, &block);
	model->waiting = 0;
	math_resume_cancel();
	if (block.skew > MAX_BLOCK_SKEW ||
		(double) (model->rows - model->refreshed_rows) >= refresh_interval(model))
		model_refresh(model);
	block_free(&block);
}

const Tracker tracker_opast = {
	.name = "opast",
	.learn = learn,
};

/*
 * tracker_opast.c
 *		OPAST: the principal subspace, followed row by row and computed block by block.
 *
 * src/math/README.md has the formulae.  The first rows build the basis: each adds its part
 * outside of it as a new direction.  Once it is full, blocks of rows turn it.
 */
#include <assert.h>
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

/* gains as large as this turn the basis all the way to the row, and are in the range of floats */
#define MAX_GAIN 1e30

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

	if (norm == 0.0)
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
	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j < bits; j++)
		{
			double *element = model->covariance + (size_t) i * bits + j;

			*element *= model->config.forgetting;
			if (i < rank && j < rank)
				*element += y[i] * y[j];
		}
	}
	math_free(components);
	math_free(y);
	if (rank == bits)
		model_refresh(model);
}

/* The block's arrays; all have a row for each row of the block. */
typedef struct Block
{
	int		rows;
	int		stride;	  /* of products: bits + rows */
	float  *products; /* W x, and the products with the block's rows */
	float  *v;		  /* what multiplies W in the update, single precision */
	double *v_exact;
	double *z; /* gains, one long */
	float  *z_single;
	double *y; /* W x at the row's turn */
	double *kappa;
	float  *shift; /* changes of the later rows' W x */
} Block;

static void
block_alloc(Block *block, int rows, int bits)
{
	const size_t size = (size_t) rows * (size_t) bits;

	block->rows = rows;
	block->stride = bits + rows;
	block->products = math_alloc((size_t) rows * (size_t) block->stride, sizeof(float));
	block->v = math_alloc(size, sizeof(float));
	block->v_exact = math_alloc(size, sizeof(double));
	block->z = math_alloc(size, sizeof(double));
	block->z_single = math_alloc((size_t) bits, sizeof(float));
	block->y = math_alloc(size, sizeof(double));
	block->kappa = math_alloc((size_t) rows, sizeof(double));
	block->shift = math_alloc((size_t) rows, sizeof(float));
}

static void
block_free(Block *block)
{
	math_free(block->products);
	math_free(block->v);
	math_free(block->v_exact);
	math_free(block->z);
	math_free(block->z_single);
	math_free(block->y);
	math_free(block->kappa);
	math_free(block->shift);
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

/*
 * z = Z y and products with it; false if the inverse Z is lost to rounding, as it may be when rows
 * are longer by many orders than those before.
 */
static bool
compute_gain(const Model *model, const double *y, double *z, Products *pair)
{
	const int bits = model->config.bits;

	multiply_vector_d(false, bits, bits, 1.0, model->inverse, y, 0.0, z);
	*pair = multiply_pair(y, z, bits);
	return pair->yz >= 0.0 && isfinite(pair->yz) && isfinite(pair->zz);
}

/*
 * One row's turn, in bits-sized arithmetic: the gain z, the inverse, and what the row
 * changes in the products of the rows after it.
 */
WIDE static void
step(Model *model, Block *block, int t)
{
	const int	 bits = model->config.bits;
	const double forgetting = model->config.forgetting;
	float		*products = block->products + (size_t) t * (size_t) block->stride;
	double		*y = block->y + (size_t) t * (size_t) bits;
	double		*z = block->z + (size_t) t * (size_t) bits;
	double		*v = block->v_exact + (size_t) t * (size_t) bits;
	float		*v_single = block->v + (size_t) t * (size_t) bits;
	const int	 later = block->rows - t - 1;
	Products	 pair;
	double		 gamma;
	double		 z_length;
	double		 residual;
	double		 gain;
	double		 reach;
	double		 root;
	double		 tau;

	for (int i = 0; i < bits; i++)
		y[i] = products[i];
	/* z is the formulae's times the forgetting factor, and gamma less by as much */
	if (!compute_gain(model, y, z, &pair))
	{
		model_invert(model);
		if (!compute_gain(model, y, z, &pair))
		{
			memset(z, 0, (size_t) bits * sizeof(double));
			pair.yz = pair.zz = 0.0;
		}
	}
	gamma = 1.0 / fmax(forgetting + pair.yz, DBL_MIN);
	add_outer_d(bits, bits, -gamma, z, z, model->inverse);
	if (forgetting != 1.0)
	{
		for (size_t i = 0; i < (size_t) bits * (size_t) bits; i++)
			model->inverse[i] /= forgetting;
	}

	z_length = sqrt(pair.zz);
	residual = model->norms[t] - pair.yy;
	/* nor does a row at right angles to the basis turn it */
	if (residual < MIN_SQUARED_RESIDUAL * model->norms[t] || !(z_length > 0.0))
		residual = 0.0;
	/* with z one long, and what z multiplies longer by as much, nothing overflows */
	gain = fmin(gamma * z_length, MAX_GAIN);
	reach = gain * sqrt(residual);
	root = sqrt(1.0 + reach * reach);
	tau = 1.0 / root - 1.0;
	block->kappa[t] = residual > 0.0 ? gain / root : 0.0;
	for (int i = 0; i < bits; i++)
	{
		z[i] = residual > 0.0 ? z[i] / z_length : 0.0;
		v[i] = tau * z[i] - block->kappa[t] * y[i];
		v_single[i] = (float) v[i];
		block->z_single[i] = (float) z[i];
	}
	if (later > 0)
	{
		float *next = products + block->stride;

		for (int u = 0; u < later; u++)
			block->shift[u] = (float) block->kappa[t] * products[bits + t + 1 + u];
		multiply_vector_f(false, later, bits, 1.0F, next, block->stride, v_single, 1.0F,
						  block->shift);
		add_outer_f(later, bits, 1.0F, block->shift, block->z_single, next, block->stride);
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
	double		*lower = math_alloc((size_t) rows * (size_t) rows, sizeof(double));
	float		*factor = block->products; /* no longer needed, and large enough */

	multiply_d(false, true, rows, rows, bits, -1.0, block->v_exact, block->z, 0.0, lower);
	solve_unit_lower_transposed(rows, bits, lower, block->z);
	for (size_t i = 0; i < size; i++)
		factor[i] = (float) block->z[i];
	for (int t = 0; t < rows; t++)
		scale_row(model->block + (size_t) t * (size_t) dims, dims, (float) block->kappa[t]);
	multiply_f(false, false, rows, dims, bits, 1.0F, block->v, bits, model->basis, dims, 1.0F,
			   model->block, dims);
	multiply_f(true, false, bits, dims, rows, 1.0F, factor, bits, model->block, dims, 1.0F,
			   model->basis, dims);
	math_free(lower);
}

static void
update_covariance(Model *model, Block *block)
{
	const int	 bits = model->config.bits;
	const double forgetting = model->config.forgetting;
	double		 weight = 1.0;

	/* the last row has weight one, each before it has been forgotten once more */
	for (int t = block->rows - 1; t >= 0 && forgetting != 1.0; t--)
	{
		for (int i = 0; i < bits; i++)
			block->y[(size_t) t * (size_t) bits + i] *= sqrt(weight);
		weight *= forgetting;
	}
	multiply_d(true, false, bits, bits, block->rows, 1.0, block->y, block->y, weight,
			   model->covariance);
}

/* Rows between two refreshes: few if rows are soon forgotten, since gains are then large. */
static double
refresh_interval(const Model *model)
{
	const double most = fmax(REFRESH_ROWS_PER_BIT * model->config.bits, MIN_REFRESH_ROWS);

	return fmin(most, model_memory(&model->config));
}

static void
learn(Model *model)
{
	Block block;

	/* until the basis is full, rows come one at a time */
	if (model->rank < model->config.bits)
	{
		assert(model->waiting == 1);
		grow(model, model->block, model->norms[0]);
		return;
	}
	block_alloc(&block, model->waiting, model->config.bits);
	/* the block follows W in memory: one product gives W x and the rows' own products */
	multiply_f(false, true, block.rows, block.stride, model->config.dims, 1.0F, model->block,
			   model->config.dims, model->basis, model->config.dims, 0.0F, block.products,
			   block.stride);
	for (int t = 0; t < block.rows; t++)
		step(model, &block, t);
	model_note_projections(model, block.y, block.rows);
	update_covariance(model, &block);
	update_basis(model, &block);
	block_free(&block);
	if ((double) (model->rows - model->refreshed_rows) >= refresh_interval(model))
		model_refresh(model);
}

const Tracker tracker_opast = {
	.name = "opast",
	.learn = learn,
};

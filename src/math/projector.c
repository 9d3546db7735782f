/*
 * projector.c
 *		The signs of R W (x - mean), for many vectors x.
 *
 * A code is the sign of each projection, and nearly every projection is so far from zero
 * that a coarse one tells: here with numbers of 16 bits, which is half the memory to read
 * and twice the multiplications in a register.  src/math/README.md has the bound on what is lost
 * by rounding.  Only where a coarse projection is within that of zero an exact one is made:
 * the codes are those of the exact projections, on every CPU.
 */
#include "projector.h"

#include <math.h>

#include "../wide.h"
#include "memory.h"
#include "rows.h"

/* the length of a vector of 16-bit numbers: no sum of products leaves 32 bits */
#define COARSE_LENGTH 32767.0

/* rows of numbers of 16 bits are padded with zeros to whole registers */
#define COARSE_PAD 16

/* projections made at a time, so that the vector's numbers are loaded once for them all */
#define GROUP 4

/* what rounding in the making of coarse numbers and of bounds may add */
#define SLACK 1.01

struct Projector
{
	const Model *model;
	float		*centred; /* for a tracker that projects in its own way; then all else is unset */
	int			 bits;
	int			 dims;
	int			 stride; /* of coarse rows */
	double		*mean;
	float		*projection; /* R W, bits x dims */
	int16_t		*coarse;	 /* the same, each row COARSE_LENGTH long; bits rounded up to GROUP */
	int16_t		*row;		 /* a vector, likewise */
	int32_t		*products;	 /* of row with each row of coarse */
	double		*bounds;	 /* how far each may be from the exact one */
};

/* The nearest integers to the differences times scale; those are at most COARSE_LENGTH. */
WIDE static void
make_coarse(const float *row, const double *mean, int dims, double scale, int16_t *coarse)
{
	/* a cast cuts towards zero: among positive numbers that is downwards */
	for (int k = 0; k < dims; k++)
		coarse[k] =
			(int16_t) ((int32_t) (scale * (row[k] - mean[k]) + (COARSE_LENGTH + 1.5)) - 32768);
}

/* Products with GROUP rows.  By Cauchy and Schwarz no partial sum leaves 32 bits. */
WIDE static void
multiply_group(const int16_t *rows, int stride, const int16_t *x, int32_t *products)
{
	const int16_t *a = rows;
	const int16_t *b = a + stride;
	const int16_t *c = b + stride;
	const int16_t *d = c + stride;
	int32_t		   sums[GROUP] = {0};

	for (int k = 0; k < stride; k++)
	{
		sums[0] += a[k] * x[k];
		sums[1] += b[k] * x[k];
		sums[2] += c[k] * x[k];
		sums[3] += d[k] * x[k];
	}
	for (int i = 0; i < GROUP; i++)
		products[i] = sums[i];
}

/* A row of the projection made coarse, and how far products with it may be off. */
static double
make_coarse_direction(const float *direction, const double *zeros, int dims, int16_t *coarse)
{
	const double scale = COARSE_LENGTH / sqrt(squared_length(direction, dims));
	double		 loss = 0.0;

	make_coarse(direction, zeros, dims, scale, coarse);
	for (int k = 0; k < dims; k++)
	{
		const double lost = scale * direction[k] - coarse[k];

		loss += lost * lost;
	}
	loss = sqrt(loss);
	return SLACK * (COARSE_LENGTH * loss + (COARSE_LENGTH + loss) * 0.5 * sqrt(dims));
}

Projector *
projector_create(const Model *model)
{
	const size_t dims = (size_t) model->config.dims;
	const size_t bits = (size_t) model->config.bits;
	const size_t stride = (dims + COARSE_PAD - 1) / COARSE_PAD * COARSE_PAD;
	const size_t rows = (bits + GROUP - 1) / GROUP * GROUP;
	double		*zeros = math_alloc(dims, sizeof(double));
	Projector	*projector = math_alloc(1, sizeof(Projector));

	projector->model = model;
	if (model->config.tracker->project != NULL)
	{
		projector->centred = math_alloc(dims, sizeof(float));
		math_free(zeros);
		return projector;
	}
	projector->bits = model->config.bits;
	projector->dims = model->config.dims;
	projector->stride = (int) stride;
	projector->mean = model->mean;
	projector->projection = math_alloc(bits * dims, sizeof(float));
	projector->coarse = math_alloc(rows * stride, sizeof(int16_t));
	projector->row = math_alloc(stride, sizeof(int16_t));
	projector->products = math_alloc(rows, sizeof(int32_t));
	projector->bounds = math_alloc(bits, sizeof(double));
	model_projection(model, projector->projection);
	for (size_t i = 0; i < bits; i++)
	{
		math_check_cancelled();
		projector->bounds[i] =
			make_coarse_direction(projector->projection + i * dims, zeros, model->config.dims,
								  projector->coarse + i * stride);
	}
	math_free(zeros);
	return projector;
}

void
projector_free(Projector *projector)
{
	if (projector->centred != NULL)
	{
		math_free(projector->centred);
		math_free(projector);
		return;
	}
	math_free(projector->projection);
	math_free(projector->coarse);
	math_free(projector->row);
	math_free(projector->products);
	math_free(projector->bounds);
	math_free(projector);
}

void
projector_signs(Projector *projector, const float *row, float *signs)
{
	const int dims = projector->dims;
	double	  length;

	if (projector->centred != NULL)
	{
		model_project(projector->model, row, projector->centred, signs);
		return;
	}
	length = sqrt(squared_distance(row, projector->mean, dims));
	/* the mean itself has all projections zero */
	make_coarse(row, projector->mean, dims, length > 0.0 ? COARSE_LENGTH / length : 0.0,
				projector->row);
	for (int i = 0; i < projector->bits; i += GROUP)
		multiply_group(projector->coarse + (size_t) i * (size_t) projector->stride,
					   projector->stride, projector->row, projector->products + i);
	for (int i = 0; i < projector->bits; i++)
	{
		signs[i] = (float) projector->products[i];
		if (fabs((double) projector->products[i]) <= projector->bounds[i])
			signs[i] = product_with_difference(projector->projection + (size_t) i * (size_t) dims,
											   row, projector->mean, dims) < 0.0
						   ? -1.0F
						   : 1.0F;
	}
}

/*
 * neighbours.c
 *		Turning the rotation so that the nearest vectors get the nearest codes.
 *
 * Among the last projected rows y the pairs that are near each other should have near codes,
 * nearer than other pairs.  With soft bits h = s(R y), s a smooth sign, let pair i, j have the
 * affinity e_ij = exp(b h_i h_j): a soft Hamming distance in the exponent.  R climbs
 *		sum over some i of log (sum of e_ij over near j / sum of e_ij over all j),
 * by small rotations.  src/math/README.md has the gradient, and the schedule by which the steps
 * end, so that codes last.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "../wide.h"
#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "rows.h"

/* steps each time R follows; rows whose neighbours each looks at */
#define STEPS 2
#define ANCHORS 128
#define MIN_ROWS (STEPS * ANCHORS) /* the fewest rows to start with */

/* a row's neighbours that count */
#define NEIGHBOURS 3

/* the angle of a step, at first; it falls to none when this many rows have come */
#define ANGLE 0.1
#define TURNING_ROWS 4096

/* codes of more bits take half the steps and rows; of still more, none: it would take long */
#define LONG_BITS 128
#define MAX_BITS 256

/* soft bits are s(p) = q / sqrt(1 + q^2), q = STEEPNESS p, where p has a variance near 1 */
#define STEEPNESS 1.0F

/* how much bringing projections nearer to their signs counts beside neighbours */
#define SIGN_SHARE 0.2

/* the affinity's exponent is b h_i h_j, b this over the square root of bits */
#define SHARPNESS 4.0F

/* powers of two that single precision has; and 1/log 2 */
#define MIN_EXPONENT (-126)
#define EXPONENT_BIAS 127
#define MANTISSA_BITS 23
#define LOG2_E 1.44269504F

/* numbers that are looked at side by side */
#define LANES 8

/* Keeps the last rows while R may still turn. */
void
neighbours_note(Model *model, const double *projected, int rows)
{
	const int bits = model->config.bits;

	if (model->rows < TURNING_ROWS && bits <= MAX_BITS)
		recent_keep(model, projected, rows,
					bits <= LONG_BITS ? NEIGHBOUR_ROWS : NEIGHBOUR_ROWS / 2);
}

/* The rows and what is computed of them; pairs are of an anchor and a row. */
typedef struct Batch
{
	int	   rows;
	int	   bits;
	int	   first;	 /* of the anchors, which are ANCHORS of the rows */
	float *y;		 /* rows x bits, with a mean square of 1 */
	float *squares;	 /* their squared lengths */
	float *near;	 /* anchors x rows: 1 for pairs that are near each other, else 0 */
	float *affinity; /* anchors x rows */
	float *soft;	 /* rows x bits, soft bits */
	float *slope;	 /* their derivatives */
	float *pull;	 /* rows x bits, the gradient by soft bits, and then by projections */
	float *rotation; /* bits x bits */
	float *gradient; /* bits x bits, by the rotation */
	float *signs;	 /* rows x bits, of the projections */
	float *product;	 /* bits x bits */
} Batch;

static void
batch_alloc(Batch *batch, int rows, int bits)
{
	const size_t size = (size_t) rows * (size_t) bits;

	batch->rows = rows;
	batch->bits = bits;
	batch->y = math_alloc(size, sizeof(float));
	batch->squares = math_alloc((size_t) rows, sizeof(float));
	batch->near = math_alloc((size_t) ANCHORS * (size_t) rows, sizeof(float));
	batch->affinity = math_alloc((size_t) ANCHORS * (size_t) rows, sizeof(float));
	batch->soft = math_alloc(size, sizeof(float));
	batch->slope = math_alloc(size, sizeof(float));
	batch->pull = math_alloc(size, sizeof(float));
	batch->rotation = math_alloc((size_t) bits * (size_t) bits, sizeof(float));
	batch->gradient = math_alloc((size_t) bits * (size_t) bits, sizeof(float));
	batch->signs = math_alloc(size, sizeof(float));
	batch->product = math_alloc((size_t) bits * (size_t) bits, sizeof(float));
}

static void
batch_free(Batch *batch)
{
	math_free(batch->y);
	math_free(batch->squares);
	math_free(batch->near);
	math_free(batch->affinity);
	math_free(batch->soft);
	math_free(batch->slope);
	math_free(batch->pull);
	math_free(batch->rotation);
	math_free(batch->gradient);
	math_free(batch->signs);
	math_free(batch->product);
}

/* Keeps the least of a number and those before it, in order. */
static inline void
keep_least(float *least, float number)
{
	for (int i = 0; i < NEIGHBOURS; i++)
	{
		const float farther = number > least[i] ? number : least[i];

		least[i] = number < least[i] ? number : least[i];
		number = farther;
	}
}

/*
 * The distance of a row's last neighbour of those that count; first among every LANES-th row, so
 * that the compiler can use wide registers.
 */
WIDE static float
distance_of_last(const float *distances, int rows)
{
	float least[NEIGHBOURS][LANES];
	float all[NEIGHBOURS];
	int	  j = 0;

	for (int i = 0; i < NEIGHBOURS; i++)
	{
		all[i] = INFINITY;
		for (int l = 0; l < LANES; l++)
			least[i][l] = INFINITY;
	}
	for (; j + LANES <= rows; j += LANES)
	{
		float numbers[LANES];

		for (int l = 0; l < LANES; l++)
			numbers[l] = distances[j + l];
		for (int i = 0; i < NEIGHBOURS; i++)
		{
			for (int l = 0; l < LANES; l++)
			{
				const float farther = numbers[l] > least[i][l] ? numbers[l] : least[i][l];

				least[i][l] = numbers[l] < least[i][l] ? numbers[l] : least[i][l];
				numbers[l] = farther;
			}
		}
	}
	for (; j < rows; j++)
		keep_least(all, distances[j]);
	for (int i = 0; i < NEIGHBOURS; i++)
	{
		for (int l = 0; l < LANES; l++)
			keep_least(all, least[i][l]);
	}
	return all[NEIGHBOURS - 1];
}

/* Products of the anchors with all rows, times a factor. */
static void
multiply_anchors(const Batch *batch, const float *matrix, float factor, float *products)
{
	multiply_f(false, true, ANCHORS, batch->rows, batch->bits, factor,
			   matrix + (size_t) batch->first * (size_t) batch->bits, batch->bits, matrix,
			   batch->bits, 0.0F, products, batch->rows);
}

/* Which pairs are near: nearer than an anchor's last neighbour that counts is on average. */
WIDE static void
find_near(Batch *batch)
{
	const int rows = batch->rows;
	double	  sum = 0.0;
	float	  threshold;

	multiply_anchors(batch, batch->y, -2.0F, batch->near);
	for (int i = 0; i < ANCHORS; i++)
	{
		float	   *distances = batch->near + (size_t) i * (size_t) rows;
		const float square = batch->squares[batch->first + i];

		for (int j = 0; j < rows; j++)
			distances[j] += square + batch->squares[j];
		/* a row is not its own neighbour */
		distances[batch->first + i] = INFINITY;
		sum += (double) distance_of_last(distances, rows);
	}
	threshold = (float) (sum / ANCHORS);
	for (size_t i = 0; i < (size_t) ANCHORS * (size_t) rows; i++)
		batch->near[i] = batch->near[i] <= threshold ? 1.0F : 0.0F;
}

WIDE static void
take_signs(const float *projected, float *signs, size_t size)
{
	for (size_t i = 0; i < size; i++)
		signs[i] = projected[i] >= 0.0F ? 1.0F : -1.0F;
}

WIDE static void
soften(float *soft, float *slope, size_t size)
{
	for (size_t i = 0; i < size; i++)
	{
		const float q = STEEPNESS * soft[i];
		const float inverse = 1.0F / sqrtf(1.0F + q * q);

		soft[i] = q * inverse;
		slope[i] = STEEPNESS * inverse * inverse * inverse;
	}
}

/*
 * e to the power of a number that is not above 0, to six digits.  The library's function is
 * called for one number at a time; this one is computed for as many as a register holds.
 */
static inline float
exponential(float x)
{
	const float	  power = x * LOG2_E;
	const int32_t whole = (int32_t) power;
	/* between -1 and 0, times log 2: its series converges fast */
	const float rest = (power - (float) whole) * (1.0F / LOG2_E);
	/* the limit is one of integers: compilers do not compare several floats at once */
	const int32_t least = whole > MIN_EXPONENT ? whole : MIN_EXPONENT;
	const int32_t exponent = (int32_t) ((uint32_t) (least + EXPONENT_BIAS) << MANTISSA_BITS);
	float		  scale;

	memcpy(&scale, &exponent, sizeof(scale));
	return scale *
		   (1.0F +
			rest * (1.0F +
					rest * (1.0F / 2.0F +
							rest * (1.0F / 6.0F +
									rest * (1.0F / 24.0F +
											rest * (1.0F / 120.0F + rest * (1.0F / 720.0F)))))));
}

/* The sum of products; by LANES, so that the compiler can use wide registers. */
WIDE static float
sum_products(const float *a, const float *b, int n)
{
	float sums[LANES] = {0.0F};
	float sum = 0.0F;
	int	  j = 0;

	for (; j + LANES <= n; j += LANES)
	{
		for (int l = 0; l < LANES; l++)
			sums[l] += a[j + l] * b[j + l];
	}
	for (; j < n; j++)
		sum += a[j] * b[j];
	for (int l = 0; l < LANES; l++)
		sum += sums[l];
	return sum;
}

/* Affinities; at most 1, since soft bits are below 1. */
WIDE static void
compute_affinities(Batch *batch)
{
	const int	 rows = batch->rows;
	const float	 sharpness = SHARPNESS / sqrtf((float) batch->bits);
	const float	 most = sharpness * (float) batch->bits;
	const size_t size = (size_t) ANCHORS * (size_t) rows;

	multiply_anchors(batch, batch->soft, sharpness, batch->affinity);
	for (size_t i = 0; i < size; i++)
		batch->affinity[i] = exponential(batch->affinity[i] - most);
	for (int i = 0; i < ANCHORS; i++)
		batch->affinity[(size_t) i * (size_t) rows + (size_t) (batch->first + i)] = 0.0F;
}

/*
 * Affinities become what each pair pulls: e_ij (n_ij / s_i - 1 / t_i) with n the near pairs,
 * s and t the sums of affinities over near and over all.  Anchors without a near row do not
 * count.
 */
WIDE static void
compute_pulls(Batch *batch)
{
	const int rows = batch->rows;
	float	 *ones = math_alloc((size_t) rows, sizeof(float));

	for (int j = 0; j < rows; j++)
		ones[j] = 1.0F;
	for (int i = 0; i < ANCHORS; i++)
	{
		float		*affinity = batch->affinity + (size_t) i * (size_t) rows;
		const float *is_near = batch->near + (size_t) i * (size_t) rows;
		const float	 sum_near = sum_products(affinity, is_near, rows);
		const float	 near = sum_near > FLT_MIN ? 1.0F / sum_near : 0.0F;
		const float	 all = sum_near > FLT_MIN ? 1.0F / sum_products(affinity, ones, rows) : 0.0F;

		for (int j = 0; j < rows; j++)
			affinity[j] *= is_near[j] * near - all;
	}
	math_free(ones);
}

/* The gradient of the objective by R, bits x bits. */
static void
compute_gradient(Batch *batch)
{
	const int	 rows = batch->rows;
	const int	 bits = batch->bits;
	const size_t size = (size_t) rows * (size_t) bits;
	const size_t first = (size_t) batch->first * (size_t) bits;

	multiply_f(false, true, rows, bits, bits, 1.0F, batch->y, bits, batch->rotation, bits, 0.0F,
			   batch->soft, bits);
	take_signs(batch->soft, batch->signs, size);
	soften(batch->soft, batch->slope, size);
	compute_affinities(batch);
	compute_pulls(batch);
	/* anchors pull rows, and rows anchors */
	multiply_f(true, false, rows, bits, ANCHORS, 1.0F, batch->affinity, rows, batch->soft + first,
			   bits, 0.0F, batch->pull, bits);
	multiply_f(false, false, ANCHORS, bits, rows, 1.0F, batch->affinity, rows, batch->soft, bits,
			   1.0F, batch->pull + first, bits);
	for (size_t i = 0; i < size; i++)
		batch->pull[i] *= batch->slope[i];
	multiply_f(true, false, bits, bits, rows, 1.0F, batch->pull, bits, batch->y, bits, 0.0F,
			   batch->gradient, bits);
}

/* Adds a small rotation along the gradient, the antisymmetric part of G R', of that angle. */
static void
add_direction(Batch *batch, double angle, double *change)
{
	const int bits = batch->bits;
	double	  squares = 0.0;
	double	  factor;

	multiply_f(false, true, bits, bits, bits, 1.0F, batch->gradient, bits, batch->rotation, bits,
			   0.0F, batch->product, bits);
	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j < i; j++)
		{
			const size_t lower = (size_t) i * (size_t) bits + (size_t) j;
			const size_t upper = (size_t) j * (size_t) bits + (size_t) i;

			batch->product[lower] -= batch->product[upper];
			squares += 2.0 * batch->product[lower] * batch->product[lower];
		}
	}
	factor = squares > 0.0 && isfinite(squares) ? angle / sqrt(squares / bits) : 0.0;
	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j < i; j++)
		{
			const size_t lower = (size_t) i * (size_t) bits + (size_t) j;
			const size_t upper = (size_t) j * (size_t) bits + (size_t) i;

			change[lower] += factor * batch->product[lower];
			change[upper] -= factor * batch->product[lower];
		}
	}
}

/* R climbs one step of that angle. */
static void
climb(const Model *model, double *rotation, Batch *batch, double angle, bool balanced)
{
	const int	 bits = batch->bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*change = math_alloc(size, sizeof(double));
	double		*correction = math_alloc(size, sizeof(double));
	double		 step;
	double		 share;

	copy_single(rotation, batch->rotation, size);
	find_near(batch);
	compute_gradient(batch);
	add_direction(batch, 1.0 - SIGN_SHARE, change);
	if (balanced)
		diagonal_keep(model, rotation, change, correction);
	else
	{
		/* where variances are uniform there may be nothing to gain by it, only rounding */
		multiply_f(true, false, bits, bits, batch->rows, 1.0F, batch->signs, bits, batch->y, bits,
				   0.0F, batch->gradient, bits);
		add_direction(batch, SIGN_SHARE, change);
	}
	step = rotation_factor(change, bits, angle, false);
	share = rotation_factor(correction, bits, angle, true);
	for (size_t i = 0; i < size; i++)
		change[i] = step * change[i] + share * correction[i];
	rotation_apply(rotation, change, bits);
	math_free(change);
	math_free(correction);
}

/*
 * Turns R by a few steps, until it has settled; the anchors are the last rows, others in each
 * step.  Balanced, the diagonal of R C R' stays uniform.
 */
void
neighbours_turn(Model *model, double *rotation, bool balanced)
{
	const double angle = ANGLE * (1.0 - (double) model->rows / TURNING_ROWS);
	const int	 steps = model->config.bits <= LONG_BITS ? STEPS : STEPS / 2;
	Batch		 batch;

	if (angle <= 0.0)
		recent_forget(model);
	if (angle <= 0.0 || model->recent_rows < MIN_ROWS || model->config.bits < 2)
		return;
	batch_alloc(&batch, model->recent_rows, model->config.bits);
	if (recent_read(model, batch.y))
	{
		for (int t = 0; t < batch.rows; t++)
			batch.squares[t] =
				(float) squared_length(batch.y + (size_t) t * (size_t) batch.bits, batch.bits);
		for (int step = 0; step < steps; step++)
		{
			batch.first = batch.rows - (step + 1) * ANCHORS;
			climb(model, rotation, &batch, angle, balanced);
		}
	}
	batch_free(&batch);
}

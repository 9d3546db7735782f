/*
 * neighbours.c
 *		Turning the rotation so that the nearest vectors get the nearest codes.
 *
 * Among the last projected rows y the pairs that are near each other should have near codes,
 * nearer than other pairs.  With soft bits h = s(R y), s a smooth sign, let pair i, j have the
 * affinity e_ij = exp(h_i h_j / 2): a soft Hamming distance in the exponent.  R climbs
 *		sum over i of log (sum of e_ij over near j / sum of e_ij over all j),
 * by small rotations.  src/README.md has the gradient, and the schedule by which the steps
 * end, so that codes last.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "../wide.h"
#include "linalg.h"
#include "memory.h"
#include "model.h"

/* the fewest rows that R turns by, and the steps each time it follows */
#define MIN_ROWS 32
#define STEPS 2

/* steps after these that only balance, and the largest angle of one */
#define CORRECTIONS 2
#define MAX_CORRECTION 0.3

/* codes of more bits need it less, and it would take long */
#define MAX_BITS 256

/* soft bits are s(p) = q / sqrt(1 + q^2), q = STEEPNESS p, where p has a variance near 1 */
#define STEEPNESS 2.0F

/* numbers that are looked at side by side */
#define LANES 8

/* what is added to the weights of a graph, as a share of their mean, before it is inverted */
#define RIDGE 1e-9

/* Keeps the last rows, in the order they came, while R may still turn. */
void
neighbours_note(Model *model, const double *projected, int rows, Schedule schedule)
{
	const int	  bits = model->config.bits;
	const int	  fresh = rows < NEIGHBOUR_ROWS ? rows : NEIGHBOUR_ROWS;
	const int	  room = NEIGHBOUR_ROWS - fresh;
	const int	  kept = model->recent_rows < room ? model->recent_rows : room;
	const double *source = projected + (size_t) (rows - fresh) * (size_t) bits;
	const float	 *oldest = model->recent + (size_t) (model->recent_rows - kept) * (size_t) bits;
	float		 *target = model->recent + (size_t) kept * (size_t) bits;

	if (model->rows >= schedule.rows || bits > MAX_BITS)
	{
		model->recent_rows = 0;
		return;
	}
	memmove(model->recent, oldest, (size_t) kept * (size_t) bits * sizeof(float));
	for (size_t i = 0; i < (size_t) fresh * (size_t) bits; i++)
		target[i] = (float) source[i];
	model->recent_rows = kept + fresh;
}

/* The rows and what is computed of them. */
typedef struct Batch
{
	int	   rows;
	int	   bits;
	float *y;		 /* rows x bits, with a mean square of 1 */
	float *near;	 /* rows x rows: 1 for pairs that are near each other, else 0 */
	float *affinity; /* rows x rows */
	float *soft;	 /* rows x bits, soft bits */
	float *slope;	 /* their derivatives */
	float *pull;	 /* rows x bits, the gradient by soft bits, and then by projections */
	float *rotation; /* bits x bits */
	float *gradient; /* bits x bits, by the rotation */
} Batch;

static void
batch_alloc(Batch *batch, int rows, int bits)
{
	const size_t size = (size_t) rows * (size_t) bits;

	batch->rows = rows;
	batch->bits = bits;
	batch->y = math_alloc(size, sizeof(float));
	batch->near = math_alloc((size_t) rows * (size_t) rows, sizeof(float));
	batch->affinity = math_alloc((size_t) rows * (size_t) rows, sizeof(float));
	batch->soft = math_alloc(size, sizeof(float));
	batch->slope = math_alloc(size, sizeof(float));
	batch->pull = math_alloc(size, sizeof(float));
	batch->rotation = math_alloc((size_t) bits * (size_t) bits, sizeof(float));
	batch->gradient = math_alloc((size_t) bits * (size_t) bits, sizeof(float));
}

static void
batch_free(Batch *batch)
{
	math_free(batch->y);
	math_free(batch->near);
	math_free(batch->affinity);
	math_free(batch->soft);
	math_free(batch->slope);
	math_free(batch->pull);
	math_free(batch->rotation);
	math_free(batch->gradient);
}

/* Keeps the least two of three numbers. */
static inline void
keep_least(float *first, float *second, float number)
{
	const float farther = number > *first ? number : *first;

	*first = number < *first ? number : *first;
	*second = farther < *second ? farther : *second;
}

/*
 * A row's second least distance; first among every LANES-th, so that the compiler can use wide
 * registers.
 */
WIDE static float
second_least(const float *distances, int rows)
{
	float first[LANES];
	float second[LANES];
	int	  j = 0;

	for (int l = 0; l < LANES; l++)
		first[l] = second[l] = INFINITY;
	for (; j + LANES <= rows; j += LANES)
	{
		for (int l = 0; l < LANES; l++)
			keep_least(&first[l], &second[l], distances[j + l]);
	}
	for (; j < rows; j++)
		keep_least(&first[0], &second[0], distances[j]);
	for (int l = 1; l < LANES; l++)
	{
		keep_least(&first[0], &second[0], first[l]);
		keep_least(&first[0], &second[0], second[l]);
	}
	return second[0];
}

/* Which pairs are near: nearer than a row's second neighbour is on average. */
WIDE static void
find_near(Batch *batch)
{
	const int rows = batch->rows;
	float	 *squares = math_alloc((size_t) rows, sizeof(float));
	double	  threshold = 0.0;

	multiply_f(false, true, rows, rows, batch->bits, -2.0F, batch->y, batch->bits, batch->y,
			   batch->bits, 0.0F, batch->near, rows);
	for (int i = 0; i < rows; i++)
		squares[i] = -0.5F * batch->near[(size_t) i * (size_t) rows + i];
	for (int i = 0; i < rows; i++)
	{
		float *distances = batch->near + (size_t) i * (size_t) rows;

		for (int j = 0; j < rows; j++)
			distances[j] += squares[i] + squares[j];
		/* a row is not its own neighbour */
		distances[i] = INFINITY;
		threshold += (double) second_least(distances, rows) / rows;
	}
	for (size_t i = 0; i < (size_t) rows * (size_t) rows; i++)
		batch->near[i] = batch->near[i] <= (float) threshold ? 1.0F : 0.0F;
	math_free(squares);
}

/* The model's last rows, measured so that their mean square is 1; false if they are zero. */
static bool
read_rows(Batch *batch, const Model *model)
{
	const size_t size = (size_t) batch->rows * (size_t) batch->bits;
	double		 squares = 0.0;
	double		 scale;

	for (size_t i = 0; i < size; i++)
		squares += (double) model->recent[i] * model->recent[i];
	scale = sqrt((double) size / squares);
	if (!(squares > 0.0) || !isfinite(scale))
		return false;
	for (size_t i = 0; i < size; i++)
		batch->y[i] = (float) (model->recent[i] * scale);
	find_near(batch);
	return true;
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

/* Affinities, which are symmetric; less than 1, since soft bits are below 1. */
static void
compute_affinities(Batch *batch)
{
	const int	rows = batch->rows;
	const float most = 0.5F * (float) batch->bits;

	multiply_f(false, true, rows, rows, batch->bits, 0.5F, batch->soft, batch->bits, batch->soft,
			   batch->bits, 0.0F, batch->affinity, rows);
	for (int i = 0; i < rows; i++)
	{
		for (int j = 0; j < i; j++)
		{
			const float e = expf(batch->affinity[(size_t) i * (size_t) rows + j] - most);

			batch->affinity[(size_t) i * (size_t) rows + j] = e;
			batch->affinity[(size_t) j * (size_t) rows + i] = e;
		}
		batch->affinity[(size_t) i * (size_t) rows + i] = 0.0F;
	}
}

/*
 * Affinities become what each pair pulls: e_ij (n_ij (1/s_i + 1/s_j) - (1/t_i + 1/t_j)) with n
 * the near pairs, s and t the sums of affinities over near and over all.  Rows without a near
 * one do not count.
 */
WIDE static void
compute_pulls(Batch *batch)
{
	const int rows = batch->rows;
	float	 *near = math_alloc((size_t) rows, sizeof(float));
	float	 *all = math_alloc((size_t) rows, sizeof(float));

	for (int i = 0; i < rows; i++)
	{
		const float *affinity = batch->affinity + (size_t) i * (size_t) rows;
		const float *is_near = batch->near + (size_t) i * (size_t) rows;
		double		 sum_near = 0.0;
		double		 sum = 0.0;

		for (int j = 0; j < rows; j++)
		{
			sum_near += affinity[j] * is_near[j];
			sum += affinity[j];
		}
		near[i] = sum_near > FLT_MIN ? (float) (1.0 / sum_near) : 0.0F;
		all[i] = sum_near > FLT_MIN ? (float) (1.0 / sum) : 0.0F;
	}
	for (int i = 0; i < rows; i++)
	{
		float		*affinity = batch->affinity + (size_t) i * (size_t) rows;
		const float *is_near = batch->near + (size_t) i * (size_t) rows;

		for (int j = 0; j < rows; j++)
			affinity[j] *= is_near[j] * (near[i] + near[j]) - (all[i] + all[j]);
	}
	math_free(near);
	math_free(all);
}

/* The gradient of the objective by R, bits x bits. */
static void
compute_gradient(Batch *batch)
{
	const int	 rows = batch->rows;
	const int	 bits = batch->bits;
	const size_t size = (size_t) rows * (size_t) bits;

	multiply_f(false, true, rows, bits, bits, 1.0F, batch->y, bits, batch->rotation, bits, 0.0F,
			   batch->soft, bits);
	soften(batch->soft, batch->slope, size);
	compute_affinities(batch);
	compute_pulls(batch);
	multiply_f(false, false, rows, bits, rows, 1.0F, batch->affinity, rows, batch->soft, bits, 0.0F,
			   batch->pull, bits);
	for (size_t i = 0; i < size; i++)
		batch->pull[i] *= batch->slope[i];
	multiply_f(true, false, bits, bits, rows, 1.0F, batch->pull, bits, batch->y, bits, 0.0F,
			   batch->gradient, bits);
}

/* Adds (m_i - m_j) T_ij, m the solution of the graph's equations for the flow, to change. */
static void
add_flow(const double *inverse, const double *rotated, const double *flow, int bits, double *change)
{
	double *level = math_alloc((size_t) bits, sizeof(double));

	multiply_vector_d(false, bits, bits, 1.0, inverse, flow, 0.0, level);
	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j < bits; j++)
			change[(size_t) i * (size_t) bits + j] +=
				(level[i] - level[j]) * rotated[(size_t) i * (size_t) bits + j];
	}
	math_free(level);
}

/*
 * A small rotation I + A, A antisymmetric, changes the diagonal of T = R C R' by
 * 2 sum over j of A_ij T_ij.  Takes out of the change what would change the diagonal, and makes a
 * correction that would make it uniform; both are nearest, and of the form (m_i - m_j) T_ij,
 * where m solves the equations of a graph with the weights T_ij^2.
 */
static void
keep_diagonal(const Model *model, double *change, double *correction)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*product = math_alloc(size, sizeof(double));
	double		*rotated = math_alloc(size, sizeof(double));
	double		*graph = math_alloc(size, sizeof(double));
	double		*flow = math_alloc((size_t) bits, sizeof(double));
	double		*lack = math_alloc((size_t) bits, sizeof(double));
	double		 mean = 0.0;
	double		 total = 0.0;

	multiply_d(false, false, bits, bits, bits, 1.0, model->rotation, model->covariance, 0.0,
			   product);
	multiply_d(false, true, bits, bits, bits, 1.0, product, model->rotation, 0.0, rotated);
	for (int i = 0; i < bits; i++)
		mean += rotated[(size_t) i * (size_t) bits + i] / bits;
	for (int i = 0; i < bits; i++)
	{
		lack[i] = (mean - rotated[(size_t) i * (size_t) bits + i]) / 2.0;
		for (int j = 0; j < bits; j++)
		{
			const double t = rotated[(size_t) i * (size_t) bits + j];

			if (i == j)
				continue;
			graph[(size_t) i * (size_t) bits + i] += t * t;
			graph[(size_t) i * (size_t) bits + j] = -t * t;
			flow[i] -= change[(size_t) i * (size_t) bits + j] * t;
			total += t * t;
		}
	}
	/* levels are determined but for a constant; the ridge chooses one */
	for (int i = 0; i < bits; i++)
		graph[(size_t) i * (size_t) bits + i] += RIDGE * total / bits;
	if (total > 0.0 && positive_inverse(bits, graph))
	{
		add_flow(graph, rotated, flow, bits, change);
		add_flow(graph, rotated, lack, bits, correction);
	}
	math_free(product);
	math_free(rotated);
	math_free(graph);
	math_free(flow);
	math_free(lack);
}

/* The factor that makes a small rotation one of that angle, in radians, or of that at most. */
static double
factor_for(const double *change, int bits, double angle, bool at_most)
{
	const double length = sqrt(dot_d(bits * bits, change, change) / bits);

	if (!(length > 0.0) || !isfinite(length))
		return 0.0;
	return at_most && length < angle ? 1.0 : angle / length;
}

/* R <- (I + A) R, made orthogonal again. */
static void
apply_change(Model *model, const double *change)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*product = math_alloc(size, sizeof(double));

	multiply_d(false, false, bits, bits, bits, 1.0, change, model->rotation, 0.0, product);
	for (size_t i = 0; i < size; i++)
		model->rotation[i] += product[i];
	restore_orthogonal(bits, model->rotation);
	math_free(product);
}

/*
 * Makes the diagonal of R C R' nearly uniform by the smallest rotation that does, to first order.
 * Unlike Givens rotations it depends on nothing discrete, such as which bit varies most.
 */
void
neighbours_balance(Model *model)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*change = math_alloc(size, sizeof(double));
	double		*correction = math_alloc(size, sizeof(double));
	double		 share;

	keep_diagonal(model, change, correction);
	share = factor_for(correction, bits, MAX_CORRECTION, true);
	for (size_t i = 0; i < size; i++)
		correction[i] *= share;
	apply_change(model, correction);
	math_free(change);
	math_free(correction);
}

/* R climbs one step of that angle. */
static void
climb(Model *model, Batch *batch, double angle, bool balanced)
{
	const int	 bits = batch->bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*product = math_alloc(size, sizeof(double));
	double		*change = math_alloc(size, sizeof(double));
	double		*correction = math_alloc(size, sizeof(double));
	double		 step;
	double		 share;

	for (size_t i = 0; i < size; i++)
		batch->rotation[i] = (float) model->rotation[i];
	compute_gradient(batch);
	for (size_t i = 0; i < size; i++)
		change[i] = batch->gradient[i];
	/* as a small rotation of R: the antisymmetric part of G R' */
	multiply_d(false, true, bits, bits, bits, 1.0, change, model->rotation, 0.0, product);
	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j < bits; j++)
			change[(size_t) i * (size_t) bits + j] =
				product[(size_t) i * (size_t) bits + j] - product[(size_t) j * (size_t) bits + i];
	}
	if (balanced)
		keep_diagonal(model, change, correction);
	step = factor_for(change, bits, angle, false);
	share = factor_for(correction, bits, angle, true);
	for (size_t i = 0; i < size; i++)
		change[i] = step * change[i] + share * correction[i];
	apply_change(model, change);
	math_free(product);
	math_free(change);
	math_free(correction);
}

/*
 * Turns R by a few steps, unless it has settled.  Balanced, the diagonal of R C R' stays
 * uniform.
 */
void
neighbours_turn(Model *model, Schedule schedule, bool balanced)
{
	const double angle = schedule.angle * (1.0 - (double) model->rows / schedule.rows);
	Batch		 batch;

	if (angle <= 0.0 || model->recent_rows < MIN_ROWS || model->config.bits < 2)
		return;
	batch_alloc(&batch, model->recent_rows, model->config.bits);
	if (read_rows(&batch, model))
	{
		for (int step = 0; step < STEPS; step++)
			climb(model, &batch, angle, balanced);
		for (int step = 0; step < CORRECTIONS && balanced; step++)
			neighbours_balance(model);
	}
	batch_free(&batch);
}

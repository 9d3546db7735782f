/*
 * diagonal.c
 *		Small rotations, and what they do to the diagonal of R C R', C the covariance.
 *
 * src/math/README.md derives them; unlike Givens rotations they turn all bits a little.
 */
#include <math.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"

/* what is added to the weights of a graph, as a share of their mean, before it is inverted */
#define RIDGE 1e-9

/* the largest angle by which balancing turns at once */
#define MAX_CORRECTION 0.3

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
void
diagonal_keep(const Model *model, const double *rotation, double *change, double *correction)
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

	multiply_d(false, false, bits, bits, bits, 1.0, rotation, model->covariance, 0.0, product);
	multiply_d(false, true, bits, bits, bits, 1.0, product, rotation, 0.0, rotated);
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
double
rotation_factor(const double *change, int bits, double angle, bool at_most)
{
	const double length = sqrt(dot_d(bits * bits, change, change) / bits);

	if (!(length > 0.0) || !isfinite(length))
		return 0.0;
	return at_most && length < angle ? 1.0 : angle / length;
}

/* R <- (I + A + A^2/2) R, orthogonal to the third power of A, and made orthogonal. */
void
rotation_apply(double *rotation, const double *change, int bits)
{
	const size_t size = (size_t) bits * (size_t) bits;
	double		*product = math_alloc(size, sizeof(double));

	multiply_d(false, false, bits, bits, bits, 1.0, change, rotation, 0.0, product);
	for (size_t i = 0; i < size; i++)
		rotation[i] += product[i];
	multiply_d(false, false, bits, bits, bits, 0.5, change, product, 1.0, rotation);
	restore_orthogonal(bits, rotation);
	math_free(product);
}

/*
 * Makes the diagonal of R C R' nearly uniform by the smallest rotation that does, to first order.
 * Unlike Givens rotations it depends on nothing discrete, such as which bit varies most.
 */
void
diagonal_balance(const Model *model, double *rotation)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*change = math_alloc(size, sizeof(double));
	double		*correction = math_alloc(size, sizeof(double));
	double		 share;

	diagonal_keep(model, rotation, change, correction);
	share = rotation_factor(correction, bits, MAX_CORRECTION, true);
	for (size_t i = 0; i < size; i++)
		correction[i] *= share;
	rotation_apply(rotation, correction, bits);
	math_free(change);
	math_free(correction);
}

/*
 * directions.c
 *		Weighted directions, stacked, and the principal ones among them.
 *
 * All is computed in double precision, since directions of little variance are differences
 * of large ones.
 */
#include "directions.h"

#include <math.h>
#include <string.h>

#include "linalg.h"
#include "memory.h"

/* directions with less than this share of the largest variance are rounding */
#define MIN_VARIANCE 1e-10

/* columns that are converted to double precision at a time */
#define CHUNK 256

Stack
stack_create(int dims, int count)
{
	Stack stack = {.dims = dims, .count = count};

	stack.rows = math_alloc((size_t) count, sizeof(float *));
	stack.factor = math_alloc((size_t) count * (size_t) count, sizeof(double));
	return stack;
}

void
stack_free(Stack *stack)
{
	math_free(stack->rows);
	math_free(stack->factor);
}

/* What stands in for eigenvectors that were not found: the basis, as if nothing was correlated. */
static void
set_diagonal(const Model *model, double *vectors, double *values)
{
	const size_t rank = (size_t) model->rank;

	memset(vectors, 0, rank * rank * sizeof(double));
	for (size_t i = 0; i < rank; i++)
	{
		vectors[i * (rank + 1)] = 1.0;
		values[i] = model->covariance[i * ((size_t) model->config.bits + 1)];
	}
}

int
stack_add_model(Stack *stack, int offset, const Model *model, double weight)
{
	const int rank = model->rank;
	const int bits = model->config.bits;
	double	 *vectors = math_alloc((size_t) rank * (size_t) rank + 1, sizeof(double));
	double	 *values = math_alloc((size_t) rank + 1, sizeof(double));

	for (int i = 0; i < rank; i++)
		memcpy(vectors + (size_t) i * (size_t) rank, model->covariance + (size_t) i * (size_t) bits,
			   (size_t) rank * sizeof(double));
	if (rank > 0 && !symmetric_eigen(rank, vectors, values))
		set_diagonal(model, vectors, values);
	/* the square root of the covariance */
	for (int i = 0; i < rank; i++)
	{
		const double root = sqrt(weight * fmax(values[i], 0.0));
		double		*row = stack->factor + (size_t) (offset + i) * (size_t) stack->count + offset;

		stack->rows[offset + i] = model->basis + (size_t) i * (size_t) stack->dims;
		for (int j = 0; j < rank; j++)
			row[j] = root * vectors[(size_t) i * (size_t) rank + j];
	}
	math_free(vectors);
	math_free(values);
	return offset + rank;
}

int
stack_add_row(Stack *stack, int offset, const float *row, double length)
{
	stack->rows[offset] = row;
	stack->factor[(size_t) offset * (size_t) stack->count + offset] = length;
	return offset + 1;
}

/* Columns first..first+width-1 of all directions. */
static void
read_chunk(const Stack *stack, int first, int width, double *chunk)
{
	for (int i = 0; i < stack->count; i++)
	{
		for (int k = 0; k < width; k++)
			chunk[(size_t) i * (size_t) width + k] = stack->rows[i][first + k];
	}
}

/* The products of the directions with each other. */
static double *
compute_gram(const Stack *stack)
{
	double *gram = math_alloc((size_t) stack->count * (size_t) stack->count, sizeof(double));
	double *chunk = math_alloc((size_t) stack->count * CHUNK, sizeof(double));

	for (int first = 0; first < stack->dims; first += CHUNK)
	{
		const int width = stack->dims - first < CHUNK ? stack->dims - first : CHUNK;

		read_chunk(stack, first, width, chunk);
		multiply_d(false, true, stack->count, stack->count, width, 1.0, chunk, chunk, 1.0, gram);
	}
	math_free(chunk);
	return gram;
}

/*
 * The principal directions as combinations of the stacked ones, rank x count, and their
 * variances, which lose that of the first one left out if the model's tracker shrinks.
 * Returns the rank, or -1 if they cannot be found.
 */
static int
principal_combinations(const Stack *stack, const Model *model, const double *gram,
					   double *combinations, double *variances)
{
	const int	 bits = model->config.bits;
	const int	 count = stack->count;
	const size_t size = (size_t) count * (size_t) count;
	double		*product = math_alloc(size, sizeof(double));
	double		*vectors = math_alloc(size, sizeof(double));
	double		*values = math_alloc((size_t) count, sizeof(double));
	double		 lost;
	int			 rank = 0;

	multiply_d(false, false, count, count, count, 1.0, stack->factor, gram, 0.0, product);
	multiply_d(false, true, count, count, count, 1.0, product, stack->factor, 0.0, vectors);
	if (!symmetric_eigen(count, vectors, values))
		rank = -1;
	multiply_d(false, false, count, count, count, 1.0, vectors, stack->factor, 0.0, product);
	lost =
		model->config.tracker->shrinks && count > bits ? fmax(values[count - 1 - bits], 0.0) : 0.0;
	while (rank >= 0 && rank < bits && rank < count &&
		   values[count - 1 - rank] > MIN_VARIANCE * values[count - 1])
	{
		const int i = count - 1 - rank;

		variances[rank] = values[i] - lost;
		for (int j = 0; j < count; j++)
			combinations[(size_t) rank * (size_t) count + j] =
				product[(size_t) i * (size_t) count + j] / sqrt(values[i]);
		rank++;
	}
	math_free(product);
	math_free(vectors);
	math_free(values);
	return rank;
}

/*
 * Turns the principal directions within their subspace as near as possible to the wanted
 * ones.  The covariance, diagonal before, is turned with them.
 */
static void
align(const Stack *stack, const double *gram, const int *wanted, int rank, double *combinations,
	  const double *variances, double *covariance)
{
	const int	 count = stack->count;
	const size_t size = (size_t) rank * (size_t) count;
	double		*product = math_alloc(size, sizeof(double));
	double		*nearest = math_alloc((size_t) rank * (size_t) rank, sizeof(double));
	double		*scaled = math_alloc((size_t) rank * (size_t) rank, sizeof(double));

	multiply_d(false, false, rank, count, count, 1.0, combinations, gram, 0.0, product);
	for (int i = 0; i < rank; i++)
	{
		const int	 direction = wanted[i] < 0 ? -1 - wanted[i] : wanted[i];
		const double sign = wanted[i] < 0 ? -1.0 : 1.0;

		for (int j = 0; j < rank; j++)
			nearest[(size_t) i * (size_t) rank + j] =
				sign * product[(size_t) j * (size_t) count + direction];
	}
	if (nearest_orthogonal(rank, nearest))
	{
		multiply_d(false, false, rank, count, rank, 1.0, nearest, combinations, 0.0, product);
		memcpy(combinations, product, size * sizeof(double));
	}
	else
	{
		for (int i = 0; i < rank; i++)
		{
			for (int j = 0; j < rank; j++)
				nearest[(size_t) i * (size_t) rank + j] = i == j;
		}
	}
	for (int i = 0; i < rank; i++)
	{
		for (int j = 0; j < rank; j++)
			scaled[(size_t) i * (size_t) rank + j] =
				nearest[(size_t) i * (size_t) rank + j] * variances[j];
	}
	multiply_d(false, true, rank, rank, rank, 1.0, scaled, nearest, 0.0, covariance);
	math_free(product);
	math_free(nearest);
	math_free(scaled);
}

/* The combinations of the directions, as a basis. */
static float *
combine_directions(const Stack *stack, int rank, const double *combinations)
{
	const int dims = stack->dims;
	double	 *chunk = math_alloc((size_t) stack->count * CHUNK, sizeof(double));
	double	 *combined = math_alloc((size_t) rank * CHUNK, sizeof(double));
	float	 *basis = math_alloc((size_t) rank * (size_t) dims, sizeof(float));

	for (int first = 0; first < dims; first += CHUNK)
	{
		const int width = dims - first < CHUNK ? dims - first : CHUNK;

		read_chunk(stack, first, width, chunk);
		multiply_d(false, false, rank, width, stack->count, 1.0, combinations, chunk, 0.0,
				   combined);
		for (int i = 0; i < rank; i++)
		{
			for (int k = 0; k < width; k++)
				basis[(size_t) i * (size_t) dims + first + k] =
					(float) combined[(size_t) i * (size_t) width + k];
		}
	}
	math_free(chunk);
	math_free(combined);
	return basis;
}

void
stack_principal(const Stack *stack, const int *nearest, Model *model)
{
	const int bits = model->config.bits;
	double	 *combinations = math_alloc((size_t) bits * (size_t) stack->count, sizeof(double));
	double	 *variances = math_alloc((size_t) bits, sizeof(double));
	double	 *covariance = math_alloc((size_t) bits * (size_t) bits, sizeof(double));
	double	 *gram = compute_gram(stack);
	const int rank = principal_combinations(stack, model, gram, combinations, variances);

	if (rank > 0)
		align(stack, gram, nearest, rank, combinations, variances, covariance);
	if (rank >= 0)
	{
		/* some of the directions are the basis itself: it changes last */
		float *basis = combine_directions(stack, rank, combinations);

		memcpy(model->basis, basis, (size_t) rank * (size_t) stack->dims * sizeof(float));
		memset(model->covariance, 0, (size_t) bits * (size_t) bits * sizeof(double));
		for (int i = 0; i < rank; i++)
			memcpy(model->covariance + (size_t) i * (size_t) bits,
				   covariance + (size_t) i * (size_t) rank, (size_t) rank * sizeof(double));
		model->rank = rank;
		model->complete = rank == bits;
		math_free(basis);
	}
	math_free(gram);
	math_free(combinations);
	math_free(variances);
	math_free(covariance);
}

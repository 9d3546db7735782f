/*
 * merge.c
 *		Two models into one, as if one had seen the rows of both.
 *
 * What each knows of its rows is a few directions with their variances, and the mean.
 * Stacked, with the difference of the means as one direction more, these are a small
 * matrix whose principal directions are the merged basis: exact if the rows have no more
 * than bits dimensions, and the best that the two can tell otherwise.  All is computed in
 * double precision, since directions of little variance are differences of large ones.
 */
#include <math.h>
#include <string.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"

/* directions with less than this share of the largest variance are rounding */
#define MIN_VARIANCE 1e-10

/* columns that are converted to double precision at a time */
#define CHUNK 256

/* the directions of both models and the difference of the means, and what they weigh */
typedef struct Stack
{
	const Model *a;
	const Model *b;
	const float *difference;
	int			 count;	 /* directions of a, of b, and one */
	double		*gram;	 /* count x count, their products */
	double		*factor; /* count x count: the stacked matrix is factor times them */
} Stack;

/* Columns first..first+width-1 of all directions. */
static void
read_chunk(const Stack *stack, int first, int width, double *chunk)
{
	const int dims = stack->a->config.dims;

	for (int i = 0; i < stack->count; i++)
	{
		const float *row = i < stack->a->rank ? stack->a->basis + (size_t) i * (size_t) dims
						   : i < stack->count - 1
							   ? stack->b->basis + (size_t) (i - stack->a->rank) * (size_t) dims
							   : stack->difference;

		for (int k = 0; k < width; k++)
			chunk[(size_t) i * (size_t) width + k] = row[first + k];
	}
}

static void
compute_gram(Stack *stack)
{
	const int dims = stack->a->config.dims;
	double	 *chunk = math_alloc((size_t) stack->count * CHUNK, sizeof(double));

	for (int first = 0; first < dims; first += CHUNK)
	{
		const int width = dims - first < CHUNK ? dims - first : CHUNK;

		read_chunk(stack, first, width, chunk);
		multiply_d(false, true, stack->count, stack->count, width, 1.0, chunk, chunk, 1.0,
				   stack->gram);
	}
	math_free(chunk);
}

/* The square root of a model's covariance into the factor, from row and column offset on. */
static void
add_root(Stack *stack, const Model *model, int offset)
{
	const int rank = model->rank;
	const int bits = model->config.bits;
	double	 *vectors = math_alloc((size_t) rank * (size_t) rank + 1, sizeof(double));
	double	 *values = math_alloc((size_t) rank + 1, sizeof(double));

	for (int i = 0; i < rank; i++)
		memcpy(vectors + (size_t) i * (size_t) rank, model->covariance + (size_t) i * (size_t) bits,
			   (size_t) rank * sizeof(double));
	if (rank > 0)
		symmetric_eigen(rank, vectors, values);
	for (int i = 0; i < rank; i++)
	{
		const double root = sqrt(fmax(values[i], 0.0));
		double		*row = stack->factor + (size_t) (offset + i) * (size_t) stack->count + offset;

		for (int j = 0; j < rank; j++)
			row[j] = root * vectors[(size_t) i * (size_t) rank + j];
	}
	math_free(vectors);
	math_free(values);
}

/*
 * The merged basis as combinations of the directions, rank x count, and its variances.
 * Returns the rank.
 */
static int
principal_combinations(const Stack *stack, int bits, double *combinations, double *variances)
{
	const int	 count = stack->count;
	const size_t size = (size_t) count * (size_t) count;
	double		*product = math_alloc(size, sizeof(double));
	double		*vectors = math_alloc(size, sizeof(double));
	double		*values = math_alloc((size_t) count, sizeof(double));
	int			 rank = 0;

	multiply_d(false, false, count, count, count, 1.0, stack->factor, stack->gram, 0.0, product);
	multiply_d(false, true, count, count, count, 1.0, product, stack->factor, 0.0, vectors);
	symmetric_eigen(count, vectors, values);
	multiply_d(false, false, count, count, count, 1.0, vectors, stack->factor, 0.0, product);
	while (rank < bits && rank < count &&
		   values[count - 1 - rank] > MIN_VARIANCE * values[count - 1])
	{
		const int i = count - 1 - rank;

		variances[rank] = values[i];
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
 * Turns the merged basis within its subspace as near as possible to the anchor's, so that
 * the anchor's rotation and codes keep their meaning.  While the anchor's directions are
 * fewer, those of the other follow, and the way from its mean to the other's.  The
 * covariance, diagonal before, is turned with it.
 */
static void
align(const Stack *stack, bool anchor_is_a, int rank, double *combinations, const double *variances,
	  double *covariance)
{
	const int	 count = stack->count;
	const int	 first = anchor_is_a ? 0 : stack->a->rank;
	const size_t size = (size_t) rank * (size_t) count;
	double		*product = math_alloc(size, sizeof(double));
	double		*nearest = math_alloc((size_t) rank * (size_t) rank, sizeof(double));

	multiply_d(false, false, rank, count, count, 1.0, combinations, stack->gram, 0.0, product);
	for (int i = 0; i < rank; i++)
	{
		/* the anchor's directions, then the other's, then the difference of the means */
		const bool	 is_difference = i == count - 1;
		const int	 next = first + i < count - 1 ? first + i : first + i - (count - 1);
		const int	 direction = is_difference ? i : next;
		const double sign = is_difference && !anchor_is_a ? -1.0 : 1.0;

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
		{
			double *element = covariance + (size_t) i * (size_t) rank + j;

			*element = 0.0;
			for (int k = 0; k < rank; k++)
				*element += nearest[(size_t) i * (size_t) rank + k] * variances[k] *
							nearest[(size_t) j * (size_t) rank + k];
		}
	}
	math_free(product);
	math_free(nearest);
}

/* The combinations of the directions, as the basis; the directions are still there. */
static float *
combine_directions(const Stack *stack, int rank, const double *combinations)
{
	const int dims = stack->a->config.dims;
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

/* Basis, covariance and rank of the two together, into a. */
static void
merge_directions(Model *a, const Model *b, const float *difference, double weight, bool anchor_is_a)
{
	const int	 bits = a->config.bits;
	const int	 dims = a->config.dims;
	const int	 count = a->rank + b->rank + 1;
	const size_t size = (size_t) count * (size_t) count;
	Stack		 stack = {a, b, difference, count, NULL, NULL};
	double		*combinations = math_alloc((size_t) bits * (size_t) count, sizeof(double));
	double		*variances = math_alloc((size_t) bits, sizeof(double));
	double		*covariance = math_alloc((size_t) bits * (size_t) bits, sizeof(double));
	float		*basis;
	int			 rank;

	stack.gram = math_alloc(size, sizeof(double));
	stack.factor = math_alloc(size, sizeof(double));
	compute_gram(&stack);
	add_root(&stack, a, 0);
	add_root(&stack, b, a->rank);
	stack.factor[size - 1] = sqrt(weight);
	rank = principal_combinations(&stack, bits, combinations, variances);
	if (rank > 0)
		align(&stack, anchor_is_a, rank, combinations, variances, covariance);
	basis = combine_directions(&stack, rank, combinations);

	memcpy(a->basis, basis, (size_t) rank * (size_t) dims * sizeof(float));
	memset(a->covariance, 0, (size_t) bits * (size_t) bits * sizeof(double));
	for (int i = 0; i < rank; i++)
		memcpy(a->covariance + (size_t) i * (size_t) bits, covariance + (size_t) i * (size_t) rank,
			   (size_t) rank * sizeof(double));
	a->rank = rank;
	a->complete = rank == bits;
	math_free(stack.gram);
	math_free(stack.factor);
	math_free(combinations);
	math_free(variances);
	math_free(covariance);
	math_free(basis);
}

/* The same one whichever way round the two are given. */
static bool
first_is_larger(const Model *a, const Model *b)
{
	if (a->rows != b->rows)
		return a->rows > b->rows;
	if (a->scatter != b->scatter)
		return a->scatter > b->scatter;
	return memcmp(a->mean, b->mean, (size_t) a->config.dims * sizeof(double)) >= 0;
}

static void
forget(Model *model, int64_t rows)
{
	const size_t size = (size_t) model->config.bits * (size_t) model->config.bits;
	const double factor = pow(model->config.forgetting, (double) rows);

	model->weight *= factor;
	model->scatter *= factor;
	for (size_t i = 0; i < size; i++)
		model->covariance[i] *= factor;
}

/*
 * Merges b into a; b is used up.  Anchored, a is older than b: it keeps its orientation,
 * and its rows have been forgotten a little more with each row of b.
 */
void
model_merge(Model *a, Model *b, bool anchored)
{
	const int	 dims = a->config.dims;
	const size_t size = (size_t) a->config.bits * (size_t) a->config.bits;
	bool		 anchor_is_a;
	int			 exponent;
	double		 weight;
	float		*difference;

	model_sync(a);
	model_sync(b);
	if (b->rows == 0)
		return;
	if (a->rows == 0)
	{
		model_assign(a, b);
		return;
	}
	anchor_is_a = anchored || first_is_larger(a, b);
	if (anchored)
		forget(a, b->rows);
	exponent = b->exponent > a->exponent ? b->exponent : a->exponent;
	model_rescale(a, exponent);
	model_rescale(b, exponent);

	weight = a->config.center ? a->weight * b->weight / (a->weight + b->weight) : 0.0;
	difference = math_alloc((size_t) dims, sizeof(float));
	for (int k = 0; k < dims; k++)
	{
		const double distance = b->mean[k] - a->mean[k];

		a->scatter += weight * ldexp(distance, -exponent) * ldexp(distance, -exponent);
		difference[k] = (float) ldexp(distance, -exponent);
		if (a->config.center)
			a->mean[k] += distance * (b->weight / (a->weight + b->weight));
	}
	a->scatter += b->scatter;
	merge_directions(a, b, difference, weight, anchor_is_a);
	if (!anchor_is_a)
		memcpy(a->rotation, b->rotation, size * sizeof(double));
	a->rows += b->rows;
	a->weight += b->weight;
	math_free(difference);

	model_adapt_rotation(a);
	if (a->rank == a->config.bits)
		model_refresh(a);
	model_sync(a);
}

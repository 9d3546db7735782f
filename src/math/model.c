/*
 * model.c
 *		A model's life: rows come in, are centred and scaled, and go to the tracker; the
 *		rotation follows at fixed points of the stream.
 */
#include "model.h"

#include <math.h>
#include <string.h>

#include "../wide.h"
#include "linalg.h"
#include "memory.h"
#include "random.h"

/*
 * Rows a block: enough for the matrix products to run at full speed, and few enough that
 * what grows with the block (products of its rows with each other) stays small.
 */
#define BLOCK_ROWS 32

/* a block's work is kept near this many multiplications, so that a query can be cancelled */
#define BLOCK_WORK 1e9

/* the rotation follows when this many rows have come, or this part of all remembered rows */
#define ROTATE_ROWS 64
#define ROTATE_SHARE 16

/* basis rows further from orthonormal than this are cleaned; they stay below 1e-5 */
#define MAX_SKEW 1e-6F

/* what is added to the variances, as a share of their mean, before they are inverted */
#define RIDGE 1e-9

/* and at least: squares of numbers below the range of floats */
#define MIN_RIDGE 1e-80

/* a change of scale by which variances become nothing beside that of the row that asked for it */
#define LARGE_RESCALE 0x1p-64

/* the number of rows that are remembered, at the most */
double
model_memory(const ModelConfig *config)
{
	return 1.0 / (1.0 - config->forgetting);
}

static int
choose_block_size(const ModelConfig *config)
{
	const double work = 6.0 * config->bits * config->dims;
	const double rows = fmin(fmin(BLOCK_ROWS, BLOCK_WORK / work), model_memory(config));

	/* what learns nothing of the rows but mean and scatter has no use for blocks */
	if (config->tracker->learn == NULL)
		return 1;
	if (config->tracker->block_size != NULL)
		return config->tracker->block_size(config);
	return rows < 1.0 ? 1 : (int) rows;
}

/* The arrays come with the first row: an empty model takes no room, however large. */
Model *
model_create(const ModelConfig *config, int block_size)
{
	Model *model = math_alloc(1, sizeof(Model));

	model->config = *config;
	model->block_size = block_size > 0 ? block_size : choose_block_size(config);
	return model;
}

/* Floats of the basis. */
static size_t
basis_size(const ModelConfig *config)
{
	return config->tracker->basis_size != NULL ? config->tracker->basis_size(config)
											   : (size_t) config->bits * (size_t) config->dims;
}

void
model_prepare(Model *model)
{
	const Tracker  *tracker = model->config.tracker;
	const Rotation *rotation = model->config.rotation;
	const size_t	dims = (size_t) model->config.dims;
	const size_t	bits = (size_t) model->config.bits;
	const size_t	size = basis_size(&model->config);

	if (model->basis != NULL)
		return;
	model->mean = math_alloc(dims, sizeof(double));
	model->basis = math_alloc(size + (size_t) model->block_size * dims, sizeof(float));
	model->block = model->basis + size;
	model->norms = math_alloc((size_t) model->block_size, sizeof(double));
	if (!tracker->random)
	{
		model->covariance = math_alloc(bits * bits, sizeof(double));
		model->rotation = math_alloc(bits * bits, sizeof(double));
		model->inverse = math_alloc(bits * bits, sizeof(double));
	}
	if (rotation->signs)
		model->signs = math_alloc(bits * bits, sizeof(double));
	if (rotation->recent > 0)
		model->recent = math_alloc((size_t) rotation->recent * bits, sizeof(float));
	if (!tracker->random)
		rotation->start(model);
}

static void
free_array(void *array)
{
	if (array != NULL)
		math_free(array);
}

void
model_free(Model *model)
{
	free_array(model->mean);
	free_array(model->basis);
	free_array(model->norms);
	free_array(model->covariance);
	free_array(model->rotation);
	free_array(model->signs);
	free_array(model->recent);
	free_array(model->inverse);
	math_free(model);
}

static void *
copy_array(void *to, const void *from, size_t size)
{
	return to != NULL ? memcpy(to, from, size) : NULL;
}

/* Gives one model the rotation of another, and all that it is made of. */
void
model_assign_rotation(Model *to, const Model *from)
{
	const size_t bits = (size_t) from->config.bits;
	const size_t recent = (size_t) from->config.rotation->recent;

	copy_array(to->rotation, from->rotation, bits * bits * sizeof(double));
	copy_array(to->signs, from->signs, bits * bits * sizeof(double));
	copy_array(to->recent, from->recent, recent * bits * sizeof(float));
	to->recent_rows = from->recent_rows;
	to->rotated_rows = from->rotated_rows;
}

/* Makes one model of a configuration equal to another, which has rows. */
void
model_assign(Model *to, const Model *from)
{
	const size_t dims = (size_t) from->config.dims;
	const size_t bits = (size_t) from->config.bits;
	const size_t floats = basis_size(&from->config) + (size_t) from->block_size * dims;
	Model		 arrays;

	model_prepare(to);
	arrays = *to;
	*to = *from;
	to->mean = memcpy(arrays.mean, from->mean, dims * sizeof(double));
	to->basis = memcpy(arrays.basis, from->basis, floats * sizeof(float));
	to->block = arrays.block;
	to->norms = memcpy(arrays.norms, from->norms, (size_t) from->block_size * sizeof(double));
	to->covariance = copy_array(arrays.covariance, from->covariance, bits * bits * sizeof(double));
	to->inverse = copy_array(arrays.inverse, from->inverse, bits * bits * sizeof(double));
	to->rotation = arrays.rotation;
	to->signs = arrays.signs;
	to->recent = arrays.recent;
	model_assign_rotation(to, from);
}

Model *
model_copy(const Model *model)
{
	Model *copy = model_create(&model->config, model->block_size);

	if (model->rows > 0)
		model_assign(copy, model);
	return copy;
}

WIDE double
squared_length(const float *row, int dims)
{
	Double4 sums = {0.0};
	double	rest = 0.0;
	int		k = 0;

	for (; k + 4 <= dims; k += 4)
	{
		Double4 numbers;

		load4(&numbers, row + k);
		sums += numbers * numbers;
	}
	for (; k < dims; k++)
		rest += (double) row[k] * row[k];
	return sum4(&sums) + rest;
}

/* The exponent of the largest of the differences between row and mean. */
static int
largest_exponent(const Model *model, const float *row)
{
	double largest = 0.0;
	int	   exponent;

	for (int k = 0; k < model->config.dims; k++)
		largest = fmax(largest, fabs((double) row[k] - model->mean[k]));
	frexp(largest, &exponent);
	return exponent < MODEL_MIN_EXPONENT ? MODEL_MIN_EXPONENT : exponent;
}

/* Measures basis, covariance and scatter with another power of two. */
void
model_rescale(Model *model, int exponent)
{
	const size_t dims = (size_t) model->config.dims;
	const size_t bits = (size_t) model->config.bits;
	const double factor = ldexp(1.0, 2 * (model->exponent - exponent));
	const double root = ldexp(1.0, model->exponent - exponent);

	for (size_t i = 0; i < bits * bits && model->covariance != NULL; i++)
	{
		model->covariance[i] *= factor;
		model->inverse[i] /= factor;
	}
	for (size_t i = 0; i < bits * bits && model->signs != NULL; i++)
		model->signs[i] *= root;
	for (size_t i = 0; i < (size_t) model->recent_rows * bits; i++)
		model->recent[i] = (float) (model->recent[i] * root);
	for (size_t i = 0; i < (size_t) model->waiting * dims; i++)
		model->block[i] = (float) (model->block[i] * root);
	for (int t = 0; t < model->waiting; t++)
		model->norms[t] *= factor;
	model->scatter *= factor;
	model->exponent = exponent;
	for (size_t i = 0; i < bits * bits && model->covariance != NULL && factor < LARGE_RESCALE; i++)
		model->inverse[i] = i % (bits + 1) == 0 ? 1.0 / RIDGE : 0.0;
}

/* Centres and scales a row, moves the mean, and returns the result's squared length. */
WIDE static double
centre(const float *row, double *mean, float *centred, int dims, double scale, double step)
{
	Double4 sums = {0.0};
	double	rest = 0.0;
	int		k = 0;

	for (; k + 4 <= dims; k += 4)
	{
		Double4 numbers;
		Double4 old;
		Float4	scaled;

		load4(&numbers, row + k);
		memcpy(&old, mean + k, sizeof(old));
		numbers -= old;
		old += step * numbers;
		memcpy(mean + k, &old, sizeof(old));
		numbers *= scale;
		scaled = __builtin_convertvector(numbers, Float4);
		memcpy(centred + k, &scaled, sizeof(scaled));
		/* of what is left after rounding: it may be nothing */
		numbers = __builtin_convertvector(scaled, Double4);
		sums += numbers * numbers;
	}
	for (; k < dims; k++)
	{
		const double difference = row[k] - mean[k];

		mean[k] += step * difference;
		centred[k] = (float) (scale * difference);
		rest += (double) centred[k] * centred[k];
	}
	return sum4(&sums) + rest;
}

WIDE static void
subtract(const float *row, const double *mean, float *centred, int dims, double scale)
{
	for (int k = 0; k < dims; k++)
		centred[k] = (float) (scale * (row[k] - mean[k]));
}

/*
 * The number of rows at which the rotation is due: a function of the stream alone, so that
 * the codes do not depend on when somebody looked at the model.
 */
static int64_t
rotation_due(const Model *model)
{
	const int64_t last = model->rotated_rows;
	const double  remembered = fmin((double) last, model_memory(&model->config));

	if (last == 0)
		return model->config.bits;
	return last + (int64_t) fmax(remembered / ROTATE_SHARE, ROTATE_ROWS);
}

/* Lets the rotation follow the covariance. */
void
model_adapt_rotation(Model *model)
{
	if (model->config.tracker->random)
		return;
	if (model->rotated_rows == 0)
		model->config.rotation->start(model);
	if (model->config.rotation->adapt != NULL)
		model->config.rotation->adapt(model);
	model->rotated_rows = model->rows;
}

static void
take_waiting_rows(Model *model)
{
	if (model->waiting == 0)
		return;
	if (model->config.tracker->learn != NULL)
		model->config.tracker->learn(model);
	model->waiting = 0;
}

/* Takes all rows in, even those of a patient tracker, and has the basis and the rotation. */
void
model_settle(Model *model)
{
	take_waiting_rows(model);
	model_sync(model);
}

/*
 * Rows are taken in when a block is full.  Until the basis is, each may add to it; and the
 * rotation should know all.  A patient tracker's blocks end at fixed points of the stream.
 */
static bool
is_time_to_learn(const Model *model)
{
	if (model->config.tracker->patient)
		return model->rows % model->block_size == 0 || model->waiting == model->block_size;
	return model->waiting == model->block_size || model->rank < model->config.bits ||
		   model->rows >= rotation_due(model);
}

void
model_sync(Model *model)
{
	const Tracker *tracker = model->config.tracker;

	if (model->rows == 0 || tracker->random)
		return;
	if (!tracker->patient)
		take_waiting_rows(model);
	else if (model->waiting == model->rows)
		/* it has not learnt anything: a first look, while the rows go on waiting */
		tracker->learn(model);
	if (!model->complete)
		model_complete_basis(model);
	/* somebody looks before the rotation was due for the first time: it is made anew then */
	if (model->rotated_rows == 0)
	{
		model_adapt_rotation(model);
		model->rotated_rows = 0;
	}
}

/*
 * Centring after Welford: the outer products of sqrt((n-1)/n) (x - mean before x) add up to
 * the scatter about the mean; with forgetting, n is the sum of the weights.
 */
void
model_learn(Model *model, const float *row)
{
	const ModelConfig *config = &model->config;
	const double	   before = config->forgetting * model->weight;
	const double	   weight = before + 1.0;
	const double	   share = config->center ? before / weight : 1.0;
	const double	   step = config->center ? 1.0 / weight : 0.0;
	float			  *centred;
	double			   norm;

	model_prepare(model);
	if (model->rows == 0 && config->tracker->start != NULL)
		config->tracker->start(model);
	centred = model->block + (size_t) model->waiting * (size_t) config->dims;
	/* the first difference sets the scale; rows that wait before it are zero */
	if (model->scatter == 0.0)
		model->exponent = largest_exponent(model, row);
	norm = centre(row, model->mean, centred, config->dims,
				  sqrt(share) * ldexp(1.0, -model->exponent), step);
	if (!(norm <= MAX_SQUARED_LENGTH))
	{
		if (!config->tracker->patient)
			take_waiting_rows(model);
		model_rescale(model, largest_exponent(model, row) + 1);
		centred = model->block + (size_t) model->waiting * (size_t) config->dims;
		/* the mean has moved: its distance from the row has shrunk to the share before */
		subtract(row, model->mean, centred, config->dims,
				 ldexp(1.0, -model->exponent) / sqrt(share));
		norm = squared_length(centred, config->dims);
	}
	model->norms[model->waiting++] = norm;
	model->weight = weight;
	model->scatter = config->forgetting * model->scatter + norm;
	model->rows++;

	if (is_time_to_learn(model))
		take_waiting_rows(model);
	if (!config->tracker->random && model->rows >= rotation_due(model))
		model_adapt_rotation(model);
}

/* Notes projected rows, each made when the basis had learnt it, for a rotation that asks. */
void
model_note_projections(Model *model, const double *projected, int rows)
{
	if (model->config.rotation->note != NULL)
		model->config.rotation->note(model, projected, rows);
}

/* Makes target, the row-th row of the basis, orthogonal to those before it, and 1 long. */
void
orthonormalise_row(const float *basis, int dims, int row, float *target)
{
	float *components = math_alloc((size_t) row + 1, sizeof(float));
	double length;

	for (int pass = 0; pass < 2; pass++)
	{
		if (row > 0)
		{
			multiply_vector_f(false, row, dims, 1.0F, basis, dims, target, 0.0F, components);
			multiply_vector_f(true, row, dims, -1.0F, basis, dims, components, 1.0F, target);
		}
		length = sqrt(squared_length(target, dims));
		for (int k = 0; k < dims; k++)
			target[k] = (float) (target[k] / length);
	}
	math_free(components);
}

/*
 * Fills the basis rows that nothing has been learnt for with random directions, so that
 * there is always a full code.  They carry no variance, and give way to learnt ones.
 */
void
model_complete_basis(Model *model)
{
	const int dims = model->config.dims;

	for (int i = model->rank; i < model->config.bits; i++)
	{
		float *target = model->basis + (size_t) i * (size_t) dims;
		Random random;

		random_start(&random, model->config.seed, (uint64_t) i);
		for (int k = 0; k < dims; k++)
			target[k] = (float) random_normal(&random);
		orthonormalise_row(model->basis, dims, i, target);
	}
	model->complete = true;
}

/* Computes the inverse of the covariance anew; a ridge keeps directions without variance finite. */
void
model_invert(Model *model)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		 trace = 0.0;

	for (int i = 0; i < bits; i++)
		trace += model->covariance[(size_t) i * bits + i];
	memcpy(model->inverse, model->covariance, size * sizeof(double));
	for (int i = 0; i < bits; i++)
		model->inverse[(size_t) i * bits + i] += fmax(RIDGE * trace / bits, MIN_RIDGE);
	if (!positive_inverse(bits, model->inverse))
	{
		/* not even the ridge helps: treat all directions alike */
		memset(model->inverse, 0, size * sizeof(double));
		for (int i = 0; i < bits; i++)
			model->inverse[(size_t) i * bits + i] = bits / fmax(trace, MIN_RIDGE);
	}
}

/*
 * Removes what rounding has added: W <- W - (WW' - I)/2 W makes the rows orthonormal again
 * with the least change, and the inverse is computed anew.
 */
void
model_refresh(Model *model)
{
	const int	 bits = model->config.bits;
	const int	 dims = model->config.dims;
	const size_t size = (size_t) bits * (size_t) bits;
	float		*skew = math_alloc(size, sizeof(float));
	float		 largest = 0.0F;

	multiply_f(false, true, bits, bits, dims, 1.0F, model->basis, dims, model->basis, dims, 0.0F,
			   skew, bits);
	for (int i = 0; i < bits; i++)
		skew[(size_t) i * bits + i] -= 1.0F;
	for (size_t i = 0; i < size; i++)
		largest = fmaxf(largest, fabsf(skew[i]));
	if (largest > MAX_SKEW)
	{
		float *change = math_alloc((size_t) bits * (size_t) dims, sizeof(float));

		multiply_f(false, false, bits, dims, bits, 0.5F, skew, bits, model->basis, dims, 0.0F,
				   change, dims);
		for (size_t i = 0; i < (size_t) bits * (size_t) dims; i++)
			model->basis[i] -= change[i];
		math_free(change);
	}
	math_free(skew);
	model_invert(model);
	model->refreshed_rows = model->rows;
}

/* W, bits x dims */
void
model_basis(const Model *model, float *basis)
{
	if (model->config.tracker->expand != NULL)
		model->config.tracker->expand(model, basis);
	else
		memcpy(basis, model->basis,
			   (size_t) model->config.bits * (size_t) model->config.dims * sizeof(float));
}

void
model_projection(const Model *model, float *projection)
{
	const int	 bits = model->config.bits;
	const int	 dims = model->config.dims;
	const size_t size = (size_t) bits * (size_t) bits;
	float		*rotation;

	if (model->rotation == NULL)
	{
		model_basis(model, projection);
		return;
	}
	rotation = math_alloc(size, sizeof(float));
	for (size_t i = 0; i < size; i++)
		rotation[i] = (float) model->rotation[i];
	multiply_f(false, false, bits, dims, bits, 1.0F, rotation, bits, model->basis, dims, 0.0F,
			   projection, dims);
	math_free(rotation);
}

void
model_project(const Model *model, const float *row, float *centred, float *projected)
{
	const int bits = model->config.bits;
	const int dims = model->config.dims;
	double	 *y;

	subtract(row, model->mean, centred, dims, ldexp(1.0, -model->exponent));
	if (model->config.tracker->project != NULL)
		model->config.tracker->project(model, centred, projected);
	else
		multiply_vector_f(false, bits, dims, 1.0F, model->basis, dims, centred, 0.0F, projected);
	if (model->rotation == NULL)
		return;
	y = math_alloc((size_t) bits * 2, sizeof(double));
	for (int i = 0; i < bits; i++)
		y[i] = projected[i];
	multiply_vector_d(false, bits, bits, 1.0, model->rotation, y, 0.0, y + bits);
	for (int i = 0; i < bits; i++)
		projected[i] = (float) y[bits + i];
	math_free(y);
}

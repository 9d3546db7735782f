/*
 * model.c
 *		A model's life: rows come in, are centred and scaled, and go to the tracker; the
 *		rotation follows at fixed points of the stream.
 */
#include "model.h"

#include <math.h>
#include <string.h>

#include "memory.h"
#include "rows.h"

/*
 * Rows a block: enough for the matrix products to run at full speed, and few enough that
 * what grows with the block (products of its rows with each other) stays small beside what
 * does not.
 */
#define BLOCK_ROWS 32
#define LARGE_BLOCK_ROWS 64
#define LARGE_BLOCK_BITS 256

/* a block's work is kept near this many multiplications, so that a query can be cancelled */
#define BLOCK_WORK 1e9

/*
 * The rotation follows when this many rows have come, or as many as it has bits, or this part of
 * all remembered rows.
 */
#define ROTATE_ROWS 64
#define ROTATE_SHARE 16

/* a change of scale by which variances become nothing beside that of the row that asked for it */
#define LARGE_RESCALE 0x1p-64
#define INVERSE_OF_NOTHING 1e9

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
	const double most = config->bits < LARGE_BLOCK_BITS ? BLOCK_ROWS : LARGE_BLOCK_ROWS;
	const double rows = fmin(fmin(most, BLOCK_WORK / work), model_memory(config));

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

	if (model->basis != NULL)
		return;
	model->mean = math_alloc(dims, sizeof(double));
	model->basis = math_alloc(basis_size(&model->config), sizeof(float));
	if (!tracker->random)
	{
		model->covariance = math_alloc(bits * bits, sizeof(double));
		model->rotation = math_alloc(bits * bits, sizeof(float));
	}
	if (rotation->signs)
		model->signs = math_alloc(bits * bits, sizeof(double));
}

/* Room for a block of rows, which only a model that learns has. */
void
model_prepare_block(Model *model)
{
	if (model->norms == NULL)
		model->norms = math_alloc((size_t) model->block_size, sizeof(double));
	if (model->block == NULL)
		model->block =
			math_alloc((size_t) model->block_size * (size_t) model->config.dims, sizeof(float));
}

/* What a tracker begins with, before the first row. */
static void
start_model(Model *model)
{
	model_prepare(model);
	if (model->config.tracker->start != NULL)
		model->config.tracker->start(model);
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
	free_array(model->block);
	free_array(model->norms);
	free_array(model->covariance);
	free_array(model->rotation);
	free_array(model->first_rotation);
	free_array(model->signs);
	recent_forget(model);
	free_array(model->inverse);
	math_free(model);
}

/* Gives one model the rotation of another, and all that it is made of. */
void
model_assign_rotation(Model *to, const Model *from)
{
	const size_t bits = (size_t) from->config.bits;

	if (from->rotation != NULL)
		memcpy(to->rotation, from->rotation, bits * bits * sizeof(float));
	if (from->signs != NULL)
		memcpy(to->signs, from->signs, bits * bits * sizeof(double));
	if (from->recent_rows > 0)
	{
		recent_prepare(to);
		memcpy(to->recent, from->recent, (size_t) from->recent_rows * bits);
		memcpy(to->recent_scales, from->recent_scales, (size_t) from->recent_rows * sizeof(float));
	}
	to->recent_rows = from->recent_rows;
	to->rotated_rows = from->rotated_rows;
	to->looked_rows = from->looked_rows;
}

/* Makes an empty model equal to another of its configuration, which has rows. */
void
model_assign(Model *to, const Model *from)
{
	const size_t dims = (size_t) from->config.dims;
	const size_t bits = (size_t) from->config.bits;

	model_prepare(to);
	to->rows = from->rows;
	to->weight = from->weight;
	to->scatter = from->scatter;
	to->exponent = from->exponent;
	to->rank = from->rank;
	to->complete = from->complete;
	to->refreshed_rows = from->refreshed_rows;
	memcpy(to->mean, from->mean, dims * sizeof(double));
	memcpy(to->basis, from->basis, basis_size(&from->config) * sizeof(float));
	to->block_size = from->block_size;
	to->waiting = from->waiting;
	if (from->waiting > 0)
	{
		model_prepare_block(to);
		memcpy(to->block, from->block, (size_t) from->waiting * dims * sizeof(float));
		memcpy(to->norms, from->norms, (size_t) from->waiting * sizeof(double));
	}
	if (from->covariance != NULL)
		memcpy(to->covariance, from->covariance, bits * bits * sizeof(double));
	if (from->inverse != NULL)
	{
		to->inverse = math_alloc(bits * bits, sizeof(double));
		memcpy(to->inverse, from->inverse, bits * bits * sizeof(double));
	}
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

int
model_row_exponent(const Model *model, const float *row)
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
		model->covariance[i] *= factor;
	for (size_t i = 0; i < bits * bits && model->inverse != NULL; i++)
		model->inverse[i] /= factor;
	for (size_t i = 0; i < bits * bits && model->signs != NULL; i++)
		model->signs[i] *= root;
	for (int t = 0; t < model->recent_rows; t++)
		model->recent_scales[t] = (float) (model->recent_scales[t] * root);
	for (size_t i = 0; i < (size_t) model->waiting * dims; i++)
		model->block[i] = (float) (model->block[i] * root);
	for (int t = 0; t < model->waiting; t++)
		model->norms[t] *= factor;
	model->scatter *= factor;
	model->exponent = exponent;
	for (size_t i = 0; i < bits * bits && model->inverse != NULL && factor < LARGE_RESCALE; i++)
		model->inverse[i] = i % (bits + 1) == 0 ? INVERSE_OF_NOTHING : 0.0;
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
	return last + (int64_t) fmax(remembered / ROTATE_SHARE, fmax(ROTATE_ROWS, model->config.bits));
}

/* Gives a model whose rotation was never due the one that it starts from. */
void
model_start_rotation(Model *model)
{
	const size_t size = (size_t) model->config.bits * (size_t) model->config.bits;

	if (model->first_rotation == NULL)
	{
		double *rotation = math_alloc(size, sizeof(double));
		float  *rounded = math_alloc(size, sizeof(float));

		model->config.rotation->start(model, rotation);
		copy_single(rotation, rounded, size);
		math_free(rotation);
		model->first_rotation = rounded;
	}
	memcpy(model->rotation, model->first_rotation, size * sizeof(float));
}

/* Lets the rotation follow the covariance; it changes as a whole. */
static void
make_rotation(Model *model)
{
	const size_t size = (size_t) model->config.bits * (size_t) model->config.bits;
	double		*rotation;

	if (model->rotated_rows == 0)
		model_start_rotation(model);
	if (model->config.rotation->adapt == NULL)
		return;
	rotation = math_alloc(size, sizeof(double));
	copy_double(model->rotation, rotation, size);
	model->config.rotation->adapt(model, rotation);
	copy_single(rotation, model->rotation, size);
	math_free(rotation);
}

void
model_adapt_rotation(Model *model)
{
	if (model->config.tracker->random)
		return;
	make_rotation(model);
	model->rotated_rows = model->rows;
	free_array(model->first_rotation);
	model->first_rotation = NULL;
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
	if (model->rotated_rows == 0 && model->looked_rows < model->rows)
	{
		make_rotation(model);
		model->looked_rows = model->rows;
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

	if (model->rows == 0)
		start_model(model);
	model_prepare_block(model);
	centred = model->block + (size_t) model->waiting * (size_t) config->dims;
	/* the first difference sets the scale; rows that wait before it are zero */
	if (model->scatter == 0.0)
		model->exponent = model_row_exponent(model, row);
	norm = centre_row(row, model->mean, centred, config->dims,
					  sqrt(share) * ldexp(1.0, -model->exponent), step);
	if (!(norm <= MAX_SQUARED_LENGTH))
	{
		if (!config->tracker->patient)
			take_waiting_rows(model);
		model_rescale(model, model_row_exponent(model, row) + 1 - (int) floor(0.5 * log2(share)));
		centred = model->block + (size_t) model->waiting * (size_t) config->dims;
		/* the mean has moved: its distance from the row has shrunk to the share before */
		subtract_mean(row, model->mean, centred, config->dims,
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

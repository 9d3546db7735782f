/*
 * sketches.h
 *		Rows with a model and their sketches, for the tests of sketches.
 */
#ifndef UNIFDIAG_SKETCHES_H
#define UNIFDIAG_SKETCHES_H

#include "../../src/math/sketch.h"
#include "data.h"

#define ROWS 3000
#define BLOCK 64

static const char *const metric_names[] = {"L2", "cosine", "inner product"};

/* Rows with a model and their sketches. */
typedef struct Sketches
{
	int			 dims;
	int			 count;
	float		*rows;
	SketchModel *model;
	uint64_t	*words;
	uint32_t	*numbers;
} Sketches;

static inline Sketches
make_sketches(float *rows, int count, int dims, int bits, SketchMetric metric)
{
	const SketchShape shape = sketch_shape(dims, bits);
	const ModelConfig config = sketch_config(shape, metric, 1);
	Model			 *model = model_create(&config, 0);
	Sketches		  made = {.dims = dims, .count = count, .rows = rows};
	SketchEncoder	 *encoder;

	for (int t = 0; t < count && metric == SKETCH_COSINE; t++)
		(void) sketch_normalise(rows + (size_t) t * (size_t) dims, dims);
	for (int t = 0; t < count; t++)
		model_learn(model, rows + (size_t) t * (size_t) dims);
	made.model = sketch_fit(model, shape, metric, rows, count);
	model_free(model);
	made.words = math_alloc((size_t) count * (size_t) sketch_code_words(&shape), sizeof(uint64_t));
	made.numbers = math_alloc((size_t) count, sizeof(uint32_t));
	encoder = sketch_encoder_create(made.model, BLOCK);
	for (int t = 0; t < count; t += BLOCK)
		sketch_encode(
			encoder, rows + (size_t) t * (size_t) dims, count - t < BLOCK ? count - t : BLOCK,
			made.words + (size_t) t * (size_t) sketch_code_words(&shape), made.numbers + t);
	sketch_encoder_free(encoder);
	return made;
}

static inline void
free_sketches(Sketches *made)
{
	math_free(made->rows);
	math_free(made->model);
	math_free(made->words);
	math_free(made->numbers);
}

/* The code of a row. */
static inline uint64_t *
code_of(const Sketches *made, int t)
{
	return made->words + (size_t) t * (size_t) sketch_code_words(&made->model->parameters.shape);
}

/* The rank of a row after both looks. */
static inline uint32_t
refined_rank(const SketchQuery *query, const uint64_t *code, uint32_t number, uint32_t rank)
{
	if (number == SKETCH_UNKNOWN || number == SKETCH_FAR)
		return rank;
	return sketch_refine(query, code,
						 sketch_kernel_best()->disagreement(
							 code, (size_t) query->parameters.shape.words, query->fine_planes),
						 rank);
}

/* The measure by its definition. */
static inline double
true_measure(SketchMetric metric, const float *x, const float *q, int dims)
{
	double sum = 0.0;

	for (int k = 0; k < dims; k++)
		sum += metric == SKETCH_IP ? -(double) x[k] * q[k]
								   : ((double) x[k] - q[k]) * ((double) x[k] - q[k]);
	return sum;
}

#endif /* UNIFDIAG_SKETCHES_H */

/*
 * tracker_osh.c
 *		Online sketching hashing: frequent directions of the centred rows.
 *
 * The sketch has twice as many rows as there are bits.  Half of them are the basis, times the
 * square root of the covariance; the other half waits for rows.  When it is full the
 * principal directions of all are the new basis, and every variance loses that of the first
 * direction left out.  Rows wait in the stored form too: the sketch must not depend on when
 * somebody looks at it.
 */
#include <math.h>

#include "directions.h"
#include "linalg.h"
#include "memory.h"
#include "model.h"
#include "rows.h"

/* W x of the rows, for a rotation that asks; products is room for them. */
static void
note_projections(Model *model, float *products, double *projected)
{
	const int bits = model->config.bits;
	const int dims = model->config.dims;
	const int rows = model->waiting;

	if (model->config.rotation->note == NULL || model->rank < bits)
		return;
	multiply_f(false, true, rows, bits, dims, 1.0F, model->block, dims, model->basis, dims, 0.0F,
			   products, bits);
	copy_double(products, projected, (size_t) rows * (size_t) bits);
	model_note_projections(model, projected, rows);
}

static void
learn(Model *model)
{
	const int	 rows = model->waiting;
	const size_t size = (size_t) rows * (size_t) model->config.bits;
	const double forgetting = model->config.forgetting;
	float		*products = math_alloc(size, sizeof(float));
	double		*projected = math_alloc(size, sizeof(double));
	Stack		 stack;
	int			*nearest;
	int			 count;
	int			 offset;

	/* if all rows wait, what there is comes from a look at them */
	if (model->waiting == model->rows)
		model->rank = 0;
	count = model->rank + rows;
	stack = stack_create(model->config.dims, count);
	nearest = math_alloc((size_t) count, sizeof(int));
	offset = stack_add_model(&stack, 0, model, pow(forgetting, rows));
	for (int t = 0; t < rows; t++)
		offset =
			stack_add_row(&stack, offset, model->block + (size_t) t * (size_t) model->config.dims,
						  sqrt(pow(forgetting, rows - 1 - t)));
	for (int i = 0; i < count; i++)
		nearest[i] = i;
	/* the model changes at its end: from there on nothing may be cancelled, or rows count twice */
	stack_principal(&stack, nearest, model);
	math_hold_cancel();
	note_projections(model, products, projected);
	math_resume_cancel();
	stack_free(&stack);
	math_free(nearest);
	math_free(products);
	math_free(projected);
}

static int
block_size(const ModelConfig *config)
{
	return config->bits;
}

const Tracker tracker_osh = {
	.name = "osh",
	.patient = true,
	.shrinks = true,
	.learn = learn,
	.block_size = block_size,
};

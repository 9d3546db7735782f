/*
 * sketcher_learn.c
 *		Teaching models: single rows, and merging two.
 */
#include "postgres.h"

#include "../compat.h"
#include "sketcher.h"

/*
 * The vector as the model wants it, which must have its dimensions.  If it has to be scaled, that
 * is done in *room, which is made in the current memory context unless it is there already.
 */
Vector
sketcher_vector(const ModelConfig *config, Vector vector, float **room)
{
	vector_check_dims(vector, config->dims);
	if (!config->normalize)
		return vector;
	if (*room == NULL)
		*room = palloc(sizeof(float) * config->dims);
	return vector_normalized(vector, *room);
}

/* Teaches a sketcher one row that is as the model wants it, in its own memory. */
void
sketcher_learn_prepared(Sketcher *sketcher, Vector vector)
{
	MemoryContext caller;

	sketcher_check_room(sketcher->model, 1);
	caller = MemoryContextSwitchTo(sketcher->header.eoh_context);
	model_learn(sketcher->model, vector.values);
	MemoryContextSwitchTo(caller);
}

/* Teaches a sketcher one row. */
void
sketcher_learn_row(Sketcher *sketcher, Vector vector)
{
	float *room = NULL;

	sketcher_learn_prepared(sketcher, sketcher_vector(&sketcher->model->config, vector, &room));
	if (room != NULL)
		pfree(room);
}

/* One row more: a copy of the model that has learnt it. */
PG_FUNCTION_INFO_V1(sketcher_add);
Datum
sketcher_add(PG_FUNCTION_ARGS)
{
	Sketcher	*sketcher = sketcher_writable(PG_GETARG_DATUM(0), CurrentMemoryContext);
	const Vector vector = PG_GETARG_VECTOR(1);

	sketcher_learn_row(sketcher, vector);
	PG_RETURN_SKETCHER(sketcher);
}

/* Merges a copy into a sketcher; the copy is used up. */
void
sketcher_absorb_copy(Sketcher *state, Sketcher *other)
{
	sketcher_absorb(state, other->model, false);
	DeleteExpandedObject(SketcherGetDatum(other));
}

/* sketcher_merge(a, b) */
PG_FUNCTION_INFO_V1(sketcher_merge);
Datum
sketcher_merge(PG_FUNCTION_ARGS)
{
	Sketcher *merged = sketcher_writable(PG_GETARG_DATUM(0), CurrentMemoryContext);

	sketcher_absorb_copy(merged, GETARG_COPY(1, sketcher_writable));
	PG_RETURN_SKETCHER(merged);
}

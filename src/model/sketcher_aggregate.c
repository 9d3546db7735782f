/*
 * sketcher_aggregate.c
 *		The aggregates: sketcher_agg, sketcher_learn, sketcher_merge, sketcher_stream.
 *
 * Their state is a sketcher, held as an expanded object below the aggregate's memory context and
 * changed in place.  Partial aggregates pass it on as a stored value.  Any aggregate may have
 * these support functions, and call them with any sketcher as its state.
 */
#include "postgres.h"

#include "nodes/execnodes.h"
#include "utils/datum.h"

#include "../code/bithash.h"
#include "../compat.h"
#include "sketcher.h"

static MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("function can only be called by an aggregate"));
	return context;
}

/* Is this the whole aggregate, of ours, and not a part whose state will be combined? */
static bool
is_whole_aggregate(FunctionCallInfo fcinfo)
{
	Aggref *aggregate = AggGetAggref(fcinfo);

	/* in a window there are no parts; Citus calls us from an aggregate of its own */
	return aggregate == NULL || (aggregate->aggsplit == AGGSPLIT_SIMPLE &&
								 aggregate->aggtranstype == get_fn_expr_rettype(fcinfo->flinfo));
}

/*
 * The state of an aggregate, to be changed; the given model's context is below the
 * aggregate's, so that only the first call, or a stored state, makes a new one.
 */
static Sketcher *
aggregate_state(FunctionCallInfo fcinfo, MemoryContext context)
{
	return PG_ARGISNULL(0) ? NULL : sketcher_state(PG_GETARG_DATUM(0), context);
}

static Datum
return_state(FunctionCallInfo fcinfo, Sketcher *state)
{
	if (state == NULL)
		PG_RETURN_NULL();
	PG_RETURN_SKETCHER(state);
}

/* The number of bits, which must be the same for all rows of an aggregate. */
static int32
bits_argument(FunctionCallInfo fcinfo, int n, const Sketcher *state)
{
	int32 bits;

	if (PG_ARGISNULL(n))
		ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("number of bits cannot be null"));
	bits = PG_GETARG_INT32(n);
	if (state != NULL && state->model->config.bits != bits)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("number of bits changes from %d to %d within an aggregate",
					   state->model->config.bits, (int) bits));
	return bits;
}

/* sketcher_agg(v, bits): a new model of the rows. */
PG_FUNCTION_INFO_V1(sketcher_agg_trans);
Datum
sketcher_agg_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Sketcher	 *state = aggregate_state(fcinfo, context);
	const int32	  bits = bits_argument(fcinfo, 2, state);

	if (!PG_ARGISNULL(1))
	{
		const Vector vector = PG_GETARG_VECTOR(1);

		if (state == NULL)
		{
			const ModelConfig config = sketcher_default_config(vector.dims, bits);

			state = sketcher_create(&config, context);
		}
		sketcher_learn_row(state, vector);
	}
	return return_state(fcinfo, state);
}

/*
 * The first state of sketcher_learn: the model itself.  In a part of an aggregate it is an
 * empty model with the given one as its base, which is counted once in the end.
 */
static Sketcher *
start_from(Datum model, bool whole, MemoryContext context)
{
	Sketcher *state = sketcher_writable(model, context);

	if (!whole)
	{
		MemoryContext caller = MemoryContextSwitchTo(state->header.eoh_context);

		state->base = state->model;
		model_sync(state->base);
		state->model = model_create(&state->base->config, 0);
		MemoryContextSwitchTo(caller);
	}
	return state;
}

/* sketcher_learn(model, v): the given model, taught the rows as well. */
PG_FUNCTION_INFO_V1(sketcher_learn_trans);
Datum
sketcher_learn_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Sketcher	 *state = aggregate_state(fcinfo, context);

	if (state == NULL && !PG_ARGISNULL(1))
		state = start_from(PG_GETARG_DATUM(1), is_whole_aggregate(fcinfo), context);
	if (state != NULL && !PG_ARGISNULL(2))
		sketcher_learn_row(state, PG_GETARG_VECTOR(2));
	return return_state(fcinfo, state);
}

/* A copy, merged with its base: the state may go on. */
PG_FUNCTION_INFO_V1(sketcher_learn_final);
Datum
sketcher_learn_final(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_SKETCHER(sketcher_writable(PG_GETARG_DATUM(0), CurrentMemoryContext));
}

/* Two states into one.  Those of sketcher_learn have the same base, which is counted once. */
PG_FUNCTION_INFO_V1(sketcher_combine);
Datum
sketcher_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Sketcher	 *state = aggregate_state(fcinfo, context);

	if (PG_ARGISNULL(1))
		return return_state(fcinfo, state);
	if (state == NULL)
		state = sketcher_state(PG_GETARG_DATUM(1), context);
	else
	{
		Sketcher *other = GETARG_COPY(1, sketcher_state);

		if (state->base == NULL && other->base != NULL)
		{
			MemoryContext caller = MemoryContextSwitchTo(state->header.eoh_context);

			state->base = model_copy(other->base);
			MemoryContextSwitchTo(caller);
		}
		sketcher_absorb_copy(state, other);
	}
	return return_state(fcinfo, state);
}

/* sketcher_merge(model) */
PG_FUNCTION_INFO_V1(sketcher_merge_trans);
Datum
sketcher_merge_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Sketcher	 *state = aggregate_state(fcinfo, context);

	if (PG_ARGISNULL(1))
		return return_state(fcinfo, state);
	if (state == NULL)
		state = sketcher_writable(PG_GETARG_DATUM(1), context);
	else
		sketcher_absorb_copy(state, GETARG_COPY(1, sketcher_writable));
	return return_state(fcinfo, state);
}

/* The code of a row, or NULL: a model of fewer rows than bits is not worth one. */
static BitHash *
code_of_row(Model *model, const float *row)
{
	float	*centred;
	float	*projected;
	BitHash *code;

	if (model->rows < model->config.bits)
		return NULL;
	model_sync(model);
	centred = palloc(sizeof(float) * model->config.dims);
	projected = palloc(sizeof(float) * model->config.bits);
	model_project(model, row, centred, projected);
	code = bithash_of_signs(projected, model->config.bits);
	pfree(centred);
	pfree(projected);
	return code;
}

/* Makes the row's code by the model of the rows before it, and then learns it. */
static void
stream_row(FunctionCallInfo fcinfo, Sketcher *state, int n)
{
	if (state->code != NULL)
		pfree(state->code);
	state->code = NULL;
	if (!PG_ARGISNULL(n))
	{
		float		 *room = NULL;
		const Vector  vector = sketcher_vector(&state->model->config, PG_GETARG_VECTOR(n), &room);
		MemoryContext caller = MemoryContextSwitchTo(state->header.eoh_context);

		state->code = code_of_row(state->model, vector.values);
		MemoryContextSwitchTo(caller);
		sketcher_learn_prepared(state, vector);
	}
}

/* sketcher_stream(v, bits) */
PG_FUNCTION_INFO_V1(sketcher_stream_trans);
Datum
sketcher_stream_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Sketcher	 *state = aggregate_state(fcinfo, context);
	const int32	  bits = bits_argument(fcinfo, 2, state);

	if (state == NULL && !PG_ARGISNULL(1))
	{
		const ModelConfig config = sketcher_default_config(PG_GETARG_VECTOR(1).dims, bits);

		state = sketcher_create(&config, context);
	}
	if (state != NULL)
		stream_row(fcinfo, state, 1);
	return return_state(fcinfo, state);
}

/* sketcher_stream(model, v) */
PG_FUNCTION_INFO_V1(sketcher_stream_model_trans);
Datum
sketcher_stream_model_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Sketcher	 *state = aggregate_state(fcinfo, context);

	if (state == NULL && !PG_ARGISNULL(1))
		state = sketcher_writable(PG_GETARG_DATUM(1), context);
	if (state != NULL)
		stream_row(fcinfo, state, 2);
	return return_state(fcinfo, state);
}

/* A state that was stored has lost its last row's code. */
PG_FUNCTION_INFO_V1(sketcher_stream_final);
Datum
sketcher_stream_final(PG_FUNCTION_ARGS)
{
	Sketcher *state;

	aggregate_context(fcinfo);
	state = PG_ARGISNULL(0) ? NULL : sketcher_object(PG_GETARG_DATUM(0));
	if (state == NULL || state->code == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(datumCopy(PointerGetDatum(state->code), false, -1));
}

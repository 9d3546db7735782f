/*
 * sketcher_learn.c
 *		Learning in SQL: new models, aggregates, single rows, merging.
 *
 * The aggregates' state is a sketcher, held as an expanded object below the aggregate's
 * memory context and changed in place.  Partial aggregates pass it on as a stored value.
 */
#include "postgres.h"

#include "nodes/execnodes.h"
#include "utils/builtins.h"
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

static void
learn_prepared_row(Sketcher *sketcher, Vector vector)
{
	MemoryContext caller;

	sketcher_check_room(sketcher->model, 1);
	caller = MemoryContextSwitchTo(sketcher->header.eoh_context);
	model_learn(sketcher->model, vector.values);
	MemoryContextSwitchTo(caller);
}

/* Teaches a sketcher one row, in its own memory. */
void
sketcher_learn_row(Sketcher *sketcher, Vector vector)
{
	float *room = NULL;

	learn_prepared_row(sketcher, sketcher_vector(&sketcher->model->config, vector, &room));
	if (room != NULL)
		pfree(room);
}

static void
check_dims_and_bits(int32 dims, int32 bits)
{
	if (dims < 1 || dims > MODEL_MAX_DIMS)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("number of dimensions cannot be %d", (int) dims),
				errdetail("A model has 1 to %d dimensions.", MODEL_MAX_DIMS));
	if (bits < 1 || bits > dims)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("number of bits cannot be %d", (int) bits),
				errdetail("For %d dimensions a model has 1 to %d bits.", (int) dims, (int) dims));
}

/* The configuration of sketcher_agg and sketcher_stream: all defaults of sketcher_new. */
static ModelConfig
default_config(int32 dims, int32 bits)
{
	ModelConfig config = {.dims = dims,
						  .bits = bits,
						  .tracker = trackers[0],
						  .rotation = rotations[0],
						  .stable = true,
						  .center = true,
						  .forgetting = 1.0,
						  .seed = 0};

	check_dims_and_bits(dims, bits);
	return config;
}

static const char *
tracker_name(int number)
{
	return trackers[number]->name;
}

static const char *
rotation_name(int number)
{
	return rotations[number]->name;
}

/* The number of the method of that name; an error with all names if there is none. */
static int
find_method(const char *kind, text *argument, const char *(*name_of)(int), int count)
{
	const char	  *name = text_to_cstring(argument);
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < count; i++)
	{
		if (strcmp(name_of(i), name) == 0)
			return i;
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "", name_of(i));
	}
	ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("unknown %s \"%s\"", kind, name), errhint("Possible are %s.", names.data));
	return -1;
}

/* Refuses a rotation of what is random already. */
static void
check_combination(const ModelConfig *config)
{
	StringInfoData names;

	if (rotation_makes_sense(config->tracker, config->rotation))
		return;
	initStringInfo(&names);
	for (int i = 0; i < rotation_count; i++)
	{
		if (rotation_makes_sense(config->tracker, rotations[i]))
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", rotations[i]->name);
	}
	ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("tracker \"%s\" does not take rotation \"%s\"", config->tracker->name,
				   config->rotation->name),
			errdetail("Its directions are random, and stay so when they are rotated."),
			errhint("Possible with it: %s.", names.data));
}

/* A configuration of these options, or an error that says which one cannot be. */
ModelConfig
sketcher_config(int32 dims, int32 bits, text *tracker, text *rotation, bool stable, bool center,
				double forgetting, int64 seed)
{
	ModelConfig config = default_config(dims, bits);

	config.tracker = trackers[find_method("tracker", tracker, tracker_name, tracker_count)];
	config.rotation = rotations[find_method("rotation", rotation, rotation_name, rotation_count)];
	check_combination(&config);
	config.stable = stable;
	config.center = center;
	config.forgetting = forgetting;
	config.seed = seed;
	if (!(forgetting > 0.0 && forgetting <= 1.0))
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("forgetting factor cannot be %g", forgetting),
				errdetail("It is above 0, and at most 1, which forgets nothing."));
	return config;
}

/* The same options for another number of dimensions. */
ModelConfig
sketcher_config_for(const ModelConfig *config, int32 dims)
{
	ModelConfig result = *config;

	check_dims_and_bits(dims, config->bits);
	result.dims = dims;
	return result;
}

PG_FUNCTION_INFO_V1(sketcher_new);
Datum
sketcher_new(PG_FUNCTION_ARGS)
{
	ModelConfig config =
		sketcher_config(PG_GETARG_INT32(0), PG_GETARG_INT32(1), PG_GETARG_TEXT_PP(2),
						PG_GETARG_TEXT_PP(3), PG_GETARG_BOOL(4), PG_GETARG_BOOL(5),
						PG_GETARG_FLOAT8(6), PG_GETARG_INT64(7));

	config.normalize = PG_GETARG_BOOL(8);
	PG_RETURN_SKETCHER(sketcher_create(&config, CurrentMemoryContext));
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
			const ModelConfig config = default_config(vector.dims, bits);

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

/* An argument whose model will be used up: never the caller's own object. */
#define GETARG_COPY(n, get) \
	get(MakeExpandedObjectReadOnly(PG_GETARG_DATUM(n), false, -1), CurrentMemoryContext)

static void
absorb_copy(Sketcher *state, Sketcher *other)
{
	sketcher_absorb(state, other->model, false);
	DeleteExpandedObject(SketcherGetDatum(other));
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
		absorb_copy(state, other);
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
		absorb_copy(state, GETARG_COPY(1, sketcher_writable));
	return return_state(fcinfo, state);
}

/* sketcher_merge(a, b) */
PG_FUNCTION_INFO_V1(sketcher_merge);
Datum
sketcher_merge(PG_FUNCTION_ARGS)
{
	Sketcher *merged = sketcher_writable(PG_GETARG_DATUM(0), CurrentMemoryContext);

	absorb_copy(merged, GETARG_COPY(1, sketcher_writable));
	PG_RETURN_SKETCHER(merged);
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
		learn_prepared_row(state, vector);
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
		const ModelConfig config = default_config(PG_GETARG_VECTOR(1).dims, bits);

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

/* A state that has been stored is a model like others, and has no row to make a code of. */
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

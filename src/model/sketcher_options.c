/*
 * sketcher_options.c
 *		The options of a model, and models that have not learnt from any row.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "../compat.h"
#include "sketcher.h"

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
ModelConfig
sketcher_default_config(int32 dims, int32 bits)
{
	ModelConfig config = {.dims = dims,
						  .bits = bits,
						  .tracker = &tracker_opast,
						  .rotation = &rotation_neighbour,
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
			errmsg("unknown %s \"%s\"", kind, name), errhint("Available values: %s.", names.data));
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
			appendStringInfo(&names, "%s\"%s\"", names.len > 0 ? ", " : "", rotations[i]->name);
	}
	ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("tracker \"%s\" cannot be used with rotation \"%s\"", config->tracker->name,
				   config->rotation->name),
			errdetail("Its directions are random, and a rotation would leave them random."),
			errhint("Available values with it: %s.", names.data));
}

/* A configuration of these options, or an error that says which one cannot be. */
ModelConfig
sketcher_config(int32 dims, int32 bits, text *tracker, text *rotation, bool stable, bool center,
				double forgetting, int64 seed)
{
	ModelConfig config = sketcher_default_config(dims, bits);

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
				errdetail("It must be above 0 and at most 1; 1 forgets nothing."));
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

/*
 * sketch_handler.c
 *		The handler of the sketch access method, its option and its setting.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/reloptions.h"
#include "commands/vacuum.h"
#include "utils/guc.h"

#include "../compat.h"
#include "sketch.h"

typedef struct SketchOptions
{
	int32 vl_len_; /* varlena header (do not touch directly!) */
	int	  bits;	   /* 0 if it is not given */
} SketchOptions;

static relopt_kind options_kind;

double sketch_recall_setting = 0.99;

/* Defines the option and the setting, when the library is loaded. */
void
sketch_init(void)
{
	options_kind = add_reloption_kind();
	add_int_reloption(options_kind, "bits", "Number of directions in which a vector is sketched", 0,
					  0, SKETCH_MAX_BITS, AccessExclusiveLock);
	DefineCustomRealVariable("unifdiag.recall",
							 "Share of the true nearest rows that a sketch index has to find.",
							 "With 1 a search looks at all rows.", &sketch_recall_setting, 0.99,
							 0.0, 1.0, PGC_USERSET, 0, NULL, NULL, NULL);
}

static bytea *
sketch_options(Datum options, bool validate)
{
	static const relopt_parse_elt table[] = {
		{"bits", RELOPT_TYPE_INT, offsetof(SketchOptions, bits)},
	};

	return build_reloptions(options, validate, options_kind, sizeof(SketchOptions), table,
							lengthof(table));
}

/* The option as it was given when the index was made; 0 if it was not. */
int
sketch_bits_option(Relation index)
{
	const SketchOptions *options = (const SketchOptions *) index->rd_options;

	return options == NULL ? 0 : options->bits;
}

/* What a code looks like by that option. */
SketchShape
sketch_index_shape(int option, int dims)
{
	return sketch_shape(dims, option == 0 ? Min(SKETCH_DEFAULT_BITS, dims) : option);
}

static const IndexAmRoutine sketch_routine = {
	.type = T_IndexAmRoutine,
	.amstrategies = SKETCH_STRATEGIES,
	.amsupport = SKETCH_PROCS,
	.amcanorderbyop = true,
	/* all rows are in the index, so that a scan needs no condition */
	.amoptionalkey = true,
	/* the cleanup may learn, and reads the table for it: the leader does that */
	.amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL,
	.amkeytype = InvalidOid,

	.ambuild = sketch_build,
	.ambuildempty = sketch_build_empty,
	.aminsert = sketch_insert,
	.ambulkdelete = flat_bulk_delete,
	.amvacuumcleanup = sketch_vacuum_cleanup,
	.amcostestimate = sketch_cost_estimate,
	.amoptions = sketch_options,
	.ambuildphasename = sketch_phase_name,
	.amvalidate = sketch_validate,
	.ambeginscan = sketch_begin_scan,
	.amrescan = sketch_rescan,
	.amgettuple = sketch_get_tuple,
	.amendscan = sketch_end_scan,
};

PG_FUNCTION_INFO_V1(sketch_handler);
Datum
sketch_handler(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	return_am_routine(sketch_routine);
}

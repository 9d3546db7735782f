/*
 * hamming_handler.c
 *		The handler of the hamming access method.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/reloptions.h"
#include "commands/vacuum.h"

#include "../compat.h"
#include "hamming.h"

/* There are no options; whoever gives one is told so. */
static bytea *
hamming_options(Datum options, bool validate)
{
	static bool		   started = false;
	static relopt_kind kind;

	if (!started)
		kind = add_reloption_kind();
	started = true;
	return build_reloptions(options, validate, kind, sizeof(int32), NULL, 0);
}

/* Entries are codes as they are: an index-only scan has all of them. */
static bool
hamming_can_return(Relation index pg_attribute_unused(), int column pg_attribute_unused())
{
	return true;
}

static const IndexAmRoutine hamming_routine = {
	.type = T_IndexAmRoutine,
	.amstrategies = HAMMING_STRATEGIES,
	.amsupport = 0,
	.amcanorderbyop = true,
	/* all rows are in the index, so that a scan needs no condition */
	.amoptionalkey = true,
	.amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_CLEANUP,
	.amkeytype = InvalidOid,

	.ambuild = hamming_build,
	.ambuildempty = hamming_build_empty,
	.aminsert = hamming_insert,
	.ambulkdelete = flat_bulk_delete,
	.amvacuumcleanup = hamming_vacuum_cleanup,
	.amcanreturn = hamming_can_return,
	.amcostestimate = hamming_cost_estimate,
	.amoptions = hamming_options,
	.ambuildphasename = hamming_phase_name,
	.amvalidate = hamming_validate,
	.ambeginscan = hamming_begin_scan,
	.amrescan = hamming_rescan,
	.amgettuple = hamming_get_tuple,
	.amgetbitmap = hamming_get_bitmap,
	.amendscan = hamming_end_scan,
};

PG_FUNCTION_INFO_V1(hamming_handler);
Datum
hamming_handler(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	return_am_routine(hamming_routine);
}

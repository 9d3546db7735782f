/*
 * handler.c
 *		What the server is told of the hamming access method.
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

PG_FUNCTION_INFO_V1(hamming_handler);
Datum
hamming_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = makeNode(IndexAmRoutine);

	(void) fcinfo;
	routine->amstrategies = HAMMING_STRATEGIES;
	routine->amsupport = 0;
	routine->amcanorderbyop = true;
	/* all rows are in the index, so that a scan needs no condition */
	routine->amoptionalkey = true;
	routine->amparallelvacuumoptions =
		VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_CLEANUP;
	routine->amkeytype = InvalidOid;

	routine->ambuild = hamming_build;
	routine->ambuildempty = hamming_build_empty;
	routine->aminsert = hamming_insert;
	routine->ambulkdelete = hamming_bulk_delete;
	routine->amvacuumcleanup = hamming_vacuum_cleanup;
	routine->amcanreturn = hamming_can_return;
	routine->amcostestimate = hamming_cost_estimate;
	routine->amoptions = hamming_options;
	routine->ambuildphasename = hamming_phase_name;
	routine->amvalidate = hamming_validate;
	routine->ambeginscan = hamming_begin_scan;
	routine->amrescan = hamming_rescan;
	routine->amgettuple = hamming_get_tuple;
	routine->amgetbitmap = hamming_get_bitmap;
	routine->amendscan = hamming_end_scan;
	PG_RETURN_POINTER(routine);
}

/*
 * unifdiag.c
 *		What happens when the server loads the library.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"

#include "code/distance.h"
#include "compat.h"
#include "index/flat.h"
#include "index/sketch.h"
#include "table/table.h"

PG_MODULE_MAGIC;

void
_PG_init(void)
{
	distance_init();
	flat_init();
	sketch_init();
	worker_init();
	MarkGUCPrefixReserved("unifdiag");
}

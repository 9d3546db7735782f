/*
 * unifdiag.c
 *		What happens when the server loads the library.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"

#include "code/distance.h"
#include "compat.h"
#include "index/hamming.h"
#include "table/table.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	distance_init();
	hamming_init();
	worker_init();
	MarkGUCPrefixReserved("unifdiag");
}

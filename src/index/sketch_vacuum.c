/*
 * sketch_vacuum.c
 *		What VACUUM does to a sketch index beyond what it does to every flat one.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/index.h"
#include "storage/lmgr.h"

#include "../compat.h"
#include "sketch_introduce.h"

/*
 * A model for entries without codes.  Others do not see the snapshot of VACUUM when they remove what is
 * stored out of line; what does that is a VACUUM of that table, and must not run meanwhile.
 */
static void
introduce(Relation index)
{
	Relation  heap = table_open(IndexGetRelation(RelationGetRelid(index), false), NoLock);
	const Oid toast = heap->rd_rel->reltoastrelid;

	if (!OidIsValid(toast) || ConditionalLockRelationOid(toast, ShareUpdateExclusiveLock))
	{
		sketch_introduce(heap, index);
		if (OidIsValid(toast))
			UnlockRelationOid(toast, ShareUpdateExclusiveLock);
	}
	table_close(heap, NoLock);
}

IndexBulkDeleteResult *
sketch_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (!info->analyze_only && sketch_may_introduce(info->index))
		introduce(info->index);
	return flat_vacuum_cleanup(info, stats, 0);
}

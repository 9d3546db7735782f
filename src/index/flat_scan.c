/*
 * flat_scan.c
 *		What scans of all flat indexes have in common.
 */
#include "postgres.h"

#include "access/genam.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "flat_scan.h"
#include "nearest.h"

IndexScanDesc
flat_begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);

	if (norderbys > 0)
	{
		scan->xs_orderbyvals = palloc0(sizeof(Datum) * norderbys);
		scan->xs_orderbynulls = palloc0(sizeof(bool) * norderbys);
	}
	return scan;
}

void
flat_take_keys(IndexScanDesc scan, ScanKey keys, ScanKey orderbys)
{
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	if (orderbys != NULL && scan->numberOfOrderBys > 0)
		memmove(scan->orderByData, orderbys, scan->numberOfOrderBys * sizeof(ScanKeyData));
}

/*
 * Rows may be vacuumed away between our finding them and their being looked at, and others
 * take their places: only a snapshot by which those cannot be seen makes this safe.
 */
void
flat_check_snapshot(IndexScanDesc scan)
{
	if (!IsMVCCSnapshot(scan->xs_snapshot))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("index \"%s\" cannot be scanned with a non-MVCC snapshot",
					   RelationGetRelationName(scan->indexRelation)));
}

ItemPointerData
flat_row_of_key(IndexScanDesc scan, uint64 key)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, KEY_BLOCK(key), KEY_OFFSET(key));
	/* the scan of a bitmap has no table */
	flat_check_tid(scan->heapRelation, scan->indexRelation, tid);
	return tid;
}

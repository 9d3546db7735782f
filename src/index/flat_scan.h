/*
 * flat_scan.h
 *		What scans of all flat indexes have in common.
 */
#ifndef UNIFDIAG_FLAT_SCAN_H
#define UNIFDIAG_FLAT_SCAN_H

#include "access/relscan.h"

#include "flat.h"

/* a scan with room for the distances of a row */
extern IndexScanDesc flat_begin_scan(Relation index, int nkeys, int norderbys);

/* takes over the keys of a rescan */
extern void flat_take_keys(IndexScanDesc scan, ScanKey keys, ScanKey orderbys);

/* raises an error if rows cannot be looked for with the scan's snapshot */
extern void flat_check_snapshot(IndexScanDesc scan);

/* the row of an entry's key (nearest.h), after checking that it may be one */
extern ItemPointerData flat_row_of_key(IndexScanDesc scan, uint64 key);

#endif /* UNIFDIAG_FLAT_SCAN_H */

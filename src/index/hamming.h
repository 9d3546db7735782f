/*
 * hamming.h
 *		The hamming access method: a flat index whose codes are the column's values.
 */
#ifndef UNIFDIAG_HAMMING_H
#define UNIFDIAG_HAMMING_H

#include "access/amapi.h"
#include "nodes/execnodes.h"

#include "../code/code_type.h"
#include "flat.h"

/* strategy numbers of the operator class */
#define HAMMING_DISTANCE_STRATEGY 1 /* code <~> code, for ORDER BY */
#define HAMMING_BALL_STRATEGY 2		/* code <@ hamming_ball */
#define HAMMING_STRATEGIES 2

/* what the index's column holds */
#define hamming_code_type(index) code_type_of((index)->rd_opcintype[0])

/* the phase of a build, for pg_stat_progress_create_index; core has number 1 */
#define HAMMING_PHASE_SCAN 2

/* hamming_build.c */
extern IndexBuildResult *hamming_build(Relation heap, Relation index, IndexInfo *info);
extern void				 hamming_build_empty(Relation index);
extern char				*hamming_phase_name(int64 phase);
extern bool hamming_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						   Relation heap, IndexUniqueCheck check, bool unchanged, IndexInfo *info);
extern IndexBulkDeleteResult *
hamming_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

/* hamming_scan.c */
extern IndexScanDesc hamming_begin_scan(Relation index, int nkeys, int norderbys);
extern void
hamming_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool	 hamming_get_tuple(IndexScanDesc scan, ScanDirection direction);
extern int64 hamming_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void	 hamming_end_scan(IndexScanDesc scan);

/* hamming_check.c: opens a valid index of this kind, and its table */
extern Relation hamming_open_index(Oid oid, Relation *heap);

/* hamming_cost.c */
extern void
hamming_cost_estimate(struct PlannerInfo *root, struct IndexPath *path, double loops, Cost *startup,
					  Cost *total, Selectivity *selectivity, double *correlation, double *pages);

/* hamming_validate.c */
extern bool hamming_validate(Oid opclass);

#endif /* UNIFDIAG_HAMMING_H */

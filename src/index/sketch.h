/*
 * sketch.h
 *		The sketch access method: a flat index whose codes are sketches of the column's vectors.
 *
 * After the fields of flat.h the metapage has
 *
 * offset  size  field       meaning
 *      0     4  bits        the option, at most so many bits of a code; 0 if it was not given
 *      4     4  metric      a SketchMetric
 *      8     4  block       the first page of the model in use
 *     12     4  crc         CRC-32C of its bytes
 *     16     8  learnt      rows that it was learnt from
 *     24     8  calibrated  rows among which its calibration found neighbours
 *     32     4  explained   the share of these rows' variance that is in its subspace
 *     36     4              zero
 *
 * All but the first two mean nothing while there is no model.  Its bytes are a SketchParameters, the mean
 * and the projection (src/math/sketch.h).
 */
#ifndef UNIFDIAG_SKETCH_AM_H
#define UNIFDIAG_SKETCH_AM_H

#include "access/amapi.h"
#include "nodes/execnodes.h"

#include "../math/sketch.h"
#include "../vectors.h"
#include "flat.h"

/* strategy numbers: an operator class has one of them, which tells its distance */
#define SKETCH_L2_STRATEGY 1
#define SKETCH_COSINE_STRATEGY 2
#define SKETCH_IP_STRATEGY 3
#define SKETCH_STRATEGIES 3

/* support function: real[] from the type, with arguments of a cast; not needed for real[] */
#define SKETCH_VECTOR_PROC 1
#define SKETCH_PROCS 1

/* bits of a code, unless the option says another number, and the most that it may say */
#define SKETCH_DEFAULT_BITS 256
#define SKETCH_MAX_BITS 16000

/* rows for each bit that it takes to learn a model, and that a build learns from */
#define SKETCH_LEAST_ROWS 10
#define SKETCH_SAMPLE_ROWS 20

/* rows that play queries when a model is calibrated, and others from which its scales come */
#define SKETCH_QUERIES 160
#define SKETCH_FIT_ROWS 512

/* entries that the first pass of a search keeps: a few times what is fetched for ten rows */
#define SKETCH_FIRST_KEEP 128

/* the phases of a build, for pg_stat_progress_create_index; core has number 1 */
#define SKETCH_PHASE_LEARN 2
#define SKETCH_PHASE_SCAN 3

typedef struct SketchMeta
{
	uint32 bits;
	uint32 metric;
	uint32 block;
	uint32 crc;
	uint64 learnt;
	uint64 calibrated;
	float  explained;
	uint32 zero;
} SketchMeta;

StaticAssertDecl(sizeof(SketchMeta) == 40, "the metapage ends where the table does");

#define SketchPageGetMeta(page) ((SketchMeta *) (FlatPageGetMeta(page) + 1))

/* A model of an index, ready for use: below a memory context that the backend keeps. */
typedef struct SketchReady
{
	SketchModel	   model;
	uint64		   calibrated;
	SketchEncoder *encoder; /* of single rows, and room for a code; NULL until they are needed */
	uint64		  *words;
	MemoryContext  context;
} SketchReady;

/* How the values of an index become vectors. */
typedef struct SketchReader
{
	SketchMetric metric;
	bool		 has_proc;
	FmgrInfo	 proc;
} SketchReader;

/* sketch_vector.c */
extern SketchMetric sketch_metric(Relation index);
extern void			sketch_reader_init(SketchReader *reader, Relation index);
extern Vector		sketch_read_vector(SketchReader *reader, Datum value);
extern bool			sketch_try_read_vector(SketchReader *reader, Datum value, Vector *vector);
extern void			sketch_check_dims(Relation index, Vector vector, int dims, bool is_built);

/* sketch_model.c */
extern SketchReady	 *sketch_ready(Relation index, uint32 model);
extern SketchEncoder *sketch_ready_encoder(SketchReady *ready);
extern const uint64	 *sketch_encode_one(SketchReady *ready, const float *vector, uint32 *number);
extern void			  sketch_check_model(Relation index, uint32 model);
extern SketchMeta	  sketch_read_meta(Relation index, FlatMeta *flat);
extern void			  sketch_meta_init(Relation index, Page page);
extern void			  sketch_meta_add(Relation index, Page page);

/* sketch_build.c */
extern IndexBuildResult *sketch_build(Relation heap, Relation index, IndexInfo *info);
extern void				 sketch_build_empty(Relation index);
extern char				*sketch_phase_name(int64 phase);

/* sketch_insert.c */
extern bool sketch_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						  Relation heap, IndexUniqueCheck check, bool unchanged, IndexInfo *info);

/* sketch_scan.c */
extern IndexScanDesc sketch_begin_scan(Relation index, int nkeys, int norderbys);
extern void
sketch_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool sketch_get_tuple(IndexScanDesc scan, ScanDirection direction);
extern void sketch_end_scan(IndexScanDesc scan);

/* sketch_vacuum.c */
extern IndexBulkDeleteResult *
sketch_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

/* sketch_cost.c */
extern void
sketch_cost_estimate(struct PlannerInfo *root, struct IndexPath *path, double loops, Cost *startup,
					 Cost *total, Selectivity *selectivity, double *correlation, double *pages);

/* sketch_validate.c */
extern bool sketch_validate(Oid opclass);

/* sketch_handler.c */
extern int		   sketch_bits_option(Relation index);
extern SketchShape sketch_index_shape(int option, int dims);
extern double	   sketch_recall_setting;
extern void		   sketch_init(void);

#endif /* UNIFDIAG_SKETCH_AM_H */

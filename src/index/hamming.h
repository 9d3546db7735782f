/*
 * hamming.h
 *		The hamming access method: its file format, and what its files share.
 *
 * Block 0 is the metapage.  Every other block holds entries: codes with the TIDs of their
 * rows, or only TIDs, of rows whose code is NULL.  There is no order among pages or
 * entries: a search reads them all.  src/README.md says why, and how pages change.
 *
 * All pages have the standard header, no special space, and after the header
 *
 * offset  size  field     meaning
 *      0     2  kind      HAMMING_META, HAMMING_CODES or HAMMING_NULLS
 *      2     2  count     entries on the page
 *      4     2  nbits     length of the page's codes; 0 on other pages
 *      6     2  page_id   HAMMING_PAGE_ID, for programs that look at files
 *
 * The metapage has after that
 *
 * offset  size  field     meaning
 *      0     4  magic     HAMMING_MAGIC
 *      4     4  version   HAMMING_VERSION
 *      8     4  nbits     length of the codes; 0 if it is not known
 *     12     4  end       pages from this block on have no entries
 *     16     4  started   blocks from this one on have got no first entry since VACUUM last began
 *     20     4  reserved  zero
 *     24     8  moves     counts the times that VACUUM moved entries to another page
 *     32     8  codes     entries with a code, when the index was built or last vacuumed
 *     40     8  nulls     entries without, likewise
 *
 * A page of entries has zeros after that, up to HAMMING_ENTRIES, and then room for capacity
 * entries of a code of B = ceil(nbits/8) bytes (0 for NULL) and a TID: capacity = (page size -
 * HAMMING_ENTRIES - 1) / (B + 6), or, if codes have whole words, the multiple of 8 below, unless
 * that leaves out more than 1/28 of the entries, since the index shall be small.  Thus columns of
 * words start at cache lines, which is how kernels read them.  Each part is a column that starts
 * where it would if the page were full:
 *
 *   floor(B/8) columns of 8-byte words: the codes' first words, their second words, ...
 *   one column of the B mod 8 bytes that are left, if any
 *   the TIDs, 6 bytes each, at the next even offset
 *
 * pd_lower is the end of the last TID.  What no entry uses is zero.  A block of zeros, which
 * a crash may leave behind, counts as a page without entries.
 */
#ifndef UNIFDIAG_HAMMING_H
#define UNIFDIAG_HAMMING_H

#include "access/amapi.h"
#include "access/generic_xlog.h"
#include "datatype/timestamp.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "../code/bithash.h"
#include "../compat.h"

#define HAMMING_MAGIC 0x48414d31 /* "HAM1" */
#define HAMMING_VERSION 3
#define HAMMING_PAGE_ID 0xFF88

/* offset of the entries on a page */
#define HAMMING_ENTRIES 64

#define HAMMING_METAPAGE 0
#define HAMMING_FIRST_PAGE 1

/*
 * Free space as the free space map has it, in steps of 32 bytes: a page with this much takes
 * NULLs; one of codes is never said to have as much.
 */
#define HAMMING_ROOM_FOR_NULL (BLCKSZ - 64)
#define HAMMING_MOST_ROOM_FOR_CODES (BLCKSZ - 96)

/* strategy numbers of the operator class */
#define HAMMING_DISTANCE_STRATEGY 1 /* bithash <~> bithash, for ORDER BY */
#define HAMMING_BALL_STRATEGY 2		/* bithash <@ hamming_ball */
#define HAMMING_STRATEGIES 2

/* the phase of a build, for pg_stat_progress_create_index; core has number 1 */
#define HAMMING_PHASE_SCAN 2

typedef enum HammingPageKind
{
	HAMMING_META = 1,
	HAMMING_CODES = 2,
	HAMMING_NULLS = 3
} HammingPageKind;

typedef struct HammingHead
{
	uint16 kind;
	uint16 count;
	uint16 nbits;
	uint16 page_id;
} HammingHead;

typedef struct HammingMeta
{
	uint32 magic;
	uint32 version;
	uint32 nbits;
	uint32 end;
	uint32 started;
	uint32 reserved;
	uint64 moves;
	uint64 codes;
	uint64 nulls;
} HammingMeta;

StaticAssertDecl(sizeof(HammingHead) == 8, "the head is what the table says");
StaticAssertDecl(MAXALIGN(SizeOfPageHeaderData) + sizeof(HammingHead) <= HAMMING_ENTRIES,
				 "the head is before the entries");
StaticAssertDecl(offsetof(HammingMeta, moves) == 24, "the metapage is what the table says");
StaticAssertDecl(sizeof(HammingMeta) == 48, "the metapage ends where the table does");
StaticAssertDecl(sizeof(ItemPointerData) == 6, "a TID has six bytes");

/* Where on a page of one kind things are. */
typedef struct HammingLayout
{
	HammingPageKind kind;
	int				nbits;	  /* of a code; 0 if the kind is HAMMING_NULLS */
	int				nbytes;	  /* of a code; 0 if the kind is HAMMING_NULLS */
	int				words;	  /* columns of whole words */
	int				rest;	  /* bytes of the last column, 0 to 7 */
	int				capacity; /* entries; 0 while the codes' length is not known */
	int				tids;	  /* offset of the TIDs */
} HammingLayout;

/* What a page of entries holds. */
typedef struct HammingContents
{
	const HammingLayout *layout; /* NULL if it has no entries, or codes of a new length */
	int					 count;
} HammingContents;

/* An entry to be stored: its bits, or NULL, and the row. */
typedef struct HammingEntry
{
	const uint8	   *bits;
	ItemPointerData tid;
} HammingEntry;

#define HammingPageGetHead(page) ((HammingHead *) PageGetContents(page))
#define HammingPageGetMeta(page) ((HammingMeta *) (HammingPageGetHead(page) + 1))
#define HammingPageGetTids(page, layout) ((ItemPointer) ((char *) (page) + (layout)->tids))
#define HammingPageGetWords(page, layout, column) \
	((uint8 *) (page) + HAMMING_ENTRIES + (Size) (column) *8 * (layout)->capacity)
#define HammingPageGetRest(page, layout) HammingPageGetWords(page, layout, (layout)->words)

/* What a backend remembers of an index, in rd_amcache. */
typedef struct HammingMemory
{
	int			nbits;		  /* length of the codes, if it is known */
	BlockNumber next_look_up; /* block that is the next to be looked up again */
	TimestampTz looked_up;	  /* when that was last done for some */
	BlockNumber blocks;
	Buffer		buffers[FLEXIBLE_ARRAY_MEMBER]; /* where blocks were last found, or 0 */
} HammingMemory;

/* page.c */
extern HammingLayout hamming_layout(HammingPageKind kind, int nbits);
extern void			 hamming_page_init(Page page, const HammingLayout *layout);
extern void			 hamming_meta_init(Page page, int nbits);
extern Buffer hamming_read(Relation index, BlockNumber block, int lock, BufferAccessStrategy how);
extern HammingMeta *hamming_checked_meta(Relation index, Page page);
extern HammingMeta	hamming_read_meta(Relation index);
extern HammingContents
hamming_page_contents(Relation index, Page page, BlockNumber block, const HammingLayout *codes,
					  const HammingLayout *nulls);
extern void hamming_page_add(Page page, const HammingLayout *layout, HammingEntry entry);
extern void
hamming_page_copy(Page from, int source, Page to, int target, const HammingLayout *layout);
extern void hamming_page_set_count(Page page, const HammingLayout *layout, int count);
extern void hamming_page_get_code(Page page, const HammingLayout *layout, int entry, uint8 *bits);
extern Size hamming_page_room(HammingContents contents);
pg_noreturn extern void hamming_corrupt(Relation index, BlockNumber block, const char *what);

/* handler.c: whether the server is used in ways that are not public, see compat.h */
extern bool hamming_private_interfaces;
extern void hamming_init(void);

/* recent.c; search.h has the rest of it */
extern HammingMemory *hamming_memory(Relation index, BlockNumber blocks);

/* build.c */
extern IndexBuildResult *hamming_build(Relation heap, Relation index, IndexInfo *info);
extern void				 hamming_build_empty(Relation index);
extern char				*hamming_phase_name(int64 phase);
extern int				 hamming_declared_bits(Relation index);
extern void hamming_check_code(Relation index, BitHashView code, int nbits, bool is_built);

/* insert.c */
extern bool hamming_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						   Relation heap, IndexUniqueCheck check, bool unchanged, IndexInfo *info);

/* log.c */
extern void
hamming_log_and_add(Relation index, Buffer buffer, const HammingLayout *layout, HammingEntry entry);

/* scan.c */
extern IndexScanDesc hamming_begin_scan(Relation index, int nkeys, int norderbys);
extern void
hamming_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool	 hamming_get_tuple(IndexScanDesc scan, ScanDirection direction);
extern int64 hamming_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void	 hamming_end_scan(IndexScanDesc scan);

/* vacuum.c */
extern IndexBulkDeleteResult *
hamming_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
					IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *
hamming_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

/* cost.c */
extern void
hamming_cost_estimate(struct PlannerInfo *root, struct IndexPath *path, double loops, Cost *startup,
					  Cost *total, Selectivity *selectivity, double *correlation, double *pages);

/* validate.c */
extern bool hamming_validate(Oid opclass);

#endif /* UNIFDIAG_HAMMING_H */

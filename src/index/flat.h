/*
 * flat.h
 *		Flat indexes: the pages that the access methods of this folder share.
 *
 * Block 0 is the metapage.  Most other blocks hold entries: codes with the TIDs of their
 * rows, or only TIDs, of rows whose value is NULL.  There is no order among pages or
 * entries: a search reads them all.  An index whose codes come from a model of its own keeps
 * that in further pages.  README.md says why, and how pages change.
 *
 * All pages have the standard header, no special space, and after the header
 *
 * offset  size  field     meaning
 *      0     2  kind      FLAT_META, FLAT_CODES, FLAT_NULLS or FLAT_MODEL
 *      2     2  count     entries on the page; bytes of the model, if it has those
 *      4     2  nbits     length of the page's codes; 0 on other pages
 *      6     2  page_id   FLAT_PAGE_ID, for programs that look at files
 *      8     4  model     the model by which the page's codes were made, or that it is part of;
 *                         0 if there is none: then, in a sketch index, the codes are zeros
 *     12     2  dims      of the vectors that the page's codes stand for; 0 on other pages
 *     14     2            zero
 *
 * The metapage has after that
 *
 * offset  size  field     meaning
 *      0     4  magic     FLAT_MAGIC
 *      4     4  version   FLAT_VERSION
 *      8     4  nbits     length of the codes; 0 if it is not known
 *     12     4  end       pages from this block on have no entries
 *     16     4  started   blocks from this one on have got no first entry since VACUUM last began
 *     20     4            zero
 *     24     8  moves     counts the times that VACUUM moved entries to another page
 *     32     8  codes     entries with a code, when the index was built or last vacuumed
 *     40     8  nulls     entries without, likewise
 *     48     4  numbers   bytes of the numbers beside each code: 0 or 4
 *     52     4  dims      of the vectors that codes stand for; 0 if it is not known, or they do not
 *     56     4  model     the model that is in use; 0 if there is none
 *     60     4  learning  the model whose pages are being written; 0 if there is none
 *
 * A page of entries has zeros after that, up to FLAT_ENTRIES, and then room for capacity
 * entries of a code of W = ceil(nbits/64) words (0 for NULL), N bytes of numbers (0 for NULL) and a
 * TID: capacity = (page size - FLAT_ENTRIES) / (8 W + N + 6), or the multiple of 8 below, unless
 * that leaves out more than 1/28 of the entries, to keep the index small.  Thus columns of
 * words start at cache lines, which is how kernels read them.  Each part is a column that starts
 * where it would if the page were full:
 *
 *   W columns of words: the codes' first words, their second words, ...; after a code's last
 *   bit there are zeros.  Of a sketch only the words of signs are columns (src/math/sketch.h says
 *   how many)
 *   the numbers, N bytes each: beside the signs, with which they are read
 *   the other words of a sketch, entry by entry
 *   the TIDs, 6 bytes each
 *
 * pd_lower is the end of the last TID.  What no entry uses is zero.  A block of zeros, which
 * a crash may leave behind, counts as a page without entries.
 *
 * A page of a model has at FLAT_ENTRIES the block with what follows (4 bytes; 0 if it is the last),
 * 4 zeros, and count bytes of the model, where pd_lower is.  If the metapage does not name the
 * model any more, it counts as a page without entries.
 */
#ifndef UNIFDIAG_FLAT_H
#define UNIFDIAG_FLAT_H

#include "access/genam.h"
#include "access/generic_xlog.h"
#include "datatype/timestamp.h"
#include "storage/bufmgr.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "../code/bithash.h"
#include "../compat.h"

#define FLAT_MAGIC 0x464c4154 /* "FLAT" */
#define FLAT_VERSION 7
#define FLAT_PAGE_ID 0xFF88

/* offset of the entries on a page */
#define FLAT_ENTRIES 64

#define FLAT_METAPAGE 0
#define FLAT_FIRST_PAGE 1

/*
 * Free space as the free space map has it, in steps of 32 bytes: a page with this much takes
 * NULLs; one of codes is never said to have as much.
 */
#define FLAT_ROOM_FOR_NULL (BLCKSZ - 64)
#define FLAT_MOST_ROOM_FOR_CODES (BLCKSZ - 96)

typedef enum FlatPageKind
{
	FLAT_META = 1,
	FLAT_CODES = 2,
	FLAT_NULLS = 3,
	FLAT_MODEL = 4
} FlatPageKind;

typedef struct FlatHead
{
	uint16 kind;
	uint16 count;
	uint16 nbits;
	uint16 page_id;
	uint32 model;
	uint16 dims;
	uint16 zero;
} FlatHead;

typedef struct FlatMeta
{
	uint32 magic;
	uint32 version;
	uint32 nbits;
	uint32 end;
	uint32 started;
	uint32 zero;
	uint64 moves;
	uint64 codes;
	uint64 nulls;
	uint32 numbers;
	uint32 dims;
	uint32 model;
	uint32 learning;
} FlatMeta;

StaticAssertDecl(sizeof(FlatHead) == 16, "the head is what the table says");
StaticAssertDecl(MAXALIGN(SizeOfPageHeaderData) + sizeof(FlatHead) <= FLAT_ENTRIES,
				 "the head is before the entries");
StaticAssertDecl(offsetof(FlatMeta, moves) == 24, "the metapage is what the table says");
StaticAssertDecl(sizeof(FlatMeta) == 64, "the metapage ends where the table does");
StaticAssertDecl(sizeof(ItemPointerData) == 6, "a TID has six bytes");

/* Where on a page of one kind things are. */
typedef struct FlatLayout
{
	FlatPageKind kind;
	int			 nbits;	   /* of a code; 0 if the kind is FLAT_NULLS */
	int			 nbytes;   /* of a code; 0 if the kind is FLAT_NULLS */
	int			 words;	   /* that a code is stored in, */
	int			 columns;  /* and those of them that are columns */
	int			 capacity; /* entries; 0 while the codes' length is not known */
	int			 numbers;  /* offset of the numbers; 0 if there are none */
	int			 rest;	   /* offset of the words that are no columns */
	int			 tids;	   /* offset of the TIDs */
	int			 dims;	   /* of the vectors that codes stand for, or 0 */
	uint32		 model;	   /* by which codes are made, or 0 */
} FlatLayout;

/* What a page of entries holds. */
typedef struct FlatContents
{
	const FlatLayout *layout; /* NULL if it has no entries, or codes of a new length */
	int				  count;
	uint32			  model;	/* by which its codes were made */
	bool			  is_model; /* it has no entries, but a part of a model that is in use */
} FlatContents;

/* An entry to be stored: its bits, or NULL, its numbers, and the row. */
typedef struct FlatEntry
{
	const uint8	   *bits;
	uint32			numbers;
	ItemPointerData tid;
} FlatEntry;

#define FlatPageGetHead(page) ((FlatHead *) PageGetContents(page))
#define FlatPageGetMeta(page) ((FlatMeta *) (FlatPageGetHead(page) + 1))
#define FlatPageGetTids(page, layout) ((ItemPointer) ((char *) (page) + (layout)->tids))
#define FlatPageGetNumbers(page, layout) ((uint32 *) ((char *) (page) + (layout)->numbers))

/* what an entry takes on its page */
#define flat_number_bytes(layout) ((layout)->numbers == 0 ? 0 : sizeof(uint32))
#define flat_entry_bytes(layout) \
	(8 * (layout)->words + flat_number_bytes(layout) + sizeof(ItemPointerData))

#define FlatPageGetWords(page, layout, column) \
	((uint8 *) (page) + FLAT_ENTRIES + (Size) (column) * 8 * (layout)->capacity)

/* the words of an entry that are no columns */
#define flat_rest_bytes(layout) ((int) sizeof(uint64) * ((layout)->words - (layout)->columns))
#define FlatPageGetRest(page, layout, entry) \
	((uint8 *) (page) + (layout)->rest + (Size) (entry) * flat_rest_bytes(layout))

/* What a backend remembers of an index, in rd_amcache. */
typedef struct FlatMemory
{
	FlatLayout	codes;		  /* what pages of codes look like, if that is known */
	BlockNumber next_look_up; /* block that is the next to be looked up again */
	TimestampTz looked_up;	  /* when that was last done for some */
	BlockNumber table_blocks; /* that the table had, when that was last asked */
	BlockNumber blocks;
	Buffer		buffers[FLEXIBLE_ARRAY_MEMBER]; /* where blocks were last found, or 0 */
} FlatMemory;

/* page.c */
extern FlatLayout flat_layout(FlatPageKind kind, int nbits);
extern FlatLayout flat_sketch_layout(int nbits, int dims, uint32 model);
extern FlatLayout flat_codes_layout(const FlatMeta *meta);
extern void		  flat_page_init(Page page, const FlatLayout *layout);
extern void		  flat_meta_init(Page page, int nbits);
extern Buffer	  flat_read(Relation index, BlockNumber block, int lock, BufferAccessStrategy how);
extern FlatMeta	 *flat_checked_meta(Relation index, Page page);
extern FlatMeta	  flat_read_meta(Relation index);
extern FlatContents flat_page_contents(Relation index, Page page, BlockNumber block,
									   const FlatLayout *codes, const FlatLayout *nulls);
extern void			flat_page_add(Page page, const FlatLayout *layout, FlatEntry entry);
extern void flat_page_set_code(Page page, const FlatLayout *layout, int entry, const uint8 *bits,
							   uint32 numbers);
extern void flat_page_copy(Page from, int source, Page to, int target, const FlatLayout *layout);
extern void flat_page_set_count(Page page, const FlatLayout *layout, int count);
extern void flat_page_get_code(Page page, const FlatLayout *layout, int entry, uint8 *bits);
extern Size flat_page_room(FlatContents contents);
pg_noreturn extern void flat_corrupt(Relation index, BlockNumber block, const char *what);
extern void				flat_check_tid(Relation table, Relation index, ItemPointerData tid);

/* recent.c: whether the server is used in ways that are not public, see compat.h */
extern bool		   flat_private_interfaces;
extern FlatMemory *flat_memory(Relation index, BlockNumber blocks);
extern void		   flat_init(void);

/* insert.c */
extern bool		  flat_insert(Relation index, const FlatLayout *codes, FlatEntry entry);
extern FlatLayout flat_codes(Relation index);
extern void		  flat_forget_codes(Relation index);

/* log.c */
extern void
flat_log_and_add(Relation index, Buffer buffer, const FlatLayout *layout, FlatEntry entry);

/* vacuum.c */
extern IndexBulkDeleteResult *flat_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
											   IndexBulkDeleteCallback callback, void *state);
/* declared is the length of the codes as the column's type gives it, or 0 if it does not */
extern IndexBulkDeleteResult *
flat_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, int declared);

#endif /* UNIFDIAG_FLAT_H */

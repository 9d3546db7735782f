/*
 * page.c
 *		Pages of a flat index: where things are, and the checks that come before
 *		anything on a page is believed.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#include "../compat.h"
#include "../math/sketch.h"
#include "../vectors.h"
#include "flat.h"

/* Where things are, if entries have codes of so many bits, or else sketches of so many. */
static FlatLayout
make_layout(FlatPageKind kind, int nbits, bool is_sketch)
{
	FlatLayout layout;
	const int  nbytes = BITHASH_BYTES(nbits);
	const int  words = (nbytes + 7) / 8;
	const int  number_bytes = is_sketch ? sizeof(uint32) : 0;

	memset(&layout, 0, sizeof(layout));
	layout.kind = kind;
	layout.nbits = nbits;
	layout.nbytes = nbytes;
	layout.words = words;
	layout.columns = is_sketch ? sketch_sign_words(words) : words;
	layout.capacity =
		(BLCKSZ - FLAT_ENTRIES) / (8 * words + number_bytes + (int) sizeof(ItemPointerData));
	if (words > 0 && layout.capacity % 8 <= layout.capacity / 28)
		layout.capacity -= layout.capacity % 8;
	/* no code fits on any page before their length is known */
	if (kind == FLAT_CODES && nbits == 0)
		layout.capacity = 0;
	layout.numbers = FLAT_ENTRIES + layout.capacity * 8 * layout.columns;
	layout.rest = layout.numbers + layout.capacity * number_bytes;
	layout.tids = layout.rest + layout.capacity * flat_rest_bytes(&layout);
	if (!is_sketch)
		layout.numbers = 0;
	return layout;
}

/* The layout of one kind of page, whose codes are all that is known of a row. */
FlatLayout
flat_layout(FlatPageKind kind, int nbits)
{
	return make_layout(kind, kind == FLAT_CODES ? nbits : 0, false);
}

/* The layout of a page of codes that stand for vectors, with numbers beside them. */
FlatLayout
flat_sketch_layout(int nbits, int dims, uint32 model)
{
	FlatLayout layout = make_layout(FLAT_CODES, nbits, true);

	layout.dims = dims;
	layout.model = model;
	return layout;
}

/* The layout of the pages of codes as the metapage has it. */
FlatLayout
flat_codes_layout(const FlatMeta *meta)
{
	if (meta->numbers == 0)
		return flat_layout(FLAT_CODES, (int) meta->nbits);
	return flat_sketch_layout((int) meta->nbits, (int) meta->dims, meta->model);
}

static void
init_page(Page page, FlatPageKind kind, int nbits)
{
	FlatHead *head;

	PageInit(page, BLCKSZ, 0);
	head = FlatPageGetHead(page);
	head->kind = kind;
	head->nbits = nbits;
	head->page_id = FLAT_PAGE_ID;
	((PageHeader) page)->pd_lower = FLAT_ENTRIES;
}

/* A page of entries, without any. */
void
flat_page_init(Page page, const FlatLayout *layout)
{
	init_page(page, layout->kind, layout->nbits);
	FlatPageGetHead(page)->dims = layout->dims;
	FlatPageGetHead(page)->model = layout->model;
}

/* The metapage of an index without any other page; of codes of so many bits, if not 0. */
void
flat_meta_init(Page page, int nbits)
{
	FlatMeta *meta = FlatPageGetMeta(page);

	init_page(page, FLAT_META, 0);
	meta->magic = FLAT_MAGIC;
	meta->version = FLAT_VERSION;
	meta->nbits = nbits;
	meta->end = FLAT_FIRST_PAGE;
	((PageHeader) page)->pd_lower = (char *) (meta + 1) - (char *) page;
}

/* A block's buffer, pinned, and locked unless lock is BUFFER_LOCK_UNLOCK. */
Buffer
flat_read(Relation index, BlockNumber block, int lock, BufferAccessStrategy how)
{
	Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, how);

	if (lock != BUFFER_LOCK_UNLOCK)
		LockBuffer(buffer, lock);
	return buffer;
}

void
flat_corrupt(Relation index, BlockNumber block, const char *what)
{
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("index \"%s\" is corrupt in block %u: %s", RelationGetRelationName(index), block,
				   what),
			errhint("Please REINDEX it."));
}

/* Whether a table has no such block; of other kinds of tables it is not known where their rows are. */
static bool
is_outside(Relation table, Relation index, BlockNumber block)
{
	if (table->rd_tableam != GetHeapamTableAmRoutine() ||
		block < flat_memory(index, 0)->table_blocks)
		return false;
	/* it may have grown */
	flat_memory(index, 0)->table_blocks = RelationGetNumberOfBlocks(table);
	return block >= flat_memory(index, 0)->table_blocks;
}

/*
 * Raises an error if no row can have this TID, which is an entry's; table may be NULL if it is not read.  It
 * comes before the TID is handed to the server, which trusts indexes: for an impossible block it would even
 * add a page to the table, and what reading a block after the last one leaves in memory, it later takes for
 * the contents of a new page there.
 */
void
flat_check_tid(Relation table, Relation index, ItemPointerData tid)
{
	const BlockNumber block = ItemPointerGetBlockNumberNoCheck(&tid);

	if (block == InvalidBlockNumber ||
		ItemPointerGetOffsetNumberNoCheck(&tid) == InvalidOffsetNumber ||
		(table != NULL && is_outside(table, index, block)))
		ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("index \"%s\" is corrupt: an entry points to no row",
					   RelationGetRelationName(index)),
				errhint("Please REINDEX it."));
}

/* The head of a page that is not new, after checking that the page is ours. */
static FlatHead *
checked_head(Relation index, Page page, BlockNumber block)
{
	if (((PageHeader) page)->pd_special != BLCKSZ || FlatPageGetHead(page)->page_id != FLAT_PAGE_ID)
		flat_corrupt(index, block, "it is not a page of such an index");
	return FlatPageGetHead(page);
}

/* What the metapage, which the caller has locked, says, after checking that it is one. */
FlatMeta *
flat_checked_meta(Relation index, Page page)
{
	FlatMeta *meta = FlatPageGetMeta(page);

	if (PageIsNew(page) || checked_head(index, page, FLAT_METAPAGE)->kind != FLAT_META)
		flat_corrupt(index, FLAT_METAPAGE, "it is not a metapage");
	if (meta->magic != FLAT_MAGIC)
		flat_corrupt(index, FLAT_METAPAGE, "the metapage has a wrong magic number");
	if (meta->version != FLAT_VERSION)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("index \"%s\" has format version %u, but this library knows version %u",
					   RelationGetRelationName(index), meta->version, FLAT_VERSION),
				errhint("Please REINDEX it."));
	if (meta->nbits > BITHASH_MAX_BITS)
		flat_corrupt(index, FLAT_METAPAGE, "the metapage has an impossible code length");
	if (meta->numbers != 0 && meta->numbers != sizeof(uint32))
		flat_corrupt(index, FLAT_METAPAGE, "the metapage has an impossible size of numbers");
	if (meta->dims > VECTOR_MAX_DIMS || (meta->dims != 0 && meta->numbers == 0))
		flat_corrupt(index, FLAT_METAPAGE, "the metapage has an impossible number of dimensions");
	if (meta->dims == 0 && (meta->model != 0 || meta->learning != 0))
		flat_corrupt(index, FLAT_METAPAGE, "the metapage has an impossible model");
	if (meta->end < FLAT_FIRST_PAGE || meta->end > RelationGetNumberOfBlocks(index))
		flat_corrupt(index, FLAT_METAPAGE, "the index does not end within its file");
	return meta;
}

FlatMeta
flat_read_meta(Relation index)
{
	Buffer		   buffer = flat_read(index, FLAT_METAPAGE, BUFFER_LOCK_SHARE, NULL);
	const FlatMeta meta = *flat_checked_meta(index, BufferGetPage(buffer));

	UnlockReleaseBuffer(buffer);
	return meta;
}

/*
 * Whether a page of a model is in use: by searches, or because somebody is about to introduce it.
 * He notes that in the metapage before he writes the first of its pages.
 */
static bool
model_is_in_use(Relation index, uint32 model, const FlatLayout *codes)
{
	FlatMeta meta;

	if (model == codes->model)
		return true;
	meta = flat_read_meta(index);
	return model != 0 && (model == meta.model || model == meta.learning);
}

/*
 * What a page of entries holds, after checking that it is one, and that its entries lie on it. This
 * comes before anything else that is done with a page: reading on would go astray.
 *
 * The caller has read the codes' length from the metapage some time ago.  If VACUUM has found no
 * more codes since, others may have come that are of no interest to the caller, and of any length.
 */
FlatContents
flat_page_contents(Relation index, Page page, BlockNumber block, const FlatLayout *codes,
				   const FlatLayout *nulls)
{
	FlatContents	  contents = {.layout = NULL, .count = 0, .model = 0, .is_model = false};
	const FlatLayout *layout;
	const FlatHead	 *head;

	if (PageIsNew(page))
		return contents;
	head = checked_head(index, page, block);
	if (head->kind == FLAT_MODEL && codes->numbers != 0)
	{
		contents.is_model = model_is_in_use(index, head->model, codes);
		contents.count = contents.is_model ? head->count : 0;
		return contents;
	}
	if (head->kind != FLAT_CODES && head->kind != FLAT_NULLS)
		flat_corrupt(index, block, "it is not a page of entries");
	contents.count = head->count;
	contents.model = head->model;
	if (head->count == 0)
		return contents;
	layout = head->kind == FLAT_CODES ? codes : nulls;
	if (head->nbits != layout->nbits || head->dims != layout->dims)
	{
		const FlatMeta meta = flat_read_meta(index);

		if (layout == nulls ||
			(meta.nbits == (uint32) layout->nbits && meta.dims == (uint32) layout->dims))
			flat_corrupt(index, block, "its codes are not as long as those of the index");
		return contents;
	}
	if (head->count > layout->capacity)
		flat_corrupt(index, block, "it has more entries than there is room for");
	if (((PageHeader) page)->pd_lower != layout->tids + head->count * sizeof(ItemPointerData))
		flat_corrupt(index, block, "its entries do not end where its header says");
	contents.layout = layout;
	return contents;
}

/* Sets the number of entries; after them all is zero, if there was anything. */
void
flat_page_set_count(Page page, const FlatLayout *layout, int count)
{
	FlatHead *head = FlatPageGetHead(page);
	const int gone = head->count - count;

	if (gone > 0)
	{
		for (int column = 0; column < layout->columns; column++)
			memset(FlatPageGetWords(page, layout, column) + count * 8, 0, gone * 8);
		memset(FlatPageGetRest(page, layout, count), 0, gone * flat_rest_bytes(layout));
		if (layout->numbers != 0)
			memset(FlatPageGetNumbers(page, layout) + count, 0, gone * sizeof(uint32));
		memset(FlatPageGetTids(page, layout) + count, 0, gone * sizeof(ItemPointerData));
	}
	head->count = count;
	((PageHeader) page)->pd_lower = layout->tids + count * (int) sizeof(ItemPointerData);
}

/* The bytes of a code that are in one of its words. */
static inline int
bytes_in_column(const FlatLayout *layout, int column)
{
	return Min(layout->nbytes - 8 * column, 8);
}

/* Writes an entry's code and numbers. */
void
flat_page_set_code(Page page, const FlatLayout *layout, int entry, const uint8 *bits,
				   uint32 numbers)
{
	for (int column = 0; column < layout->columns; column++)
		memcpy(FlatPageGetWords(page, layout, column) + entry * 8, bits + column * 8,
			   bytes_in_column(layout, column));
	memcpy(FlatPageGetRest(page, layout, entry), bits + layout->columns * 8,
		   flat_rest_bytes(layout));
	if (layout->numbers != 0)
		FlatPageGetNumbers(page, layout)[entry] = numbers;
}

/* Adds an entry to a page that has room for it. */
void
flat_page_add(Page page, const FlatLayout *layout, FlatEntry entry)
{
	FlatHead *head = FlatPageGetHead(page);
	const int count = head->count++;

	Assert(head->kind == layout->kind && count < layout->capacity);
	flat_page_set_code(page, layout, count, entry.bits, entry.numbers);
	FlatPageGetTids(page, layout)[count] = entry.tid;
	((PageHeader) page)->pd_lower = layout->tids + (count + 1) * (int) sizeof(ItemPointerData);
}

/* Copies an entry over another place, on the same page or on another. */
void
flat_page_copy(Page from, int source, Page to, int target, const FlatLayout *layout)
{
	for (int column = 0; column < layout->columns; column++)
		memcpy(FlatPageGetWords(to, layout, column) + target * 8,
			   FlatPageGetWords(from, layout, column) + source * 8, 8);
	memcpy(FlatPageGetRest(to, layout, target), FlatPageGetRest(from, layout, source),
		   flat_rest_bytes(layout));
	if (layout->numbers != 0)
		FlatPageGetNumbers(to, layout)[target] = FlatPageGetNumbers(from, layout)[source];
	FlatPageGetTids(to, layout)[target] = FlatPageGetTids(from, layout)[source];
}

/* The code of an entry, as the bytes of its bithash. */
void
flat_page_get_code(Page page, const FlatLayout *layout, int entry, uint8 *bits)
{
	for (int column = 0; column < layout->columns; column++)
		memcpy(bits + column * 8, FlatPageGetWords(page, layout, column) + entry * 8,
			   bytes_in_column(layout, column));
	memcpy(bits + layout->columns * 8, FlatPageGetRest(page, layout, entry),
		   flat_rest_bytes(layout));
}

/*
 * What the free space map should know of a page, in bytes.  Only pages that take NULLs have
 * FLAT_ROOM_FOR_NULL: those of NULLs with room left, and those without any entry, which take
 * either kind.
 */
Size
flat_page_room(FlatContents contents)
{
	const FlatLayout *layout = contents.layout;

	if (contents.count == 0)
		return FLAT_ROOM_FOR_NULL;
	if (layout == NULL || contents.count >= layout->capacity)
		return 0;
	if (layout->kind == FLAT_NULLS)
		return FLAT_ROOM_FOR_NULL;
	return Min((layout->capacity - contents.count) * flat_entry_bytes(layout),
			   FLAT_MOST_ROOM_FOR_CODES);
}

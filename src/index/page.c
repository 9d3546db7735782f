/*
 * page.c
 *		Pages of a hamming index: where things are, and the checks that come before
 *		anything on a page is believed.
 */
#include "postgres.h"

#include "storage/bufpage.h"

#include "../compat.h"
#include "hamming.h"

/* The layout of one kind of page.  No code fits on any page before their length is known. */
HammingLayout
hamming_layout(HammingPageKind kind, int nbits)
{
	HammingLayout layout;
	const int	  nbytes = kind == HAMMING_CODES ? BITHASH_BYTES(nbits) : 0;
	const int	  room = BLCKSZ - HAMMING_ENTRIES - 1;

	layout.kind = kind;
	layout.nbits = kind == HAMMING_CODES ? nbits : 0;
	layout.nbytes = nbytes;
	layout.words = nbytes / 8;
	layout.rest = nbytes % 8;
	layout.capacity = room / (nbytes + (int) sizeof(ItemPointerData));
	if (layout.words > 0 && layout.capacity % 8 <= layout.capacity / 28)
		layout.capacity -= layout.capacity % 8;
	if (kind == HAMMING_CODES && nbits == 0)
		layout.capacity = 0;
	layout.tids = (int) SHORTALIGN(HAMMING_ENTRIES + layout.capacity * nbytes);
	return layout;
}

static void
init_page(Page page, HammingPageKind kind, int nbits)
{
	HammingHead *head;

	PageInit(page, BLCKSZ, 0);
	head = HammingPageGetHead(page);
	head->kind = kind;
	head->nbits = nbits;
	head->page_id = HAMMING_PAGE_ID;
	((PageHeader) page)->pd_lower = HAMMING_ENTRIES;
}

/* A page of entries, without any. */
void
hamming_page_init(Page page, const HammingLayout *layout)
{
	init_page(page, layout->kind, layout->nbits);
}

/* The metapage of an index without any other page. */
void
hamming_meta_init(Page page, int nbits)
{
	HammingMeta *meta = HammingPageGetMeta(page);

	init_page(page, HAMMING_META, 0);
	meta->magic = HAMMING_MAGIC;
	meta->version = HAMMING_VERSION;
	meta->nbits = nbits;
	meta->end = HAMMING_FIRST_PAGE;
	((PageHeader) page)->pd_lower = (char *) (meta + 1) - (char *) page;
}

/* A block's buffer, pinned, and locked unless lock is BUFFER_LOCK_UNLOCK. */
Buffer
hamming_read(Relation index, BlockNumber block, int lock, BufferAccessStrategy how)
{
	Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, how);

	if (lock != BUFFER_LOCK_UNLOCK)
		LockBuffer(buffer, lock);
	return buffer;
}

void
hamming_corrupt(Relation index, BlockNumber block, const char *what)
{
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("index \"%s\" is corrupt in block %u: %s", RelationGetRelationName(index), block,
				   what),
			errhint("Please REINDEX it."));
}

/* The head of a page that is not new, after checking that the page is ours. */
static HammingHead *
checked_head(Relation index, Page page, BlockNumber block)
{
	if (((PageHeader) page)->pd_special != BLCKSZ ||
		HammingPageGetHead(page)->page_id != HAMMING_PAGE_ID)
		hamming_corrupt(index, block, "it is not a page of a hamming index");
	return HammingPageGetHead(page);
}

/* What the metapage, which the caller has locked, says, after checking that it is one. */
HammingMeta *
hamming_checked_meta(Relation index, Page page)
{
	HammingMeta *meta = HammingPageGetMeta(page);

	if (PageIsNew(page) || checked_head(index, page, HAMMING_METAPAGE)->kind != HAMMING_META)
		hamming_corrupt(index, HAMMING_METAPAGE, "it is not a metapage");
	if (meta->magic != HAMMING_MAGIC)
		hamming_corrupt(index, HAMMING_METAPAGE, "the metapage has a wrong magic number");
	if (meta->version != HAMMING_VERSION)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("index \"%s\" has format version %u, and this library knows version %u",
					   RelationGetRelationName(index), meta->version, HAMMING_VERSION),
				errhint("Please REINDEX it."));
	if (meta->nbits > BITHASH_MAX_BITS)
		hamming_corrupt(index, HAMMING_METAPAGE, "the metapage has an impossible code length");
	if (meta->end < HAMMING_FIRST_PAGE || meta->end > RelationGetNumberOfBlocks(index))
		hamming_corrupt(index, HAMMING_METAPAGE, "the index does not end within its file");
	return meta;
}

HammingMeta
hamming_read_meta(Relation index)
{
	Buffer			  buffer = hamming_read(index, HAMMING_METAPAGE, BUFFER_LOCK_SHARE, NULL);
	const HammingMeta meta = *hamming_checked_meta(index, BufferGetPage(buffer));

	UnlockReleaseBuffer(buffer);
	return meta;
}

/*
 * What a page of entries holds, after checking that it is one, and that its entries lie on it. This
 * comes before anything else that is done with a page: reading on would go astray.
 *
 * The caller has read the codes' length from the metapage some time ago.  If VACUUM has found no
 * more codes since, others may have come that are of no interest to the caller, and of any length.
 */
HammingContents
hamming_page_contents(Relation index, Page page, BlockNumber block, const HammingLayout *codes,
					  const HammingLayout *nulls)
{
	HammingContents		 contents = {.layout = NULL, .count = 0};
	const HammingLayout *layout;
	const HammingHead	*head;

	if (PageIsNew(page))
		return contents;
	head = checked_head(index, page, block);
	if (head->kind != HAMMING_CODES && head->kind != HAMMING_NULLS)
		hamming_corrupt(index, block, "it is not a page of entries");
	contents.count = head->count;
	if (head->count == 0)
		return contents;
	layout = head->kind == HAMMING_CODES ? codes : nulls;
	if (head->nbits != layout->nbits)
	{
		if (layout == nulls || hamming_read_meta(index).nbits == (uint32) layout->nbits)
			hamming_corrupt(index, block, "its codes are not as long as those of the index");
		return contents;
	}
	if (head->count > layout->capacity)
		hamming_corrupt(index, block, "it has more entries than there is room for");
	if (((PageHeader) page)->pd_lower != layout->tids + head->count * sizeof(ItemPointerData))
		hamming_corrupt(index, block, "its entries do not end where its header says");
	contents.layout = layout;
	return contents;
}

/* Sets the number of entries; behind them all is zero, if there was anything. */
void
hamming_page_set_count(Page page, const HammingLayout *layout, int count)
{
	HammingHead *head = HammingPageGetHead(page);
	const int	 gone = head->count - count;

	if (gone > 0)
	{
		for (int column = 0; column < layout->words; column++)
			memset(HammingPageGetWords(page, layout, column) + count * 8, 0, gone * 8);
		memset(HammingPageGetRest(page, layout) + count * layout->rest, 0, gone * layout->rest);
		memset(HammingPageGetTids(page, layout) + count, 0, gone * sizeof(ItemPointerData));
	}
	head->count = count;
	((PageHeader) page)->pd_lower = layout->tids + count * (int) sizeof(ItemPointerData);
}

/* Adds an entry to a page that has room for it. */
void
hamming_page_add(Page page, const HammingLayout *layout, HammingEntry entry)
{
	HammingHead *head = HammingPageGetHead(page);
	const int	 count = head->count++;

	Assert(head->kind == layout->kind && count < layout->capacity);
	for (int column = 0; column < layout->words; column++)
		memcpy(HammingPageGetWords(page, layout, column) + count * 8, entry.bits + column * 8, 8);
	if (layout->rest > 0)
		memcpy(HammingPageGetRest(page, layout) + count * layout->rest,
			   entry.bits + layout->words * 8, layout->rest);
	HammingPageGetTids(page, layout)[count] = entry.tid;
	((PageHeader) page)->pd_lower = layout->tids + (count + 1) * (int) sizeof(ItemPointerData);
}

/* Copies an entry over another place, on the same page or on another. */
void
hamming_page_copy(Page from, int source, Page to, int target, const HammingLayout *layout)
{
	for (int column = 0; column < layout->words; column++)
		memcpy(HammingPageGetWords(to, layout, column) + target * 8,
			   HammingPageGetWords(from, layout, column) + source * 8, 8);
	memcpy(HammingPageGetRest(to, layout) + target * layout->rest,
		   HammingPageGetRest(from, layout) + source * layout->rest, layout->rest);
	HammingPageGetTids(to, layout)[target] = HammingPageGetTids(from, layout)[source];
}

/* The code of an entry, as the bytes of its bithash. */
void
hamming_page_get_code(Page page, const HammingLayout *layout, int entry, uint8 *bits)
{
	for (int column = 0; column < layout->words; column++)
		memcpy(bits + column * 8, HammingPageGetWords(page, layout, column) + entry * 8, 8);
	memcpy(bits + layout->words * 8, HammingPageGetRest(page, layout) + entry * layout->rest,
		   layout->rest);
}

/*
 * What the free space map should know of a page, in bytes.  Only pages that take NULLs have
 * HAMMING_ROOM_FOR_NULL: those of NULLs with room left, and those without any entry, which take
 * either kind.
 */
Size
hamming_page_room(HammingContents contents)
{
	const HammingLayout *layout = contents.layout;

	if (contents.count == 0)
		return HAMMING_ROOM_FOR_NULL;
	if (layout == NULL || contents.count >= layout->capacity)
		return 0;
	if (layout->kind == HAMMING_NULLS)
		return HAMMING_ROOM_FOR_NULL;
	return Min((layout->capacity - contents.count) * (layout->nbytes + sizeof(ItemPointerData)),
			   HAMMING_MOST_ROOM_FOR_CODES);
}

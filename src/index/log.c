/*
 * log.c
 *		Adding an entry to a page, and logging it.
 *
 * Generic WAL copies a page, and compares all of it with the copy to find what has changed, which
 * is most of what an insertion costs.  Here it is known what changes, so we write the record
 * ourselves, in the form in which the server replays those of generic WAL: for a page, fragments
 * one after the other, each an offset and a length (OffsetNumber) and as many bytes.  That form is
 * the server's own business; a test compares records for each version, and with others than compat.h
 * names generic WAL is used as it is meant to be.
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufpage.h"

#include "flat.h"

/*
 * Only pages with room for two entries get a second one, so that no code here is longer than half
 * a page; each of its words takes 12 bytes.
 */
typedef struct Fragments
{
	int	 size;
	char bytes[BLCKSZ];
} Fragments;

static void
add_fragment(Fragments *fragments, Page page, const void *changed, Size size)
{
	const OffsetNumber place[2] = {(OffsetNumber) ((const char *) changed - page),
								   (OffsetNumber) size};

	Assert(fragments->size + sizeof(place) + size <= sizeof(fragments->bytes));
	memcpy(fragments->bytes + fragments->size, place, sizeof(place));
	memcpy(fragments->bytes + fragments->size + sizeof(place), changed, size);
	fragments->size += (int) (sizeof(place) + size);
}

/* What flat_page_add has just written to a page. */
static void
find_fragments(Fragments *fragments, Page page, const FlatLayout *layout)
{
	const FlatHead *head = FlatPageGetHead(page);
	const int		entry = head->count - 1;

	fragments->size = 0;
	add_fragment(fragments, page, &((PageHeader) page)->pd_lower, sizeof(LocationIndex));
	add_fragment(fragments, page, &head->count, sizeof(head->count));
	for (int column = 0; column < layout->columns; column++)
		add_fragment(fragments, page, FlatPageGetWords(page, layout, column) + entry * 8, 8);
	if (layout->numbers != 0)
		add_fragment(fragments, page, FlatPageGetNumbers(page, layout) + entry, sizeof(uint32));
	if (layout->words > layout->columns)
		add_fragment(fragments, page, FlatPageGetRest(page, layout, entry),
					 flat_rest_bytes(layout));
	add_fragment(fragments, page, FlatPageGetTids(page, layout) + entry, sizeof(ItemPointerData));
}

static void
add_with_own_record(Relation index, Buffer buffer, const FlatLayout *layout, FlatEntry entry)
{
	Page page = BufferGetPage(buffer);

	START_CRIT_SECTION();
	flat_page_add(page, layout, entry);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
	{
		Fragments  fragments;
		XLogRecPtr end;

		find_fragments(&fragments, page, layout);
		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, fragments.bytes, fragments.size);
		end = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, end);
	}
	END_CRIT_SECTION();
}

static void
add_with_generic_record(Relation index, Buffer buffer, const FlatLayout *layout, FlatEntry entry)
{
	GenericXLogState *xlog = GenericXLogStart(index);

	flat_page_add(GenericXLogRegisterBuffer(xlog, buffer, 0), layout, entry);
	GenericXLogFinish(xlog);
}

/*
 * Adds an entry to a page that has some already, and room for it.  The caller has locked the
 * buffer exclusively.
 */
void
flat_log_and_add(Relation index, Buffer buffer, const FlatLayout *layout, FlatEntry entry)
{
	if (flat_private_interfaces)
		add_with_own_record(index, buffer, layout, entry);
	else
		add_with_generic_record(index, buffer, layout, entry);
}

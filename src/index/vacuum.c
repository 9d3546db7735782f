/*
 * vacuum.c
 *		Removing entries of dead rows, and emptying pages at the end.
 *
 * VACUUM is the only one to remove or move entries, and at most one runs on a table.
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/vacuum.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"

#include "../compat.h"
#include "compact.h"
#include "hamming.h"
#include "page_stream.h"

/* The positions of dead rows' entries among a page's TIDs, and how many there are. */
static int
find_dead(const ItemPointerData *tids, int count, IndexBulkDeleteCallback callback, void *state,
		  uint16 *dead)
{
	int ndead = 0;

	for (int i = 0; i < count; i++)
	{
		ItemPointerData tid = tids[i];

		if (callback(&tid, state))
			dead[ndead++] = i;
	}
	return ndead;
}

/* Removes entries: the page's last ones take their places, from the last on. */
static void
remove_entries(Relation index, Buffer buffer, const HammingLayout *layout, const uint16 *dead,
			   int ndead)
{
	GenericXLogState *xlog = GenericXLogStart(index);
	Page			  page = GenericXLogRegisterBuffer(xlog, buffer, 0);
	int				  count = HammingPageGetHead(page)->count;

	for (int i = ndead - 1; i >= 0; i--)
		hamming_page_copy(page, --count, page, dead[i], layout);
	hamming_page_set_count(page, layout, count);
	GenericXLogFinish(xlog);
}

/*
 * The callback is not called with the page locked: entries stay where they are, because only
 * we move them, while others may be added behind them.
 */
static void
vacuum_page(IndexVacuumInfo *info, Buffer buffer, const HammingLayout *codes,
			const HammingLayout *nulls, IndexBulkDeleteResult *stats,
			IndexBulkDeleteCallback callback, void *state)
{
	ItemPointerData tids[BLCKSZ / sizeof(ItemPointerData)];
	uint16			dead[BLCKSZ / sizeof(ItemPointerData)];
	Page			page = BufferGetPage(buffer);
	HammingContents contents;
	int				ndead = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	contents = hamming_page_contents(info->index, page, BufferGetBlockNumber(buffer), codes, nulls);
	if (contents.layout != NULL)
		memcpy(tids, HammingPageGetTids(page, contents.layout),
			   contents.count * sizeof(ItemPointerData));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	if (contents.layout != NULL)
		ndead = find_dead(tids, contents.count, callback, state, dead);
	if (ndead > 0)
	{
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		remove_entries(info->index, buffer, contents.layout, dead, ndead);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	stats->tuples_removed += ndead;
}

IndexBulkDeleteResult *
hamming_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
					IndexBulkDeleteCallback callback, void *state)
{
	/* pages that come later hold only rows that are not dead yet */
	const HammingMeta	meta = hamming_read_meta(info->index);
	const HammingLayout codes = hamming_layout(HAMMING_CODES, (int) meta.nbits);
	const HammingLayout nulls = hamming_layout(HAMMING_NULLS, 0);
	PageStream		   *stream =
		page_stream_start(info->index, HAMMING_FIRST_PAGE, meta.end, 1, true, info->strategy);
	Buffer buffer;

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	while ((buffer = page_stream_next(stream)) != InvalidBuffer)
	{
		vacuum_page(info, buffer, &codes, &nulls, stats, callback, state);
		ReleaseBuffer(buffer);
		vacuum_pause();
	}
	page_stream_end(stream);
	return stats;
}

/* What all pages hold, which is told to the free space map along the way. */
typedef struct Survey
{
	uint64 codes;
	uint64 nulls;
} Survey;

static Survey
survey_pages(IndexVacuumInfo *info, BlockNumber end, const HammingLayout *codes,
			 const HammingLayout *nulls)
{
	Survey		survey = {0};
	PageStream *stream =
		page_stream_start(info->index, HAMMING_FIRST_PAGE, end, 1, true, info->strategy);
	Buffer buffer;

	while ((buffer = page_stream_next(stream)) != InvalidBuffer)
	{
		const BlockNumber block = BufferGetBlockNumber(buffer);
		HammingContents	  contents;

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		contents = hamming_page_contents(info->index, BufferGetPage(buffer), block, codes, nulls);
		UnlockReleaseBuffer(buffer);
		RecordPageWithFreeSpace(info->index, block, hamming_page_room(contents));
		*(contents.layout == nulls ? &survey.nulls : &survey.codes) += contents.count;
		vacuum_pause();
	}
	page_stream_end(stream);
	return survey;
}

/* From now on the metapage tells which pages have got a first entry since. */
static void
watch_starts(Relation index)
{
	Buffer buffer = hamming_read(index, HAMMING_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);

	if (hamming_checked_meta(index, BufferGetPage(buffer))->started != 0)
	{
		GenericXLogState *xlog = GenericXLogStart(index);

		HammingPageGetMeta(GenericXLogRegisterBuffer(xlog, buffer, 0))->started = 0;
		GenericXLogFinish(xlog);
	}
	UnlockReleaseBuffer(buffer);
}

/* The block behind the last page that has entries. */
static BlockNumber
find_end(IndexVacuumInfo *info, BlockNumber end, const HammingLayout *codes,
		 const HammingLayout *nulls)
{
	bool empty = true;

	while (end > HAMMING_FIRST_PAGE && empty)
	{
		Buffer buffer = hamming_read(info->index, end - 1, BUFFER_LOCK_SHARE, info->strategy);

		empty = hamming_page_contents(info->index, BufferGetPage(buffer), end - 1, codes, nulls)
					.count == 0;
		UnlockReleaseBuffer(buffer);
		end -= empty;
	}
	return end;
}

/*
 * Notes in the metapage what was found: how many entries there are, where the last of them is, and,
 * if there are no codes, that they may have any length again.  What has been started since we began
 * to look stays within the index.  Pages behind its end are not offered for entries: they are
 * used, one after the other, when others are full.
 */
static void
note_survey(Relation index, const Survey *survey, BlockNumber end)
{
	Buffer			  buffer = hamming_read(index, HAMMING_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);
	const HammingMeta before = *hamming_checked_meta(index, BufferGetPage(buffer));
	HammingMeta		  after = before;

	after.codes = survey->codes;
	after.nulls = survey->nulls;
	after.end = Max(end, before.started);
	if (survey->codes == 0 && before.started == 0)
		after.nbits = hamming_declared_bits(index);
	if (memcmp(&before, &after, sizeof(HammingMeta)) != 0)
	{
		GenericXLogState *xlog = GenericXLogStart(index);

		*HammingPageGetMeta(GenericXLogRegisterBuffer(xlog, buffer, 0)) = after;
		GenericXLogFinish(xlog);
	}
	UnlockReleaseBuffer(buffer);
	for (BlockNumber block = after.end; block < before.end; block++)
		RecordPageWithFreeSpace(index, block, 0);
}

IndexBulkDeleteResult *
hamming_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	Relation	  index = info->index;
	HammingMeta	  meta;
	HammingLayout codes;
	HammingLayout nulls;
	Survey		  survey;
	BlockNumber	  end;

	if (info->analyze_only)
		return stats;
	watch_starts(index);
	meta = hamming_read_meta(index);
	codes = hamming_layout(HAMMING_CODES, (int) meta.nbits);
	nulls = hamming_layout(HAMMING_NULLS, 0);
	survey = survey_pages(info, meta.end, &codes, &nulls);
	hamming_compact(info, &codes, &nulls, survey.codes, survey.nulls);
	end = find_end(info, hamming_read_meta(index).end, &codes, &nulls);
	note_survey(index, &survey, end);
	IndexFreeSpaceMapVacuum(index);

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_pages = RelationGetNumberOfBlocks(index);
	stats->pages_free = stats->num_pages - end;
	stats->num_index_tuples = (double) (survey.codes + survey.nulls);
	return stats;
}

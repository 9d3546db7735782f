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
#include "flat.h"
#include "page_stream.h"

/* The positions of dead rows' entries among a page's TIDs, and how many there are. */
static int
find_dead(Relation index, const ItemPointerData *tids, int count, IndexBulkDeleteCallback callback,
		  void *state, uint16 *dead)
{
	int ndead = 0;

	for (int i = 0; i < count; i++)
	{
		ItemPointerData tid = tids[i];

		flat_check_tid(NULL, index, tid);
		if (callback(&tid, state))
			dead[ndead++] = i;
	}
	return ndead;
}

/* Removes entries: the page's last ones take their places, from the last on. */
static void
remove_entries(Relation index, Buffer buffer, const FlatLayout *layout, const uint16 *dead,
			   int ndead)
{
	GenericXLogState *xlog = GenericXLogStart(index);
	Page			  page = GenericXLogRegisterBuffer(xlog, buffer, 0);
	int				  count = FlatPageGetHead(page)->count;

	for (int i = ndead - 1; i >= 0; i--)
		flat_page_copy(page, --count, page, dead[i], layout);
	flat_page_set_count(page, layout, count);
	GenericXLogFinish(xlog);
}

/*
 * The callback is not called with the page locked: entries stay where they are, because only
 * we move them, while others may be added after them.
 */
static void
vacuum_page(IndexVacuumInfo *info, Buffer buffer, const FlatLayout *codes, const FlatLayout *nulls,
			IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback, void *state)
{
	ItemPointerData tids[BLCKSZ / sizeof(ItemPointerData)];
	uint16			dead[BLCKSZ / sizeof(ItemPointerData)];
	Page			page = BufferGetPage(buffer);
	FlatContents	contents;
	int				ndead = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	contents = flat_page_contents(info->index, page, BufferGetBlockNumber(buffer), codes, nulls);
	if (contents.layout != NULL)
		memcpy(tids, FlatPageGetTids(page, contents.layout),
			   contents.count * sizeof(ItemPointerData));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	if (contents.layout != NULL)
		ndead = find_dead(info->index, tids, contents.count, callback, state, dead);
	if (ndead > 0)
	{
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		remove_entries(info->index, buffer, contents.layout, dead, ndead);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	stats->tuples_removed += ndead;
}

IndexBulkDeleteResult *
flat_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				 IndexBulkDeleteCallback callback, void *state)
{
	/* pages that come later hold only rows that are not dead yet */
	const FlatMeta	 meta = flat_read_meta(info->index);
	const FlatLayout codes = flat_codes_layout(&meta);
	const FlatLayout nulls = flat_layout(FLAT_NULLS, 0);
	PageStream		*stream =
		page_stream_start(info->index, FLAT_FIRST_PAGE, meta.end, 1, true, info->strategy);
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
	uint64		codes;
	uint64		nulls;
	BlockNumber model_pages;
} Survey;

static Survey
survey_pages(IndexVacuumInfo *info, BlockNumber end, const FlatLayout *codes,
			 const FlatLayout *nulls)
{
	Survey		survey = {0};
	PageStream *stream =
		page_stream_start(info->index, FLAT_FIRST_PAGE, end, 1, true, info->strategy);
	Buffer buffer;

	while ((buffer = page_stream_next(stream)) != InvalidBuffer)
	{
		const BlockNumber block = BufferGetBlockNumber(buffer);
		FlatContents	  contents;

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		contents = flat_page_contents(info->index, BufferGetPage(buffer), block, codes, nulls);
		UnlockReleaseBuffer(buffer);
		RecordPageWithFreeSpace(info->index, block, flat_page_room(contents));
		if (contents.is_model)
			survey.model_pages++;
		else
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
	Buffer buffer = flat_read(index, FLAT_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);

	if (flat_checked_meta(index, BufferGetPage(buffer))->started != 0)
	{
		GenericXLogState *xlog = GenericXLogStart(index);

		FlatPageGetMeta(GenericXLogRegisterBuffer(xlog, buffer, 0))->started = 0;
		GenericXLogFinish(xlog);
	}
	UnlockReleaseBuffer(buffer);
}

/* The block after the last page that has entries. */
static BlockNumber
find_end(IndexVacuumInfo *info, BlockNumber end, const FlatLayout *codes, const FlatLayout *nulls)
{
	bool empty = true;

	while (end > FLAT_FIRST_PAGE && empty)
	{
		Buffer buffer = flat_read(info->index, end - 1, BUFFER_LOCK_SHARE, info->strategy);

		empty =
			flat_page_contents(info->index, BufferGetPage(buffer), end - 1, codes, nulls).count ==
			0;
		UnlockReleaseBuffer(buffer);
		end -= empty;
	}
	return end;
}

/*
 * Notes in the metapage what was found: how many entries there are, where the last of them is, and,
 * if there are no codes, that they may have any length again, and that there is no model.  What has
 * been started since we began to look stays within the index.  Pages beyond its end are not offered
 * for entries: they are used, one after the other, when others are full.
 */
static void
note_survey(Relation index, const Survey *survey, BlockNumber end, int declared)
{
	Buffer		   buffer = flat_read(index, FLAT_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);
	const FlatMeta before = *flat_checked_meta(index, BufferGetPage(buffer));
	FlatMeta	   after = before;

	after.codes = survey->codes;
	after.nulls = survey->nulls;
	after.end = Max(end, before.started);
	if (survey->codes == 0 && before.started == 0 && before.learning == 0)
	{
		after.nbits = declared;
		after.dims = after.model = 0;
	}
	if (memcmp(&before, &after, sizeof(FlatMeta)) != 0)
	{
		GenericXLogState *xlog = GenericXLogStart(index);

		*FlatPageGetMeta(GenericXLogRegisterBuffer(xlog, buffer, 0)) = after;
		GenericXLogFinish(xlog);
	}
	UnlockReleaseBuffer(buffer);
	for (BlockNumber block = after.end; block < before.end; block++)
		RecordPageWithFreeSpace(index, block, 0);
}

IndexBulkDeleteResult *
flat_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, int declared)
{
	Relation	index = info->index;
	FlatMeta	meta;
	FlatLayout	codes;
	FlatLayout	nulls;
	Survey		survey;
	BlockNumber end;

	if (info->analyze_only)
		return stats;
	watch_starts(index);
	meta = flat_read_meta(index);
	codes = flat_codes_layout(&meta);
	nulls = flat_layout(FLAT_NULLS, 0);
	survey = survey_pages(info, meta.end, &codes, &nulls);
	flat_compact(info, &codes, &nulls, survey.codes, survey.nulls, survey.model_pages);
	end = find_end(info, flat_read_meta(index).end, &codes, &nulls);
	note_survey(index, &survey, end, declared);
	IndexFreeSpaceMapVacuum(index);

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_pages = RelationGetNumberOfBlocks(index);
	stats->pages_free = stats->num_pages - end;
	stats->num_index_tuples = (double) (survey.codes + survey.nulls);
	return stats;
}

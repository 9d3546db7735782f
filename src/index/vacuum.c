/*
 * vacuum.c
 *		Removing entries of dead rows, and giving pages back.
 *
 * VACUUM is the only one to remove or move entries, and at most one runs on a table.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xact.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"

#include "../compat.h"
#include "compact.h"
#include "hamming.h"

/* how often, and at what distance in microseconds, the end of the file is tried to be locked */
#define TRUNCATE_TRIES 20
#define TRUNCATE_PAUSE 10000

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
vacuum_page(IndexVacuumInfo *info, BlockNumber block, const HammingLayout *codes,
			const HammingLayout *nulls, IndexBulkDeleteResult *stats,
			IndexBulkDeleteCallback callback, void *state)
{
	ItemPointerData tids[BLCKSZ / sizeof(ItemPointerData)];
	uint16			dead[BLCKSZ / sizeof(ItemPointerData)];
	Buffer			buffer = hamming_read(info->index, block, BUFFER_LOCK_SHARE, info->strategy);
	Page			page = BufferGetPage(buffer);
	const HammingLayout *layout;
	int					 count;
	int					 ndead;

	hamming_check_page(info->index, page, block, codes, nulls);
	layout = hamming_page_count(page, HAMMING_CODES) > 0 ? codes : nulls;
	count = hamming_page_count(page, layout->kind);
	memcpy(tids, HammingPageGetTids(page, layout), count * sizeof(ItemPointerData));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	ndead = find_dead(tids, count, callback, state, dead);
	if (ndead > 0)
	{
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		remove_entries(info->index, buffer, layout, dead, ndead);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	stats->tuples_removed += ndead;
}

IndexBulkDeleteResult *
hamming_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
					IndexBulkDeleteCallback callback, void *state)
{
	/* pages that come later hold only rows that are not dead yet */
	const BlockNumber	blocks = RelationGetNumberOfBlocks(info->index);
	const int			nbits = (int) hamming_read_meta(info->index).nbits;
	const HammingLayout codes = hamming_layout(HAMMING_CODES, nbits);
	const HammingLayout nulls = hamming_layout(HAMMING_NULLS, 0);

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	for (BlockNumber block = HAMMING_FIRST_PAGE; block < blocks; block++)
	{
		vacuum_pause();
		vacuum_page(info, block, &codes, &nulls, stats, callback, state);
	}
	return stats;
}

/* Whether a page has no entries, and so can be given back. */
static bool
is_empty(Relation index, BlockNumber block)
{
	Buffer	   buffer = hamming_read(index, block, BUFFER_LOCK_SHARE, NULL);
	Page	   page = BufferGetPage(buffer);
	const bool empty = PageIsNew(page) || HammingPageGetHead(page)->count == 0;

	UnlockReleaseBuffer(buffer);
	return empty;
}

/*
 * Locks the index against everybody, and before it its table: who reads takes them in that
 * order.  A standby keeps both locks until the end of VACUUM, which may yet lock the table to
 * cut it as well; with the index alone, readers there would run into a deadlock.
 */
static bool
lock_for_truncation(Relation index)
{
	const Oid table = index->rd_index->indrelid;

	if (!ConditionalLockRelationOid(table, AccessExclusiveLock))
		return false;
	if (ConditionalLockRelation(index, AccessExclusiveLock))
		return true;
	UnlockRelationOid(table, AccessExclusiveLock);
	return false;
}

/*
 * Gives the empty pages at the end back.  Nobody may be using the index then, and nobody is
 * made to wait for that: after some tries the pages are left to be used again.
 */
static void
give_back_pages(Relation index)
{
	BlockNumber blocks;

	/* the locks need a transaction id, which cannot be had while workers run */
	if (IsInParallelMode())
		return;
	for (int tries = 0; !lock_for_truncation(index); tries++)
	{
		if (tries == TRUNCATE_TRIES)
			return;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(TRUNCATE_PAUSE);
	}
	blocks = RelationGetNumberOfBlocks(index);
	while (blocks > HAMMING_FIRST_PAGE && is_empty(index, blocks - 1))
		blocks--;
	if (blocks < RelationGetNumberOfBlocks(index))
		RelationTruncate(index, blocks);
	UnlockRelation(index, AccessExclusiveLock);
	UnlockRelationOid(index->rd_index->indrelid, AccessExclusiveLock);
}

/* What all pages hold, which is told to the free space map along the way. */
typedef struct Survey
{
	BlockNumber pages;
	BlockNumber empty; /* at the end of the file, one after the other */
	uint64		codes;
	uint64		nulls;
} Survey;

static Survey
survey_pages(IndexVacuumInfo *info, const HammingLayout *codes, const HammingLayout *nulls)
{
	Survey survey = {.pages = RelationGetNumberOfBlocks(info->index)};

	for (BlockNumber block = HAMMING_FIRST_PAGE; block < survey.pages; block++)
	{
		Buffer buffer;
		Page   page;
		Size   room;
		int	   ncodes;
		int	   nnulls;

		vacuum_pause();
		buffer = hamming_read(info->index, block, BUFFER_LOCK_SHARE, info->strategy);
		page = BufferGetPage(buffer);
		hamming_check_page(info->index, page, block, codes, nulls);
		ncodes = hamming_page_count(page, HAMMING_CODES);
		nnulls = hamming_page_count(page, HAMMING_NULLS);
		room = hamming_page_room(page, codes, nulls);
		UnlockReleaseBuffer(buffer);
		RecordPageWithFreeSpace(info->index, block, room);
		survey.codes += ncodes;
		survey.nulls += nnulls;
		survey.empty = ncodes + nnulls == 0 ? survey.empty + 1 : 0;
	}
	return survey;
}

static void
note_counts(Relation index, const Survey *survey)
{
	Buffer			  buffer = hamming_read(index, HAMMING_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);
	GenericXLogState *xlog = GenericXLogStart(index);
	HammingMeta		 *meta = HammingPageGetMeta(GenericXLogRegisterBuffer(xlog, buffer, 0));

	meta->codes = survey->codes;
	meta->nulls = survey->nulls;
	GenericXLogFinish(xlog);
	UnlockReleaseBuffer(buffer);
}

IndexBulkDeleteResult *
hamming_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	Relation	  index = info->index;
	HammingMeta	  meta;
	HammingLayout codes;
	HammingLayout nulls;
	Survey		  survey;

	if (info->analyze_only)
		return stats;
	meta = hamming_read_meta(index);
	codes = hamming_layout(HAMMING_CODES, (int) meta.nbits);
	nulls = hamming_layout(HAMMING_NULLS, 0);
	survey = survey_pages(info, &codes, &nulls);
	if (hamming_compact(info, &codes, &nulls, survey.codes, survey.nulls) || survey.empty > 0)
		give_back_pages(index);
	if (meta.codes != survey.codes || meta.nulls != survey.nulls)
		note_counts(index, &survey);
	IndexFreeSpaceMapVacuum(index);

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_pages = RelationGetNumberOfBlocks(index);
	stats->num_index_tuples = (double) (survey.codes + survey.nulls);
	return stats;
}

/*
 * prefetch.c
 *		Prefetches the pages of the rows that a scan returns next.
 *
 * Near codes are in rows all over the table.  Their pages are on disk, or at least not in the CPU's
 * cache, which the index has just filled.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#include "../compat.h"
#include "nearest.h"
#include "prefetch.h"

#define MAX_BATCH 16

void
prefetch_start(Prefetch *prefetch, Relation table)
{
	memset(prefetch, 0, sizeof(*prefetch));
	/* of other kinds of tables it is not known where their rows are */
	prefetch->enabled = table->rd_tableam == GetHeapamTableAmRoutine();
}

/* From disk, if the page is not in memory; and else what is read first of it, into the CPU's cache.
 */
static void
prefetch_row(Relation table, BlockNumber block, OffsetNumber offset)
{
	Buffer buffer;
	char  *page;

	/* whoever returns the row will say that there is none */
	if (block == InvalidBlockNumber)
		return;
	buffer = PrefetchBuffer(table, MAIN_FORKNUM, block).recent_buffer;
	if (!BufferIsValid(buffer) || offset > MaxHeapTuplesPerPage)
		return;
	page = BufferGetBlock(buffer);
	__builtin_prefetch(page);
	__builtin_prefetch(PageGetItemId(page, offset));
}

void
prefetch_rows(Prefetch *prefetch, Relation table, const uint64 *keys, int known)
{
	if (!prefetch->enabled)
		return;
	if (prefetch->until_next == 0)
	{
		/* few at first, since the executor may want few rows */
		prefetch->batch = Min(Max(prefetch->batch * 2, 1), MAX_BATCH);
		for (; prefetch->done < Min(2 * prefetch->batch, known); prefetch->done++)
			prefetch_row(table, KEY_BLOCK(keys[prefetch->done]), KEY_OFFSET(keys[prefetch->done]));
		/* these are returned until then */
		prefetch->until_next = prefetch->batch;
		prefetch->done = Max(prefetch->done - prefetch->batch, 0);
	}
	prefetch->until_next--;
}

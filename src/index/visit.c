/*
 * visit.c
 *		Reading all pages of a flat index.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"

#include "../compat.h"
#include "page_stream.h"
#include "visit.h"

/* Calls visit for every step-th page of entries, one share lock at a time: the public way. */
static void
visit_stream(Relation index, BlockNumber end, BlockNumber step, FlatPageVisitor visit,
			 void (*between)(void *), void *state)
{
	const HammingUpcoming unknown = {0, 0};
	PageStream *stream = page_stream_start(index, FLAT_FIRST_PAGE, end, step, false, NULL);
	Buffer		buffer;

	while ((buffer = page_stream_next(stream)) != InvalidBuffer)
	{
		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		visit(state, BufferGetPage(buffer), BufferGetBlockNumber(buffer), unknown);
		UnlockReleaseBuffer(buffer);
		if (between != NULL)
			between(state);
	}
	page_stream_end(stream);
}

static void
visit_every(Relation index, BlockNumber end, BlockNumber step, FlatPageVisitor visit,
			void (*between)(void *), void *state)
{
	if (flat_private_interfaces)
		flat_visit_recent(index, end, step, step == 1, visit, between, state);
	else
		visit_stream(index, end, step, visit, between, state);
}

/*
 * VACUUM may move entries to pages that have been visited already.  It counts that in the
 * metapage, which makes the visit start again; the second time it asks VACUUM to wait,
 * which it does between two moves (but not on a standby server, where moves just arrive).
 */
void
flat_visit_pages_with_pauses(Relation index, void (*start)(void *), FlatPageVisitor visit,
							 void (*between)(void *), void *state)
{
	bool waits = false;

	for (;;)
	{
		const FlatMeta meta = flat_read_meta(index);

		start(state);
		visit_every(index, meta.end, 1, visit, between, state);
		if (flat_read_meta(index).moves == meta.moves)
			break;
		if (!waits)
			LockPage(index, FLAT_METAPAGE, ShareLock);
		waits = true;
	}
	if (waits)
		UnlockPage(index, FLAT_METAPAGE, ShareLock);
}

void
flat_visit_pages(Relation index, void (*start)(void *), FlatPageVisitor visit, void *state)
{
	flat_visit_pages_with_pauses(index, start, visit, NULL, state);
}

void
flat_visit_sample(Relation index, BlockNumber end, BlockNumber step, FlatPageVisitor visit,
				  void *state)
{
	visit_every(index, end, step, visit, NULL, state);
}

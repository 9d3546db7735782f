/*
 * compact.c
 *		Filling pages from those at the end, so that the index ends earlier.
 *
 * Entries move from the last pages to the first ones with room: in three stages, codes to
 * pages of codes, NULLs to pages of NULLs, then what is left at the end to empty pages.  A
 * search that visits the new page before a move and the old one after it would miss entries.  So
 * every move increments the metapage's moves, in the same log record, and a search that finds
 * another count at its end starts again.
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/vacuum.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"

#include "../compat.h"
#include "compact.h"

/* it is done if at least this part of the pages is gained */
#define WORTHWHILE_SHARE 10

/* moves between two moments in which searches that wait for us can begin */
#define MOVES_AT_A_TIME 16

typedef struct Compaction
{
	IndexVacuumInfo	 *info;
	const FlatLayout *codes;
	const FlatLayout *nulls;

	/* a stage's: entries of one kind to pages of that kind, or if NULL any to empty pages */
	const FlatLayout *kind;
	BlockNumber		  low;	/* pages before have no room */
	BlockNumber		  high; /* later pages have nothing to move */
} Compaction;

static FlatContents
contents_of(const Compaction *compaction, Buffer buffer)
{
	return flat_page_contents(compaction->info->index, BufferGetPage(buffer),
							  BufferGetBlockNumber(buffer), compaction->codes, compaction->nulls);
}

static FlatContents
read_contents(const Compaction *compaction, BlockNumber block)
{
	Buffer buffer =
		flat_read(compaction->info->index, block, BUFFER_LOCK_SHARE, compaction->info->strategy);
	const FlatContents contents = contents_of(compaction, buffer);

	UnlockReleaseBuffer(buffer);
	return contents;
}

static bool
has_room(const Compaction *compaction, FlatContents contents)
{
	if (compaction->kind == NULL)
		return contents.count == 0;
	return contents.layout == compaction->kind && contents.model == contents.layout->model &&
		   contents.count < contents.layout->capacity;
}

static bool
can_move(const Compaction *compaction, FlatContents contents)
{
	/* codes by another model than pages have that are started now wait for new ones */
	return contents.layout != NULL && contents.model == contents.layout->model &&
		   (compaction->kind == NULL || contents.layout == compaction->kind);
}

/*
 * Moves what fits from the high page to the low one.  Others may have added to either since
 * we looked; then there may be nothing to do, and the caller looks again.  Nothing moves any more if
 * there is another model by now.  Locks are taken in the order low, high, metapage; nobody else holds
 * two.
 */
static void
move_entries(Compaction *compaction)
{
	Relation			 index = compaction->info->index;
	BufferAccessStrategy how = compaction->info->strategy;
	const BlockNumber	 low = compaction->low;
	const BlockNumber	 high = compaction->high;
	Buffer				 low_buffer = flat_read(index, low, BUFFER_LOCK_EXCLUSIVE, how);
	Buffer				 high_buffer = flat_read(index, high, BUFFER_LOCK_EXCLUSIVE, how);
	FlatContents		 to = contents_of(compaction, low_buffer);
	FlatContents		 from = contents_of(compaction, high_buffer);
	Size				 low_room;
	Size				 high_room;

	if (can_move(compaction, from) && has_room(compaction, to))
	{
		const FlatLayout *layout = from.layout;
		const int		  count = Min(from.count, layout->capacity - to.count);
		const int		  flags = to.count == 0 ? GENERIC_XLOG_FULL_IMAGE : 0;
		Buffer			  meta_buffer = flat_read(index, FLAT_METAPAGE, BUFFER_LOCK_EXCLUSIVE, how);

		if (flat_checked_meta(index, BufferGetPage(meta_buffer))->model == compaction->codes->model)
		{
			GenericXLogState *xlog = GenericXLogStart(index);
			Page			  low_page = GenericXLogRegisterBuffer(xlog, low_buffer, flags);
			Page			  high_page = GenericXLogRegisterBuffer(xlog, high_buffer, 0);
			Page			  meta_page = GenericXLogRegisterBuffer(xlog, meta_buffer, 0);

			if (to.count == 0)
				flat_page_init(low_page, layout);
			for (int i = 0; i < count; i++)
				flat_page_copy(high_page, from.count - count + i, low_page, to.count + i, layout);
			flat_page_set_count(low_page, layout, to.count + count);
			flat_page_set_count(high_page, layout, from.count - count);
			FlatPageGetMeta(meta_page)->moves++;
			GenericXLogFinish(xlog);
		}
		else
			compaction->high = compaction->low;
		UnlockReleaseBuffer(meta_buffer);
	}
	low_room = flat_page_room(contents_of(compaction, low_buffer));
	high_room = flat_page_room(contents_of(compaction, high_buffer));
	UnlockReleaseBuffer(high_buffer);
	UnlockReleaseBuffer(low_buffer);
	RecordPageWithFreeSpace(index, low, low_room);
	RecordPageWithFreeSpace(index, high, high_room);
}

/* Does some moves; false if there are no more in this stage. */
static bool
move_some(Compaction *compaction)
{
	for (int moves = 0; moves < MOVES_AT_A_TIME; moves++)
	{
		while (compaction->low < compaction->high &&
			   !can_move(compaction, read_contents(compaction, compaction->high)))
			compaction->high--;
		while (compaction->low < compaction->high &&
			   !has_room(compaction, read_contents(compaction, compaction->low)))
			compaction->low++;
		if (compaction->low >= compaction->high)
			return false;
		move_entries(compaction);
	}
	return true;
}

static void
run_stage(Compaction *compaction, const FlatLayout *kind)
{
	bool more = true;

	compaction->kind = kind;
	compaction->low = FLAT_FIRST_PAGE;
	compaction->high = flat_read_meta(compaction->info->index).end - 1;
	while (more)
	{
		vacuum_pause();
		LockPage(compaction->info->index, FLAT_METAPAGE, ExclusiveLock);
		more = move_some(compaction);
		UnlockPage(compaction->info->index, FLAT_METAPAGE, ExclusiveLock);
	}
}

static BlockNumber
pages_for(const FlatLayout *layout, uint64 entries)
{
	return entries == 0 ? 0 : (BlockNumber) ((entries - 1) / layout->capacity + 1);
}

void
flat_compact(IndexVacuumInfo *info, const FlatLayout *codes, const FlatLayout *nulls, uint64 ncodes,
			 uint64 nnulls, BlockNumber others)
{
	const BlockNumber pages = flat_read_meta(info->index).end - FLAT_FIRST_PAGE;
	BlockNumber		  needed;
	Compaction		  compaction = {.info = info, .codes = codes, .nulls = nulls};

	/* codes whose length was not known a moment ago are too new to be moved */
	if (ncodes > 0 && codes->capacity == 0)
		return;
	needed = pages_for(codes, ncodes) + pages_for(nulls, nnulls) + others;
	if (pages <= needed || (pages - needed) < pages / WORTHWHILE_SHARE)
		return;
	run_stage(&compaction, codes);
	run_stage(&compaction, nulls);
	run_stage(&compaction, NULL);
}

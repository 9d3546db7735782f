/*
 * insert.c
 *		One more entry in a flat index.
 *
 * Writers must not wait for each other.  Each goes on filling the page that it used last; if that
 * is full, or locked by somebody else, it asks the free space map for another one, and if that is
 * locked too, or there is none, it takes the next page beyond the end of the index.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"

#include "../compat.h"
#include "flat.h"

/* pages of the free space map that are tried before the index grows */
#define MAX_TRIES 4

typedef struct Insertion
{
	Relation		  index;
	FlatLayout		  codes;
	FlatLayout		  nulls;
	const FlatLayout *layout; /* of the two, the entry's */
	FlatEntry		  entry;
} Insertion;

typedef enum Outcome
{
	ADDED,
	FULL,
	UNSUITABLE, /* locked by somebody else, or of the other kind */
	OUTDATED	/* the index's codes are not any more what we know of them */
} Outcome;

/*
 * What the index's pages of codes look like; their capacity is 0 if the codes' length is not known.
 * A backend remembers it.  What it remembers is wrong after VACUUM has found no more codes, or if
 * there is another model; either way pages say so, and whoever starts one looks into the metapage.
 */
FlatLayout
flat_codes(Relation index)
{
	FlatMemory *memory = flat_memory(index, 0);

	if (memory->codes.capacity == 0)
	{
		const FlatMeta meta = flat_read_meta(index);

		memory->codes = flat_codes_layout(&meta);
	}
	return memory->codes;
}

void
flat_forget_codes(Relation index)
{
	flat_memory(index, 0)->codes.capacity = 0;
}

/* Does the entry fit the index as its metapage describes it now? */
static bool
is_current(const FlatLayout *layout, const FlatMeta *meta)
{
	if (layout->kind == FLAT_NULLS)
		return true;
	if (meta->nbits == 0)
		return layout->model == 0;
	return meta->nbits == (uint32) layout->nbits && meta->dims == (uint32) layout->dims &&
		   meta->model == layout->model;
}

/*
 * Puts the first entry on a page that is locked exclusively and has none.  The metapage learns of
 * it in the same record, so that VACUUM neither ends the index before the page nor forgets the
 * length of its code.
 */
static Outcome
start_page(const Insertion *insertion, Buffer buffer, bool behind_end)
{
	const FlatLayout *layout = insertion->layout;
	Relation		  index = insertion->index;
	const BlockNumber block = BufferGetBlockNumber(buffer);
	Buffer			  meta_buffer = flat_read(index, FLAT_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);
	FlatMeta		 *meta = flat_checked_meta(index, BufferGetPage(meta_buffer));
	Outcome			  outcome = ADDED;

	if (!is_current(layout, meta))
		outcome = OUTDATED;
	else if (!behind_end && block >= meta->end)
		outcome = FULL; /* the map is out of date: pages there have to wait for their turn */
	else
	{
		GenericXLogState *xlog = GenericXLogStart(index);
		Page			  page = GenericXLogRegisterBuffer(xlog, buffer, GENERIC_XLOG_FULL_IMAGE);

		meta = FlatPageGetMeta(GenericXLogRegisterBuffer(xlog, meta_buffer, 0));
		flat_page_init(page, layout);
		flat_page_add(page, layout, insertion->entry);
		if (layout->kind == FLAT_CODES)
		{
			meta->nbits = layout->nbits;
			meta->dims = layout->dims;
		}
		meta->end = Max(meta->end, block + 1);
		meta->started = Max(meta->started, block + 1);
		GenericXLogFinish(xlog);
	}
	UnlockReleaseBuffer(meta_buffer);
	return outcome;
}

/*
 * A page has codes by another model than ours: either there is a new one that we do not know
 * yet, or the page still waits for its codes by ours.
 */
static Outcome
other_model(const Insertion *insertion)
{
	const FlatMeta meta = flat_read_meta(insertion->index);

	return is_current(insertion->layout, &meta) ? UNSUITABLE : OUTDATED;
}

/* Puts the entry on a page that is locked exclusively, and releases it. */
static Outcome
add_to_page(const Insertion *insertion, Buffer buffer, bool behind_end)
{
	const FlatLayout  *layout = insertion->layout;
	const BlockNumber  block = BufferGetBlockNumber(buffer);
	const FlatContents contents = flat_page_contents(insertion->index, BufferGetPage(buffer), block,
													 &insertion->codes, &insertion->nulls);
	Outcome			   outcome = ADDED;

	/* a page without entries may change its kind */
	if (contents.count == 0)
		outcome = start_page(insertion, buffer, behind_end);
	else if (contents.is_model || (contents.layout == layout && contents.count >= layout->capacity))
		outcome = FULL;
	else if (contents.layout == NULL && layout->kind == FLAT_CODES)
		outcome = OUTDATED;
	else if (contents.layout != layout)
		outcome = UNSUITABLE;
	else if (contents.model != layout->model)
		outcome = other_model(insertion);
	else
		flat_log_and_add(insertion->index, buffer, layout, insertion->entry);
	UnlockReleaseBuffer(buffer);
	if (outcome == ADDED && layout->kind == FLAT_CODES)
		RelationSetTargetBlock(insertion->index, block);
	return outcome;
}

static Outcome
try_page(const Insertion *insertion, BlockNumber block, bool behind_end)
{
	Buffer buffer = flat_read(insertion->index, block, BUFFER_LOCK_UNLOCK, NULL);

	if (ConditionalLockBuffer(buffer))
		return add_to_page(insertion, buffer, behind_end);
	ReleaseBuffer(buffer);
	return UNSUITABLE;
}

/* Tries some pages of which the free space map says that they have room. */
static Outcome
try_free_space(const Insertion *insertion)
{
	Relation	index = insertion->index;
	const Size	size = insertion->layout->kind == FLAT_NULLS ? FLAT_ROOM_FOR_NULL
															 : flat_entry_bytes(&insertion->codes);
	BlockNumber block = GetPageWithFreeSpace(index, size);
	Outcome		outcome = FULL;

	for (int tries = 0; tries < MAX_TRIES && block != InvalidBlockNumber; tries++)
	{
		/* the map is not logged: after a crash it may know pages that do not exist */
		outcome = block > FLAT_METAPAGE && block < RelationGetNumberOfBlocks(index)
					  ? try_page(insertion, block, false)
					  : FULL;
		if (outcome == ADDED || outcome == OUTDATED)
			break;
		block = outcome == FULL ? RecordAndGetPageWithFreeSpace(index, block, 0, size)
								: GetPageWithFreeSpace(index, size);
	}
	return outcome;
}

/* Takes the first page beyond the end of the index that nobody else takes just now. */
static Outcome
append_page(const Insertion *insertion)
{
	Relation	index = insertion->index;
	BlockNumber block = flat_read_meta(index).end;
	Outcome		outcome = FULL;

	while (outcome != ADDED && outcome != OUTDATED)
	{
		if (block < RelationGetNumberOfBlocks(index))
			outcome = try_page(insertion, block, true);
		else
		{
			Buffer buffer;

			extend_relation(index, MAIN_FORKNUM, &buffer);
			block = BufferGetBlockNumber(buffer);
			outcome = add_to_page(insertion, buffer, true);
		}
		block++;
	}
	if (outcome == ADDED)
	{
		const FlatContents contents = {.layout = insertion->layout, .count = 1};

		/* others may use the page, too, especially when this backend has ended */
		RecordPageWithFreeSpace(index, block - 1, flat_page_room(contents));
		FreeSpaceMapVacuumRange(index, block - 1, block);
	}
	return outcome;
}

static Outcome
add_entry(const Insertion *insertion)
{
	const BlockNumber block = RelationGetTargetBlock(insertion->index);
	Outcome			  outcome = FULL;

	if (insertion->layout->kind == FLAT_CODES && block != InvalidBlockNumber)
		outcome = try_page(insertion, block, false);
	if (outcome != ADDED && outcome != OUTDATED)
		outcome = try_free_space(insertion);
	if (outcome != ADDED && outcome != OUTDATED)
		outcome = append_page(insertion);
	return outcome;
}

/*
 * Adds an entry to an index whose pages of codes look like this.  Returns false if they do not any
 * more: then the caller looks again.
 */
bool
flat_insert(Relation index, const FlatLayout *codes, FlatEntry entry)
{
	Insertion insertion = {
		.index = index,
		.codes = *codes,
		.nulls = flat_layout(FLAT_NULLS, 0),
		.entry = entry,
	};
	bool added;

	/* the caller may try it many times */
	CHECK_FOR_INTERRUPTS();
	insertion.layout = entry.bits == NULL ? &insertion.nulls : &insertion.codes;
	added = add_entry(&insertion) == ADDED;
	if (!added)
		flat_forget_codes(index);
	return added;
}

/*
 * insert.c
 *		One more entry in a hamming index.
 *
 * Writers must not wait for each other.  Each goes on filling the page that it used last; if that
 * is full, or locked by somebody else, it asks the free space map for another one, and if that is
 * locked too, or there is none, it takes the next page behind the end of the index.
 */
#include "postgres.h"

#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"

#include "../compat.h"
#include "hamming.h"

/* pages of the free space map that are tried before the index grows */
#define MAX_TRIES 4

typedef struct Insertion
{
	Relation			 index;
	HammingLayout		 codes;
	HammingLayout		 nulls;
	const HammingLayout *layout; /* of the two, the entry's */
	HammingEntry		 entry;
} Insertion;

typedef enum Outcome
{
	ADDED,
	FULL,
	UNSUITABLE, /* locked by somebody else, or of the other kind */
	OUTDATED	/* the index's codes do not have the length any more that we know */
} Outcome;

/*
 * The length of the index's codes, or 0 if it is not known.  A backend remembers it.  What it
 * remembers is wrong only after VACUUM has found no more codes; then the next code starts a page,
 * and whoever starts one looks into the metapage.
 */
static int
code_length(Relation index)
{
	HammingMemory *memory = hamming_memory(index, 0);

	if (memory->nbits == 0)
		memory->nbits = (int) hamming_read_meta(index).nbits;
	return memory->nbits;
}

static void
forget_code_length(Relation index)
{
	hamming_memory(index, 0)->nbits = 0;
}

/*
 * Puts the first entry on a page that is locked exclusively and has none.  The metapage learns of
 * it in the same record, so that VACUUM neither ends the index before the page nor forgets the
 * length of its code.
 */
static Outcome
start_page(const Insertion *insertion, Buffer buffer, bool behind_end)
{
	const HammingLayout *layout = insertion->layout;
	Relation			 index = insertion->index;
	const BlockNumber	 block = BufferGetBlockNumber(buffer);
	Buffer		 meta_buffer = hamming_read(index, HAMMING_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);
	HammingMeta *meta = hamming_checked_meta(index, BufferGetPage(meta_buffer));
	const uint32 nbits = meta->nbits;
	Outcome		 outcome = ADDED;

	if (layout->kind == HAMMING_CODES && nbits != 0 && nbits != (uint32) layout->nbits)
		outcome = OUTDATED;
	else if (!behind_end && block >= meta->end)
		outcome = FULL; /* the map is out of date: pages there have to wait for their turn */
	else
	{
		GenericXLogState *xlog = GenericXLogStart(index);
		Page			  page = GenericXLogRegisterBuffer(xlog, buffer, GENERIC_XLOG_FULL_IMAGE);

		meta = HammingPageGetMeta(GenericXLogRegisterBuffer(xlog, meta_buffer, 0));
		hamming_page_init(page, layout);
		hamming_page_add(page, layout, insertion->entry);
		if (layout->kind == HAMMING_CODES)
			meta->nbits = layout->nbits;
		meta->end = Max(meta->end, block + 1);
		meta->started = Max(meta->started, block + 1);
		GenericXLogFinish(xlog);
	}
	UnlockReleaseBuffer(meta_buffer);
	return outcome;
}

/* Puts the entry on a page that is locked exclusively, and releases it. */
static Outcome
add_to_page(const Insertion *insertion, Buffer buffer, bool behind_end)
{
	const HammingLayout	 *layout = insertion->layout;
	const BlockNumber	  block = BufferGetBlockNumber(buffer);
	const HammingContents contents = hamming_page_contents(
		insertion->index, BufferGetPage(buffer), block, &insertion->codes, &insertion->nulls);
	Outcome outcome = ADDED;

	/* a page without entries may change its kind */
	if (contents.count == 0)
		outcome = start_page(insertion, buffer, behind_end);
	else if (contents.layout == NULL && layout->kind == HAMMING_CODES)
		outcome = OUTDATED;
	else if (contents.layout != layout)
		outcome = UNSUITABLE;
	else if (contents.count >= layout->capacity)
		outcome = FULL;
	else
		hamming_log_and_add(insertion->index, buffer, layout, insertion->entry);
	UnlockReleaseBuffer(buffer);
	if (outcome == ADDED && layout->kind == HAMMING_CODES)
		RelationSetTargetBlock(insertion->index, block);
	return outcome;
}

static Outcome
try_page(const Insertion *insertion, BlockNumber block, bool behind_end)
{
	Buffer buffer = hamming_read(insertion->index, block, BUFFER_LOCK_UNLOCK, NULL);

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
	const Size	size = insertion->layout->kind == HAMMING_NULLS
						   ? HAMMING_ROOM_FOR_NULL
						   : insertion->codes.nbytes + sizeof(ItemPointerData);
	BlockNumber block = GetPageWithFreeSpace(index, size);
	Outcome		outcome = FULL;

	for (int tries = 0; tries < MAX_TRIES && block != InvalidBlockNumber; tries++)
	{
		/* the map is not logged: after a crash it may know pages that do not exist */
		outcome = block > HAMMING_METAPAGE && block < RelationGetNumberOfBlocks(index)
					  ? try_page(insertion, block, false)
					  : FULL;
		if (outcome == ADDED || outcome == OUTDATED)
			break;
		block = outcome == FULL ? RecordAndGetPageWithFreeSpace(index, block, 0, size)
								: GetPageWithFreeSpace(index, size);
	}
	return outcome;
}

/* Takes the first page behind the end of the index that nobody else takes just now. */
static Outcome
append_page(const Insertion *insertion)
{
	Relation	index = insertion->index;
	BlockNumber block = hamming_read_meta(index).end;
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
		const HammingContents contents = {.layout = insertion->layout, .count = 1};

		/* others may use the page, too, above all should we go away */
		RecordPageWithFreeSpace(index, block - 1, hamming_page_room(contents));
		FreeSpaceMapVacuumRange(index, block - 1, block);
	}
	return outcome;
}

static Outcome
add_entry(const Insertion *insertion)
{
	const BlockNumber block = RelationGetTargetBlock(insertion->index);
	Outcome			  outcome = FULL;

	if (insertion->layout->kind == HAMMING_CODES && block != InvalidBlockNumber)
		outcome = try_page(insertion, block, false);
	if (outcome != ADDED && outcome != OUTDATED)
		outcome = try_free_space(insertion);
	if (outcome != ADDED && outcome != OUTDATED)
		outcome = append_page(insertion);
	return outcome;
}

bool
hamming_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			   Relation heap pg_attribute_unused(), IndexUniqueCheck check pg_attribute_unused(),
			   bool unchanged pg_attribute_unused(), IndexInfo *info pg_attribute_unused())
{
	BitHashView code = {.nbits = 0, .bits = NULL};
	Insertion	insertion = {.index = index, .nulls = hamming_layout(HAMMING_NULLS, 0)};
	int			nbits;

	/* first, because fetching a value that is stored out of line reads catalogs */
	if (!isnull[0])
		code = DatumGetBitHashView(values[0]);
	insertion.layout = isnull[0] ? &insertion.nulls : &insertion.codes;
	insertion.entry.bits = code.bits;
	insertion.entry.tid = *tid;
	do
	{
		nbits = code_length(index);
		if (!isnull[0] && nbits != code.nbits)
		{
			/* what we remember may be out of date */
			forget_code_length(index);
			nbits = code_length(index);
			hamming_check_code(index, code, nbits, true);
			nbits = code.nbits;
		}
		insertion.codes = hamming_layout(HAMMING_CODES, nbits);
	} while (add_entry(&insertion) == OUTDATED);
	return false;
}

/*
 * insert.c
 *		One more entry in a hamming index.
 *
 * Writers must not wait for each other.  Each goes on filling the page that it used last;
 * if that is full, or locked by somebody else, it asks the free space map for another one,
 * and if that is locked too, or there is none, it appends a page.
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

/*
 * The length of the index's codes.  If it had none this one is the first: its length is
 * noted in the metapage.
 */
static int
settle_bits(Relation index, int nbits)
{
	HammingMeta	 meta = hamming_read_meta(index);
	Buffer		 buffer;
	HammingMeta *page_meta;
	int			 settled;

	if (meta.nbits != 0)
		return (int) meta.nbits;
	buffer = hamming_read(index, HAMMING_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);
	settled = (int) HammingPageGetMeta(BufferGetPage(buffer))->nbits;
	if (settled == 0)
	{
		GenericXLogState *xlog = GenericXLogStart(index);

		page_meta = HammingPageGetMeta(GenericXLogRegisterBuffer(xlog, buffer, 0));
		page_meta->nbits = nbits;
		GenericXLogFinish(xlog);
		settled = nbits;
	}
	UnlockReleaseBuffer(buffer);
	return settled;
}

/* The code length, which never changes once there is one, is remembered with the index. */
static int
get_bits(Relation index, int nbits)
{
	HammingMemory *memory = hamming_memory(index, 0, 0);

	if (memory->nbits == 0)
		memory->nbits = settle_bits(index, nbits);
	return memory->nbits;
}

typedef enum Outcome
{
	ADDED,
	FULL,
	UNSUITABLE /* locked by somebody else, or of the other kind */
} Outcome;

/* Puts the entry on a page that is locked, and releases it. */
static Outcome
add_to_page(const Insertion *insertion, Buffer buffer)
{
	const HammingLayout *layout = insertion->layout;
	BlockNumber			 block = BufferGetBlockNumber(buffer);
	Page				 page = BufferGetPage(buffer);
	bool				 start = PageIsNew(page);
	Outcome				 outcome = ADDED;

	hamming_check_page(insertion->index, page, block, &insertion->codes, &insertion->nulls);
	if (!start)
	{
		const HammingHead *head = HammingPageGetHead(page);

		/* a page without entries may change its kind */
		start = head->count == 0;
		if (!start && head->kind != layout->kind)
			outcome = UNSUITABLE;
		else if (!start && head->count >= layout->capacity)
			outcome = FULL;
	}
	if (outcome == ADDED && start)
	{
		GenericXLogState *xlog = GenericXLogStart(insertion->index);

		page = GenericXLogRegisterBuffer(xlog, buffer, GENERIC_XLOG_FULL_IMAGE);
		hamming_page_init(page, layout->kind);
		hamming_page_add(page, layout, insertion->entry);
		GenericXLogFinish(xlog);
	}
	else if (outcome == ADDED)
		hamming_log_and_add(insertion->index, buffer, layout, insertion->entry);
	UnlockReleaseBuffer(buffer);
	if (outcome == ADDED && layout->kind == HAMMING_CODES)
		RelationSetTargetBlock(insertion->index, block);
	return outcome;
}

static Outcome
try_page(const Insertion *insertion, BlockNumber block)
{
	Buffer buffer = hamming_read(insertion->index, block, BUFFER_LOCK_UNLOCK, NULL);

	if (ConditionalLockBuffer(buffer))
		return add_to_page(insertion, buffer);
	ReleaseBuffer(buffer);
	return UNSUITABLE;
}

/* Tries some pages of which the free space map says that they have room. */
static bool
try_free_space(const Insertion *insertion)
{
	Relation	index = insertion->index;
	const Size	size = insertion->layout->kind == HAMMING_NULLS
						   ? HAMMING_ROOM_FOR_NULL
						   : insertion->codes.nbytes + sizeof(ItemPointerData);
	BlockNumber block = GetPageWithFreeSpace(index, size);

	for (int tries = 0; tries < MAX_TRIES && block != InvalidBlockNumber; tries++)
	{
		/* the map is not logged: after a crash it may know pages that are gone */
		const Outcome outcome = block > HAMMING_METAPAGE && block < RelationGetNumberOfBlocks(index)
									? try_page(insertion, block)
									: FULL;

		if (outcome == ADDED)
			return true;
		block = outcome == FULL ? RecordAndGetPageWithFreeSpace(index, block, 0, size)
								: GetPageWithFreeSpace(index, size);
	}
	return false;
}

static void
append_page(const Insertion *insertion)
{
	Relation		index = insertion->index;
	Buffer			buffer;
	BlockNumber		block;
	Size			room;
	Outcome outcome pg_attribute_unused();

	LockRelationForExtension(index, ExclusiveLock);
	buffer = ReadBuffer(index, P_NEW);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	UnlockRelationForExtension(index, ExclusiveLock);
	block = BufferGetBlockNumber(buffer);
	outcome = add_to_page(insertion, buffer);
	Assert(outcome == ADDED);

	/* others may use the page, too, above all should we go away */
	room = insertion->layout->kind == HAMMING_NULLS ? HAMMING_ROOM_FOR_NULL
													: hamming_codes_room(&insertion->codes, 1);
	RecordPageWithFreeSpace(index, block, room);
	FreeSpaceMapVacuumRange(index, block, block + 1);
}

bool
hamming_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			   Relation heap pg_attribute_unused(), IndexUniqueCheck check pg_attribute_unused(),
			   bool unchanged pg_attribute_unused(), IndexInfo *info pg_attribute_unused())
{
	BitHashView code = {.nbits = 0, .bits = NULL};
	BlockNumber block;
	Insertion	insertion = {.index = index};
	int			nbits;

	/* first, because fetching a value that is stored out of line reads catalogs */
	if (!isnull[0])
		code = DatumGetBitHashView(values[0]);
	nbits = isnull[0] ? (int) hamming_read_meta(index).nbits : get_bits(index, code.nbits);
	if (!isnull[0])
		hamming_check_code(index, code, nbits);
	insertion.codes = hamming_layout(HAMMING_CODES, nbits);
	insertion.nulls = hamming_layout(HAMMING_NULLS, 0);
	insertion.layout = isnull[0] ? &insertion.nulls : &insertion.codes;
	insertion.entry.bits = code.bits;
	insertion.entry.tid = *tid;
	block = RelationGetTargetBlock(index);
	if (!isnull[0] && block != InvalidBlockNumber && try_page(&insertion, block) == ADDED)
		return false;
	if (!try_free_space(&insertion))
		append_page(&insertion);
	return false;
}

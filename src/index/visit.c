/*
 * visit.c
 *		Reading all pages of a hamming index, as fast as memory gives them.
 *
 * Looking a block up among the buffers takes several reads from memory that depend on each
 * other, about as long as all distances on a page.  So each backend remembers the buffer in
 * which it found a block last time.  It is most likely still there: the server checks that,
 * and while one page is worked on, the next can be fetched from memory.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "../code/kernels.h"
#include "../compat.h"
#include "search.h"

/* pages that are visited without looking for interrupts */
#define MAX_IN_A_ROW 16

/*
 * What a backend remembers of an index; with room for the buffers of so many blocks of it, and
 * of its table.  The server frees it when the index changes, which can only be where locks are
 * taken.
 */
HammingMemory *
hamming_memory(Relation index, BlockNumber blocks, BlockNumber row_blocks)
{
	const HammingMemory nothing = {0};
	HammingMemory	   *memory = index->rd_amcache;

	if (memory == NULL || memory->blocks < blocks || memory->row_blocks < row_blocks)
	{
		const HammingMemory *old = memory != NULL ? memory : &nothing;
		const BlockNumber	 more_blocks = Max(blocks, old->blocks);
		const BlockNumber	 more_row_blocks = Max(row_blocks, old->row_blocks);
		const Size			 room = offsetof(HammingMemory, buffers) +
						  ((Size) more_blocks + more_row_blocks) * sizeof(Buffer);
		HammingMemory *larger =
			MemoryContextAllocExtended(index->rd_indexcxt, room, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

		*larger = *old;
		larger->blocks = more_blocks;
		larger->row_blocks = more_row_blocks;
		memcpy(larger->buffers, old->buffers, old->blocks * sizeof(Buffer));
		/* with another divisor, rows' pages have other places */
		if (more_row_blocks == old->row_blocks)
			memcpy(larger->buffers + more_blocks, old->buffers + old->blocks,
				   old->row_blocks * sizeof(Buffer));
		if (memory != NULL)
			pfree(memory);
		index->rd_amcache = memory = larger;
	}
	return memory;
}

/* The buffer where a block most likely is, if there is such a block and it was found before. */
static Buffer
buffer_of(const HammingMemory *memory, BlockNumber block, BlockNumber blocks)
{
	return block < blocks ? Max(memory->buffers[block], InvalidBuffer) : InvalidBuffer;
}

/*
 * The two pages that come after this one, by steps of so many blocks.  Whoever visits this one
 * prefetches what it will need of them; we do so with what it takes to pin them.  Inlined always:
 * gcc drops a prefetch from a function otherwise.
 */
static inline __attribute__((always_inline)) HammingUpcoming
upcoming_pages(const HammingMemory *memory, Page page, BlockNumber block, BlockNumber step,
			   BlockNumber blocks)
{
	const Buffer	next = buffer_of(memory, block + step, blocks);
	const Buffer	later = buffer_of(memory, block + 2 * step, blocks);
	HammingUpcoming upcoming;

	if (later != InvalidBuffer)
	{
		__builtin_prefetch(GetBufferDescriptor(later - 1), 1);
		__builtin_prefetch(BufferGetPage(later));
	}
	upcoming.next = next == InvalidBuffer ? 0 : BufferGetPage(next) - page;
	upcoming.later = later == InvalidBuffer ? 0 : BufferGetPage(later) - page;
	return upcoming;
}

/*
 * Blocks from first to before end are looked up among the buffers all the same: only that counts
 * as use of a buffer, and the server takes away those that are not used.  It is each block's turn
 * once in a second, if the index is searched as often.
 */
typedef struct LookUps
{
	BlockNumber first;
	BlockNumber end;
} LookUps;

static LookUps
next_look_ups(HammingMemory *memory, BlockNumber blocks)
{
	const TimestampTz now = GetCurrentTimestamp();
	const TimestampTz since = now - memory->looked_up;
	LookUps			  due = {0, blocks};

	/* a clock may be set back */
	if (since >= 0 && since < USECS_PER_SEC)
	{
		due.first = memory->next_look_up < blocks ? memory->next_look_up : 0;
		due.end = Min(due.first + (BlockNumber) (blocks * (uint64) since / USECS_PER_SEC), blocks);
	}
	if (due.first < due.end)
	{
		memory->next_look_up = due.end;
		memory->looked_up = now;
	}
	return due;
}

/* A block's buffer, pinned, if it is where it was last time; else InvalidBuffer. */
static Buffer
pin_from_memory(Relation index, BlockNumber block, const HammingMemory *memory)
{
	const Buffer buffer = memory->buffers[block];

	if (!BufferIsValid(buffer) ||
		!ReadRecentBuffer(relation_locator(index), MAIN_FORKNUM, block, buffer))
		return InvalidBuffer;
	pgstat_count_buffer_read(index);
	pgstat_count_buffer_hit(index);
	return buffer;
}

/* Settles a page that has been visited, if there is one, and lets go of it. */
static void
settle(const HammingVisitor *visitor, Buffer *visited)
{
	if (*visited == InvalidBuffer)
		return;
	if (visitor->settle != NULL)
		visitor->settle(visitor->state, BufferGetPage(*visited));
	UnlockReleaseBuffer(*visited);
	*visited = InvalidBuffer;
}

/*
 * Visits every step-th page.  If it is to be settled it stays locked while the next one is
 * visited, but not while that is looked up or read from disk; and as nothing can interrupt a
 * backend that holds such a lock, we let go of it now and then.
 */
static void
visit_every(Relation index, HammingMemory *memory, BlockNumber blocks, BlockNumber step,
			LookUps due, const HammingVisitor *visitor)
{
	Buffer visited = InvalidBuffer;
	int	   in_a_row = 0;

	for (BlockNumber block = HAMMING_FIRST_PAGE; block < blocks; block += step)
	{
		const bool look_up = block >= due.first && block < due.end;
		Buffer	   buffer = look_up ? InvalidBuffer : pin_from_memory(index, block, memory);
		Page	   page;

		if (buffer == InvalidBuffer || ++in_a_row == MAX_IN_A_ROW)
		{
			settle(visitor, &visited);
			in_a_row = 0;
		}
		CHECK_FOR_INTERRUPTS();
		if (buffer == InvalidBuffer)
			memory->buffers[block] = buffer = hamming_read(index, block, BUFFER_LOCK_UNLOCK, NULL);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		visitor->visit(visitor->state, page, block,
					   upcoming_pages(memory, page, block, step, blocks));
		settle(visitor, &visited);
		visited = buffer;
		if (visitor->settle == NULL)
			settle(visitor, &visited);
	}
	settle(visitor, &visited);
}

/*
 * VACUUM may move entries to pages that have been visited already.  It counts that in the
 * metapage, which makes the visit start again; the second time it asks VACUUM to wait,
 * which it does between two moves (but not on a standby server, where moves just arrive).
 */
void
hamming_visit_pages(Relation index, const HammingVisitor *visitor)
{
	bool waits = false;

	for (;;)
	{
		const uint64	  moves = hamming_read_meta(index).moves;
		const BlockNumber blocks = RelationGetNumberOfBlocks(index);
		HammingMemory	 *memory = hamming_memory(index, blocks, 0);

		visitor->start(visitor->state);
		visit_every(index, memory, blocks, 1, next_look_ups(memory, blocks), visitor);
		if (hamming_read_meta(index).moves == moves)
			break;
		if (!waits)
			LockPage(index, HAMMING_METAPAGE, ShareLock);
		waits = true;
	}
	if (waits)
		UnlockPage(index, HAMMING_METAPAGE, ShareLock);
}

void
hamming_visit_sample(Relation index, BlockNumber step, const HammingVisitor *visitor)
{
	const BlockNumber blocks = RelationGetNumberOfBlocks(index);
	const LookUps	  none = {0, 0};

	visit_every(index, hamming_memory(index, blocks, 0), blocks, step, none, visitor);
}

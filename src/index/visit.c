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
#include "storage/lmgr.h"
#include "utils/memutils.h"

#include "../code/kernels.h"
#include "../compat.h"
#include "search.h"

/* blocks of an index that CPUs keep in their last cache: 16 MB */
#define CACHED_BLOCKS 2048

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

/* Where in memory a block most likely is, if there is such a block and it was found before. */
static Page
page_of(const HammingMemory *memory, BlockNumber block, BlockNumber blocks)
{
	if (block >= blocks || memory->buffers[block] <= 0)
		return NULL;
	return BufferGetPage(memory->buffers[block]);
}

/*
 * Asks for a page of a large index that comes soon, as far as the CPU's second cache, from where
 * the kernels prefetch it when it comes next.  Inlined always: to gcc a function that only
 * prefetches is one without effect.
 */
static inline __attribute__((always_inline)) void
fetch_early(const HammingMemory *memory, BlockNumber block, BlockNumber blocks)
{
	const Page page = page_of(memory, block, blocks);

	if (blocks <= CACHED_BLOCKS || page == NULL)
		return;
	for (int offset = 0; offset < BLCKSZ; offset += CACHE_LINE)
		__builtin_prefetch(page + offset, 0, 1);
}

/* A block's buffer, pinned and share-locked. */
static Buffer
read_block(Relation index, BlockNumber block, HammingMemory *memory)
{
	Buffer buffer = memory->buffers[block];

	if (!BufferIsValid(buffer) || (block + memory->visits) % HAMMING_LOOK_UP_EVERY == 0 ||
		!ReadRecentBuffer(relation_locator(index), MAIN_FORKNUM, block, buffer))
	{
		buffer = hamming_read(index, block, BUFFER_LOCK_UNLOCK, NULL);
		memory->buffers[block] = buffer;
	}
	else
	{
		pgstat_count_buffer_read(index);
		pgstat_count_buffer_hit(index);
	}
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	return buffer;
}

/*
 * VACUUM may move entries to pages that have been visited already.  It counts that in the
 * metapage, which makes the visit start again; the second time it asks VACUUM to wait,
 * which it does between two moves (but not on a standby server, where moves just arrive).
 */
void
hamming_visit_pages(Relation index, void (*start)(void *), HammingPageVisitor visit, void *state)
{
	bool waits = false;

	for (;;)
	{
		const uint64	  moves = hamming_read_meta(index).moves;
		const BlockNumber blocks = RelationGetNumberOfBlocks(index);
		HammingMemory	 *memory = hamming_memory(index, blocks, 0);

		memory->visits++;
		start(state);
		for (BlockNumber block = HAMMING_FIRST_PAGE; block < blocks; block++)
		{
			Buffer buffer;

			CHECK_FOR_INTERRUPTS();
			buffer = read_block(index, block, memory);
			fetch_early(memory, block + 2, blocks);
			visit(state, BufferGetPage(buffer), block, page_of(memory, block + 1, blocks));
			UnlockReleaseBuffer(buffer);
		}
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
hamming_visit_sample(Relation index, BlockNumber step, HammingPageVisitor visit, void *state)
{
	const BlockNumber blocks = RelationGetNumberOfBlocks(index);
	HammingMemory	 *memory = hamming_memory(index, blocks, 0);

	for (BlockNumber block = HAMMING_FIRST_PAGE; block < blocks; block += step)
	{
		Buffer buffer = read_block(index, block, memory);

		visit(state, BufferGetPage(buffer), block, page_of(memory, block + step, blocks));
		UnlockReleaseBuffer(buffer);
	}
}

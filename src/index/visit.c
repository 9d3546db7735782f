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
#include "storage/lmgr.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "search.h"

#define CACHE_LINE 64

/*
 * What a backend remembers of an index; with room for the buffers of so many blocks.  The
 * server frees it when the index changes, which can only be where locks are taken.
 */
HammingMemory *
hamming_memory(Relation index, BlockNumber blocks)
{
	HammingMemory *memory = index->rd_amcache;

	if (memory == NULL || memory->blocks < blocks)
	{
		const Size	   room = offsetof(HammingMemory, buffers) + blocks * sizeof(Buffer);
		HammingMemory *larger =
			MemoryContextAllocExtended(index->rd_indexcxt, room, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

		if (memory != NULL)
		{
			memcpy(larger, memory,
				   offsetof(HammingMemory, buffers) + memory->blocks * sizeof(Buffer));
			pfree(memory);
		}
		larger->blocks = blocks;
		index->rd_amcache = memory = larger;
	}
	return memory;
}

/*
 * Asks for a page that is needed soon; for all of it, since the memory is fast only if nothing
 * is left out.  Inlined always: to gcc a function that only prefetches is one without effect,
 * and it drops calls of such.
 */
static inline __attribute__((always_inline)) void
fetch_ahead(Buffer buffer)
{
	if (buffer <= 0)
		return;
	for (int offset = 0; offset < BLCKSZ; offset += CACHE_LINE)
		__builtin_prefetch((char *) BufferGetBlock(buffer) + offset);
}

/* A block's buffer, pinned and share-locked. */
static Buffer
read_block(Relation index, BlockNumber block, HammingMemory *memory)
{
	Buffer buffer = memory->buffers[block];

	if (!BufferIsValid(buffer) || !read_recent_buffer(index, block, buffer))
	{
		buffer = hamming_read(index, block, BUFFER_LOCK_UNLOCK, NULL);
		memory->buffers[block] = buffer;
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
		HammingMemory	 *memory = hamming_memory(index, blocks);

		start(state);
		for (BlockNumber block = HAMMING_FIRST_PAGE; block < blocks; block++)
		{
			Buffer buffer;

			CHECK_FOR_INTERRUPTS();
			buffer = read_block(index, block, memory);
			if (block + 1 < blocks)
				fetch_ahead(memory->buffers[block + 1]);
			visit(state, BufferGetPage(buffer), block);
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
	HammingMemory	 *memory = hamming_memory(index, blocks);

	for (BlockNumber block = HAMMING_FIRST_PAGE; block < blocks; block += step)
	{
		Buffer buffer = read_block(index, block, memory);

		visit(state, BufferGetPage(buffer), block);
		UnlockReleaseBuffer(buffer);
	}
}

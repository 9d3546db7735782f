/*
 * ahead.c
 *		The rows that a scan returns next: asked for before the executor wants them.
 *
 * A search leaves the table's rows where it found them: out of the CPU's cache, which the
 * index has just gone through, or on disk.  Near codes are in rows all over the table, so
 * that each row costs several reads from main memory that depend on each other: looking its
 * block up among the buffers, the buffer's descriptor, the page's header, the line pointer,
 * the row.  That is most of what a row costs, and all of it can be had beforehand.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "storage/bufpage.h"

#include "../code/kernels.h"
#include "../compat.h"
#include "ahead.h"

/*
 * Rows come nearer in steps, each a batch of rows after the one before, so that what it reads
 * has arrived: the buffer's descriptor is prefetched; its tag tells whether the page is there,
 * and if so, the header and the line pointer are, if not, the page is asked for from disk;
 * the line pointer tells where the row is.  In batches, because finding out where in memory an
 * address is takes longer than reading from there, and the CPU does several at a time.
 */
enum
{
	DESCRIPTOR,
	PAGE,
	ROW,
	STEPS
};

#define MAX_BATCH 16

/*
 * One page of so many is left to the executor to look up: only that counts as use of a buffer, and
 * the server takes away those that are not used.
 */
#define LOOK_UP_EVERY 64

/* blocks of a table whose buffers are remembered, at the most; by their remainder, if more */
#define MAX_ROW_BLOCKS (128 * 1024)

void
ahead_start(HammingAhead *ahead, Relation table)
{
	const BlockNumber blocks = Min(Max(RelationGetNumberOfBlocks(table), 1), MAX_ROW_BLOCKS);

	memset(ahead, 0, sizeof(*ahead));
	/* with room to grow: a different number means to forget where rows are */
	ahead->blocks = pg_nextpower2_32(blocks);
}

/* Where the buffer of a row's page is remembered. */
static Buffer *
place_of(HammingMemory *memory, BlockNumber block)
{
	return &memory->buffers[memory->blocks + block % memory->row_blocks];
}

static void
ask_for_page(Relation table, BlockNumber block, OffsetNumber offset, Buffer *place)
{
	char *page;

	if (*place <= 0 || !buffer_seems_to_hold(*place, table, block))
		*place = PrefetchBuffer(table, MAIN_FORKNUM, block).recent_buffer;
	/* a backend's own buffers, of temporary tables, have negative numbers */
	if (*place <= 0 || offset > MaxHeapTuplesPerPage)
		return;
	page = BufferGetBlock(*place);
	__builtin_prefetch(GetBufferDescriptor(*place - 1));
	__builtin_prefetch(page);
	__builtin_prefetch(PageGetItemId(page, offset));
}

/*
 * Nothing is pinned: by now the page may be another one, and the line pointer anything.  (In
 * a server made for valgrind it may not be read without a pin.)  Inlined always: to gcc a
 * function that only prefetches is one without effect.
 */
static inline __attribute__((always_inline)) void
ask_for_row(Buffer buffer pg_attribute_unused(), OffsetNumber offset pg_attribute_unused())
{
#ifndef USE_VALGRIND
	if (buffer > 0 && offset <= MaxHeapTuplesPerPage)
	{
		char *page = BufferGetBlock(buffer);
		char *row = page + ItemIdGetOffset(PageGetItemId(page, offset));

		__builtin_prefetch(row);
		__builtin_prefetch(row + CACHE_LINE);
	}
#endif
}

/* One more step for the rows that come next, up to that many. */
static void
advance(HammingAhead *ahead, HammingMemory *memory, Relation table, const uint64 *keys, int step,
		int upto)
{
	for (int i = ahead->done[step]; i < upto; i++)
	{
		const BlockNumber  block = KEY_BLOCK(keys[i]);
		const OffsetNumber offset = KEY_OFFSET(keys[i]);
		Buffer			  *place = place_of(memory, block);

		if (step == DESCRIPTOR && *place > 0)
			__builtin_prefetch(GetBufferDescriptor(*place - 1));
		else if (step == PAGE)
			ask_for_page(table, block, offset, place);
		else if (step == ROW)
			ask_for_row(*place, offset);
	}
	ahead->done[step] = Max(ahead->done[step], upto);
}

/*
 * Gives the executor the page on which the row is, if it is where we think.  The server's
 * table access method looks a block up unless it is the one that it has pinned already:
 * so we exchange that, and do what goes with it.
 */
static void
hand_over_page(HammingAhead *ahead, IndexScanDesc scan, BlockNumber block, Buffer buffer)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) scan->xs_heapfetch;
	Relation			table = scan->heapRelation;

	if (table->rd_tableam != GetHeapamTableAmRoutine() || buffer <= 0 || buffer == fetch->xs_cbuf ||
		++ahead->handed_over % LOOK_UP_EVERY == 0 ||
		!ReadRecentBuffer(relation_locator(table), MAIN_FORKNUM, block, buffer))
		return;
	if (BufferIsValid(fetch->xs_cbuf))
		ReleaseBuffer(fetch->xs_cbuf);
	fetch->xs_cbuf = buffer;
	pgstat_count_buffer_read(table);
	pgstat_count_buffer_hit(table);
	heap_page_prune_opt(table, buffer);
}

void
ahead_of_row(HammingAhead *ahead, IndexScanDesc scan, const HammingSearch *search, uint64 current)
{
	/* again each time: between two rows the server may have freed it */
	HammingMemory *memory = hamming_memory(scan->indexRelation, 0, ahead->blocks);

	if (ahead->until_next == 0)
	{
		int			  known;
		const uint64 *keys = hamming_search_peek(search, &known);

		/* few at first, since the executor may want few rows */
		ahead->batch = Min(Max(ahead->batch * 2, 1), MAX_BATCH);
		ahead->until_next = ahead->batch;
		for (int step = ROW; step >= DESCRIPTOR; step--)
			advance(ahead, memory, scan->heapRelation, keys, step,
					Min((STEPS - step) * ahead->batch, known));
		/* these are returned until then */
		for (int step = DESCRIPTOR; step <= ROW; step++)
			ahead->done[step] = Max(ahead->done[step] - ahead->batch, 0);
	}
	ahead->until_next--;
	hand_over_page(ahead, scan, KEY_BLOCK(current), *place_of(memory, KEY_BLOCK(current)));
}

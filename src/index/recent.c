/*
 * recent.c
 *		What a backend remembers of an index: above all in which buffers its pages were.
 *
 * Looking a block up among the buffers takes several reads from memory that depend on each other,
 * about as long as all distances on a page.  So each backend remembers the buffer in which it found
 * a block last time.  It is most likely still there, which the server checks; and while one page is
 * worked on, the next can be fetched into the CPU's cache.
 *
 * Where buffers and their descriptors are in memory is the server's own business.  What is done
 * here is tested for the versions that compat.h names; for others, visit.c reads pages the public
 * way.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "../code/kernels.h"
#include "../compat.h"
#include "visit.h"

bool flat_private_interfaces = PRIVATE_INTERFACES_TESTED;

static bool
check_private_interfaces(bool *setting, void **extra pg_attribute_unused(),
						 GucSource source pg_attribute_unused())
{
	if (*setting && !PRIVATE_INTERFACES_TESTED)
	{
		GUC_check_errdetail("They were not tested with this version of PostgreSQL.");
		return false;
	}
	return true;
}

/* Defines the setting by which tests try both ways; answers are the same. */
void
flat_init(void)
{
	DefineCustomBoolVariable(
		"unifdiag.private_interfaces", "Whether an index uses private interfaces of the server.",
		"For tests: answers are the same.", &flat_private_interfaces, PRIVATE_INTERFACES_TESTED,
		PGC_USERSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, check_private_interfaces, NULL, NULL);
}

/*
 * What a backend remembers of an index, with room for the buffers of so many blocks.  The server
 * frees it whenever it reads catalogs and learns that the index may have changed.  So the pointer
 * is valid only until the next call that may read catalogs.
 */
FlatMemory *
flat_memory(Relation index, BlockNumber blocks)
{
	FlatMemory *memory = index->rd_amcache;

	if (memory == NULL || memory->blocks < blocks)
	{
		FlatMemory *larger = MemoryContextAllocExtended(
			index->rd_indexcxt, offsetof(FlatMemory, buffers) + (Size) blocks * sizeof(Buffer),
			MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

		if (memory != NULL)
		{
			memcpy(larger, memory, offsetof(FlatMemory, buffers) + memory->blocks * sizeof(Buffer));
			pfree(memory);
		}
		larger->blocks = blocks;
		index->rd_amcache = memory = larger;
	}
	return memory;
}

/* The buffer where a block most likely is, if there is such a block and it was found before. */
static Buffer
buffer_of(const FlatMemory *memory, BlockNumber block, BlockNumber blocks)
{
	return block < blocks ? Max(memory->buffers[block], InvalidBuffer) : InvalidBuffer;
}

/*
 * The two pages that come after this one, by steps of so many blocks.  The visitor of this one
 * prefetches what it will need of them, and we what it takes to pin the later one.  Always inlined:
 * gcc drops a prefetch from a function otherwise.
 */
static inline __attribute__((always_inline)) HammingUpcoming
upcoming_pages(const FlatMemory *memory, Page page, BlockNumber block, BlockNumber step,
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
next_look_ups(FlatMemory *memory, BlockNumber blocks)
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

/* A block's buffer, pinned and share-locked. */
static Buffer
read_block(Relation index, BlockNumber block, FlatMemory *memory, bool look_up)
{
	Buffer buffer = memory->buffers[block];

	if (!BufferIsValid(buffer) || look_up ||
		!ReadRecentBuffer(relation_locator(index), MAIN_FORKNUM, block, buffer))
	{
		buffer = flat_read(index, block, BUFFER_LOCK_UNLOCK, NULL);
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
 * Calls visit for every step-th page of entries before block end, one share lock at a time.  If
 * count_use, some of them count as used.
 */
void
flat_visit_recent(Relation index, BlockNumber end, BlockNumber step, bool count_use,
				  FlatPageVisitor visit, void (*between)(void *), void *state)
{
	LookUps due = {0, 0};

	if (count_use)
		due = next_look_ups(flat_memory(index, end), end);
	for (BlockNumber block = FLAT_FIRST_PAGE; block < end; block += step)
	{
		FlatMemory *memory;
		Buffer		buffer;
		Page		page;

		CHECK_FOR_INTERRUPTS();
		/* again for each page: the visitor may read catalogs */
		memory = flat_memory(index, end);
		buffer = read_block(index, block, memory, block >= due.first && block < due.end);
		page = BufferGetPage(buffer);
		visit(state, page, block, upcoming_pages(memory, page, block, step, end));
		UnlockReleaseBuffer(buffer);
		if (between != NULL)
			between(state);
	}
}

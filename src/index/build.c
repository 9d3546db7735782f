/*
 * build.c
 *		Building a hamming index: pages are filled in the order of the table.
 *
 * Nobody else sees the index yet, so that its pages need no buffers.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "hamming.h"
#include "page_writer.h"

/* rows after which progress is reported, and what was detoasted is freed */
#define ROWS_AT_A_TIME 1024

typedef struct BuildState
{
	Relation	  index;
	IndexInfo	 *info;
	MemoryContext context; /* for some rows */
	int			  nbits;   /* 0 until there is a code */
	HammingLayout layouts[2];
	PageWriter	 *writer;
	Page		  pages[2]; /* the page being filled, of codes and of nulls; or NULL */
	BlockNumber	  end;		/* blocks that have been given to pages */
	int64		  rows;		/* of the table that have been indexed */
	int64		  counts[2];
} BuildState;

enum
{
	CODES,
	NULLS
};

/* The length of the codes as the column's type gives it, or 0 if it does not. */
int
hamming_declared_bits(Relation index)
{
	return Max(TupleDescAttr(RelationGetDescr(index), 0)->atttypmod, 0);
}

/* An error if a code to be indexed is not as long as those that are. */
void
hamming_check_code(Relation index, BitHashView code, int nbits, bool is_built)
{
	if (nbits != 0 && code.nbits != nbits)
		ereport(ERROR, errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
				errmsg("code has %d bits, and index \"%s\" holds codes of %d", code.nbits,
					   RelationGetRelationName(index), nbits),
				is_built
					? errhint("Give the column the type bithash(n), so that all codes have the "
							  "same length.  If no row has one of %d bits any more, VACUUM "
							  "(INDEX_CLEANUP on) of the table lets the index take another length.",
							  nbits)
					: errhint("Give the column the type bithash(n), so that all codes have the "
							  "same length."));
}

/* Writes the page being filled; returns its block. */
static BlockNumber
finish_page(BuildState *state, int which)
{
	const BlockNumber block = state->end++;

	page_writer_write(state->writer, block, state->pages[which]);
	state->pages[which] = NULL;
	return block;
}

static void
add_entry(BuildState *state, int which, HammingEntry entry)
{
	const HammingLayout *layout = &state->layouts[which];

	if (state->pages[which] == NULL)
	{
		state->pages[which] = page_writer_new(state->writer);
		hamming_page_init(state->pages[which], layout);
	}
	hamming_page_add(state->pages[which], layout, entry);
	if (HammingPageGetHead(state->pages[which])->count == layout->capacity)
		finish_page(state, which);
	state->counts[which]++;
}

static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	BuildState	 *state = arg;
	const int	  which = isnull[0] ? NULLS : CODES;
	MemoryContext caller = MemoryContextSwitchTo(state->context);
	BitHashView	  code = {.nbits = 0, .bits = NULL};
	HammingEntry  entry = {.bits = NULL, .tid = *tid};

	if (!isnull[0])
		code = DatumGetBitHashView(values[0]);
	/*
	 * A deleted row that an older snapshot may still see, of another length than the others
	 * or the first of any: it is no reason to fail, but such snapshots must do without this
	 * index.
	 */
	if (!alive && !isnull[0] && code.nbits != state->nbits)
	{
		state->info->ii_BrokenHotChain = true;
		MemoryContextSwitchTo(caller);
		return;
	}
	if (!isnull[0])
	{
		hamming_check_code(index, code, state->nbits, false);
		if (state->layouts[CODES].capacity == 0)
		{
			state->nbits = code.nbits;
			state->layouts[CODES] = hamming_layout(HAMMING_CODES, code.nbits);
		}
		entry.bits = code.bits;
	}
	add_entry(state, which, entry);
	MemoryContextSwitchTo(caller);
	if (++state->rows % ROWS_AT_A_TIME == 0)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, state->rows);
		MemoryContextReset(state->context);
	}
}

/* Writes the pages that are not full; in room what the free space map should know of them. */
static void
finish_pages(BuildState *state, BlockNumber *blocks, Size *room)
{
	for (int which = CODES; which <= NULLS; which++)
	{
		HammingContents contents = {.layout = &state->layouts[which]};

		blocks[which] = InvalidBlockNumber;
		if (state->pages[which] == NULL)
			continue;
		contents.count = HammingPageGetHead(state->pages[which])->count;
		room[which] = hamming_page_room(contents);
		blocks[which] = finish_page(state, which);
	}
}

static void
write_meta(BuildState *state)
{
	Page		 page = page_writer_new(state->writer);
	HammingMeta *meta = HammingPageGetMeta(page);

	hamming_meta_init(page, state->nbits);
	meta->end = state->end;
	meta->codes = state->counts[CODES];
	meta->nulls = state->counts[NULLS];
	page_writer_write(state->writer, HAMMING_METAPAGE, page);
}

/* All pages get to the log and to the file; then the free space map can be told of them. */
static void
finish_build(BuildState *state)
{
	BlockNumber blocks[2];
	Size		room[2];

	finish_pages(state, blocks, room);
	write_meta(state);
	page_writer_finish(state->writer);
	for (int which = CODES; which <= NULLS; which++)
	{
		if (blocks[which] != InvalidBlockNumber)
			RecordPageWithFreeSpace(state->index, blocks[which], room[which]);
	}
	IndexFreeSpaceMapVacuum(state->index);
}

IndexBuildResult *
hamming_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	MemoryContext	  context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	BuildState	 *state = palloc0(sizeof(BuildState));

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	state->index = index;
	state->info = info;
	state->nbits = hamming_declared_bits(index);
	state->context = AllocSetContextCreate(context, "hamming build, rows", ALLOCSET_DEFAULT_SIZES);
	state->layouts[NULLS] = hamming_layout(HAMMING_NULLS, 0);
	state->layouts[CODES] = hamming_layout(HAMMING_CODES, state->nbits);
	state->writer = page_writer_start(index);
	state->end = HAMMING_FIRST_PAGE;

	MemoryContextSwitchTo(caller);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HAMMING_PHASE_SCAN);
	result->heap_tuples =
		table_index_build_scan(heap, index, info, true, true, add_row, state, NULL);
	result->index_tuples = (double) state->rows;
	MemoryContextSwitchTo(context);
	finish_build(state);
	MemoryContextSwitchTo(caller);

	MemoryContextDelete(context);
	return result;
}

/* The index of an unlogged table as it is after a crash: the metapage. */
void
hamming_build_empty(Relation index)
{
	Buffer buffer;

	extend_relation(index, INIT_FORKNUM, &buffer);
	START_CRIT_SECTION();
	hamming_meta_init(BufferGetPage(buffer), hamming_declared_bits(index));
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

char *
hamming_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case HAMMING_PHASE_SCAN:
			return "scanning table";
		default:
			return NULL;
	}
}

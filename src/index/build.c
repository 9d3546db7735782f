/*
 * build.c
 *		Building a hamming index: pages are filled in the order of the table.
 *
 * Nobody else sees the index yet, so that its pages need no buffers: they go to the log, and
 * to the file, by the dozen.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "storage/smgr.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "hamming.h"

/* rows after which progress is reported, and what was detoasted is freed */
#define ROWS_AT_A_TIME 1024

/* pages that are written together: as many as one record of the log holds */
#define PAGES_AT_A_TIME 32

/* what the server wants pages to be aligned to that it writes, from some version on */
#define PAGE_ALIGNMENT 4096

typedef struct BuildState
{
	Relation	   index;
	IndexInfo	  *info;
	MemoryContext  context; /* for some rows */
	int			   nbits;	/* 0 until there is a code */
	HammingLayout  layouts[2];
	PGAlignedBlock pages[2]; /* the page being filled, of codes and of nulls */
	char		  *full;	 /* pages that wait to be written */
	int			   nfull;
	BlockNumber	   written; /* blocks that have been */
	int64		   rows;	/* of the table that have been indexed */
	int64		   counts[2];
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

/* Appends the pages that wait to the index. */
static void
write_pages(BuildState *state)
{
	Relation	index = state->index;
	const bool	logged = RelationNeedsWAL(index);
	BlockNumber blocks[PAGES_AT_A_TIME];
	Page		pages[PAGES_AT_A_TIME];

	for (int i = 0; i < state->nfull; i++)
	{
		blocks[i] = state->written + i;
		pages[i] = state->full + (Size) i * BLCKSZ;
	}
	if (logged && state->nfull > 0)
		log_newpages(&relation_locator(index), MAIN_FORKNUM, state->nfull, blocks, pages, true);
	for (int i = 0; i < state->nfull; i++)
	{
		PageSetChecksumInplace(pages[i], blocks[i]);
		/* if it is logged we see to it in the end that it is on disk, else checkpoints do */
		smgrextend(RelationGetSmgr(index), MAIN_FORKNUM, blocks[i], pages[i], logged);
	}
	state->written += state->nfull;
	state->nfull = 0;
}

/* Puts the page being filled behind those that wait, and starts another; returns its block. */
static BlockNumber
finish_page(BuildState *state, int which)
{
	const BlockNumber block = state->written + state->nfull;

	memcpy(state->full + (Size) state->nfull++ * BLCKSZ, state->pages[which].data, BLCKSZ);
	if (state->nfull == PAGES_AT_A_TIME)
		write_pages(state);
	hamming_page_init(state->pages[which].data, &state->layouts[which]);
	return block;
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
			hamming_page_init(state->pages[CODES].data, &state->layouts[CODES]);
		}
		entry.bits = code.bits;
	}
	hamming_page_add(state->pages[which].data, &state->layouts[which], entry);
	if (HammingPageGetHead(state->pages[which].data)->count == state->layouts[which].capacity)
		finish_page(state, which);
	state->counts[which]++;
	MemoryContextSwitchTo(caller);
	if (++state->rows % ROWS_AT_A_TIME == 0)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, state->rows);
		MemoryContextReset(state->context);
	}
}

/* Writes the pages that are not full, and tells the free space map of them. */
static void
finish_pages(BuildState *state)
{
	BlockNumber blocks[2] = {InvalidBlockNumber, InvalidBlockNumber};
	Size		room[2];

	for (int which = CODES; which <= NULLS; which++)
	{
		const HammingContents contents = {
			.layout = &state->layouts[which],
			.count = HammingPageGetHead(state->pages[which].data)->count,
		};

		if (contents.count == 0)
			continue;
		room[which] = hamming_page_room(contents);
		blocks[which] = finish_page(state, which);
	}
	write_pages(state);
	for (int which = CODES; which <= NULLS; which++)
	{
		if (blocks[which] != InvalidBlockNumber)
			RecordPageWithFreeSpace(state->index, blocks[which], room[which]);
	}
	IndexFreeSpaceMapVacuum(state->index);
}

/*
 * The metapage comes last.  Then all must get to disk: a checkpoint may have been in the
 * meantime, after which our log would not be looked at again, and it knows nothing of us.
 */
static void
finish_meta(BuildState *state)
{
	Relation	 index = state->index;
	const bool	 logged = RelationNeedsWAL(index);
	Page		 page = state->full;
	HammingMeta *meta = HammingPageGetMeta(page);

	hamming_meta_init(page, state->nbits);
	meta->end = state->written;
	meta->codes = state->counts[CODES];
	meta->nulls = state->counts[NULLS];
	if (logged)
		log_newpage(&relation_locator(index), MAIN_FORKNUM, HAMMING_METAPAGE, page, true);
	PageSetChecksumInplace(page, HAMMING_METAPAGE);
	smgrwrite(RelationGetSmgr(index), MAIN_FORKNUM, HAMMING_METAPAGE, page, logged);
	if (logged)
		smgrimmedsync(RelationGetSmgr(index), MAIN_FORKNUM);
}

IndexBuildResult *
hamming_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	MemoryContext	  context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	BuildState	 *state = palloc0(sizeof(BuildState));
	char		 *room;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	state->index = index;
	state->info = info;
	state->nbits = hamming_declared_bits(index);
	state->context = AllocSetContextCreate(context, "hamming build, rows", ALLOCSET_DEFAULT_SIZES);
	state->layouts[NULLS] = hamming_layout(HAMMING_NULLS, 0);
	state->layouts[CODES] = hamming_layout(HAMMING_CODES, state->nbits);
	hamming_page_init(state->pages[CODES].data, &state->layouts[CODES]);
	hamming_page_init(state->pages[NULLS].data, &state->layouts[NULLS]);
	room = palloc((Size) PAGES_AT_A_TIME * BLCKSZ + PAGE_ALIGNMENT);
	state->full = room + PAGE_ALIGNMENT - (uintptr_t) room % PAGE_ALIGNMENT;

	/* the metapage's place */
	hamming_meta_init(state->full, state->nbits);
	state->nfull = 1;

	MemoryContextSwitchTo(caller);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HAMMING_PHASE_SCAN);
	result->heap_tuples =
		table_index_build_scan(heap, index, info, true, true, add_row, state, NULL);
	result->index_tuples = (double) state->rows;
	finish_pages(state);
	finish_meta(state);

	MemoryContextDelete(context);
	return result;
}

/* The index of an unlogged table as it is after a crash: the metapage. */
void
hamming_build_empty(Relation index)
{
	Buffer buffer = ReadBufferExtended(index, INIT_FORKNUM, P_NEW, RBM_NORMAL, NULL);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
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

/*
 * sketch_introduce.c
 *		A model for an index that was made before its rows.
 *
 * Its entries have no codes.  When there are enough of them, the backend that notices learns a model
 * from their rows, and writes it to new pages.  Then the metapage names the model, and from then on
 * new entries have codes.  At last the entries that are there get theirs, page by page.  As long as
 * that takes, the metapage's "learning" is the model's id.  So its pages are not taken for empty ones,
 * searches do without the model, and after a crash the next backend knows that something is left to do.
 *
 * One backend at a time does this: the one that holds a lock on the tag of a tuple of block 1.  Rows of
 * running transactions count as well.  Rows that are dead already get no code, and are always fetched.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "sketch_introduce.h"
#include "sketch_learn.h"
#include "sketch_model.h"
#include "sketch_rows.h"
#include "visit.h"

typedef struct Introduction
{
	Relation	  index;
	FlatMeta	  flat;
	SketchMeta	  meta;
	FlatLayout	  codes;
	FlatLayout	  nulls;
	SnapshotData  snapshot;
	SketchRows	  rows;
	SketchReader  reader;
	MemoryContext row; /* of a row */

	/* rows of the entries */
	Size			 count;
	Size			 room;
	ItemPointerData *tids;
} Introduction;

/* The vector of an entry's row; false if the row is dead.  Memory is that of a row. */
static bool
fetch_vector(Introduction *introduction, ItemPointerData tid, Vector *vector)
{
	MemoryContext caller = MemoryContextSwitchTo(introduction->row);
	Datum		  value;
	bool		  isnull;
	bool		  found;

	MemoryContextReset(introduction->row);
	flat_check_tid(introduction->rows.fetch->rel, introduction->index, tid);
	found = sketch_rows_fetch(&introduction->rows, tid, &value, &isnull) && !isnull &&
			sketch_try_read_vector(&introduction->reader, value, vector) &&
			vector->dims == introduction->codes.dims;
	MemoryContextSwitchTo(caller);
	return found;
}

static void
start_collecting(void *state)
{
	((Introduction *) state)->count = 0;
}

static void
collect_tids(void *state, Page page, BlockNumber block,
			 HammingUpcoming upcoming pg_attribute_unused())
{
	Introduction	  *introduction = state;
	const FlatContents contents = flat_page_contents(introduction->index, page, block,
													 &introduction->codes, &introduction->nulls);

	if (contents.layout != &introduction->codes)
		return;
	if (introduction->count + contents.count > introduction->room)
	{
		introduction->room = 2 * (introduction->count + contents.count);
		introduction->tids =
			introduction->tids == NULL
				? palloc_extended(sizeof(ItemPointerData) * introduction->room, MCXT_ALLOC_HUGE)
				: repalloc_huge(introduction->tids, sizeof(ItemPointerData) * introduction->room);
	}
	memcpy(introduction->tids + introduction->count, FlatPageGetTids(page, contents.layout),
		   sizeof(ItemPointerData) * contents.count);
	introduction->count += contents.count;
}

/* Learns from the rows; NULL if there are too few. */
static SketchLearner *
learn_rows(Introduction *introduction)
{
	const SketchShape shape =
		sketch_index_shape((int) introduction->meta.bits, introduction->codes.dims);
	SketchLearner *learner;
	Vector		   vector;

	if ((int64) introduction->count < sketch_least_rows(&shape))
		return NULL;
	learner =
		sketch_learner_create(shape, introduction->reader.metric, (int64) introduction->count);
	for (Size i = 0; i < introduction->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (fetch_vector(introduction, introduction->tids[i], &vector))
			sketch_learner_add(learner, vector.values);
	}
	/* many may have been dead */
	return sketch_learner_rows(learner) < sketch_least_rows(&shape) ? NULL : learner;
}

/* Calibrates a model by the rows that it was learnt from; returns how many there were. */
static int64
calibrate_rows(Introduction *introduction, const SketchLearner *learner, SketchModel *model)
{
	SketchEncoder	  *encoder = sketch_encoder_create(model, 1);
	SketchCalibration *calibration = sketch_learner_calibration(learner, model, 1);
	uint64			  *words = palloc(sizeof(uint64) * sketch_code_words(&model->parameters.shape));
	int64			   rows = 0;
	Vector			   vector;
	uint32			   numbers;

	for (Size i = 0; i < introduction->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!fetch_vector(introduction, introduction->tids[i], &vector))
			continue;
		sketch_encode(encoder, vector.values, 1, words, &numbers);
		sketch_calibrate(calibration, vector.values, 1, words, &numbers);
		rows++;
	}
	sketch_calibration_finish(calibration, &model->parameters);
	return rows;
}

/* Changes the metapage, if it still says what we know of it; else returns false. */
static bool
update_meta(Introduction *introduction, const FlatMeta *flat, const SketchMeta *meta)
{
	Relation		index = introduction->index;
	Buffer			buffer = flat_read(index, FLAT_METAPAGE, BUFFER_LOCK_EXCLUSIVE, NULL);
	const FlatMeta *now = flat_checked_meta(index, BufferGetPage(buffer));
	const bool		same =
		now->model == introduction->flat.model && now->learning == introduction->flat.learning &&
		now->dims == introduction->flat.dims && now->nbits == introduction->flat.nbits;

	if (same)
	{
		GenericXLogState *xlog = GenericXLogStart(index);
		Page			  page = GenericXLogRegisterBuffer(xlog, buffer, 0);

		FlatPageGetMeta(page)->model = flat->model;
		FlatPageGetMeta(page)->learning = flat->learning;
		FlatPageGetMeta(page)->end = Max(FlatPageGetMeta(page)->end, flat->end);
		*SketchPageGetMeta(page) = *meta;
		GenericXLogFinish(xlog);
		introduction->flat.model = flat->model;
		introduction->flat.learning = flat->learning;
		introduction->meta = *meta;
	}
	UnlockReleaseBuffer(buffer);
	return same;
}

/* Pages of the model, at the end of the file, each in a log record of its own. */
typedef struct ModelPages
{
	Relation		  index;
	Buffer			  buffer;
	GenericXLogState *xlog;
	BlockNumber		  end;
} ModelPages;

static Page
new_model_page(void *state, BlockNumber *block)
{
	ModelPages *pages = state;

	/* before 16, an insertion may have taken the page before we could lock it */
	for (;;)
	{
		extend_relation(pages->index, MAIN_FORKNUM, &pages->buffer);
		if (PageIsNew(BufferGetPage(pages->buffer)))
			break;
		UnlockReleaseBuffer(pages->buffer);
	}
	*block = BufferGetBlockNumber(pages->buffer);
	pages->end = Max(pages->end, *block + 1);
	pages->xlog = GenericXLogStart(pages->index);
	return GenericXLogRegisterBuffer(pages->xlog, pages->buffer, GENERIC_XLOG_FULL_IMAGE);
}

static void
write_model_page(void *state, BlockNumber block pg_attribute_unused(),
				 Page page pg_attribute_unused())
{
	ModelPages *pages = state;

	GenericXLogFinish(pages->xlog);
	UnlockReleaseBuffer(pages->buffer);
}

/* Learns, calibrates and writes a model, and names it in the metapage. */
static void
make_model(Introduction *introduction)
{
	ModelPages			  pages = {.index = introduction->index};
	const ModelPageWriter writer = {&pages, new_model_page, write_model_page};
	FlatMeta			  flat = introduction->flat;
	SketchMeta			  meta = introduction->meta;
	SketchLearner		 *learner;
	SketchModel			 *model;

	flat_visit_pages(introduction->index, start_collecting, collect_tids, introduction);
	learner = learn_rows(introduction);
	if (learner == NULL)
		return;
	model = sketch_learner_finish(learner, &meta.explained);
	meta.learnt = sketch_learner_rows(learner);
	meta.calibrated = calibrate_rows(introduction, learner, model);

	flat.learning = sketch_new_id();
	if (!update_meta(introduction, &flat, &introduction->meta))
		return;
	meta.block = sketch_write_model(model, flat.learning, &writer, &meta.crc);
	flat.model = flat.learning;
	flat.end = pages.end;
	update_meta(introduction, &flat, &meta);
}

/* A page's entries as they are when their codes are made. */
typedef struct PageEntries
{
	int				count;
	ItemPointerData tids[BLCKSZ / sizeof(ItemPointerData)];
} PageEntries;

/* Whether a page, which is locked, has entries without codes by the model; and which. */
static bool
has_old_entries(const Introduction *introduction, Page page, BlockNumber block,
				PageEntries *entries)
{
	const FlatContents contents = flat_page_contents(introduction->index, page, block,
													 &introduction->codes, &introduction->nulls);

	if (contents.layout != &introduction->codes || contents.model == introduction->codes.model)
		return false;
	entries->count = contents.count;
	memcpy(entries->tids, FlatPageGetTids(page, contents.layout),
		   sizeof(ItemPointerData) * contents.count);
	return true;
}

/* Makes codes; rows that cannot be read get none. */
static void
encode_entries(Introduction *introduction, const PageEntries *entries, uint64 *words,
			   uint32 *numbers)
{
	const int nwords = introduction->codes.words;
	Vector	  vector;

	memset(words, 0, sizeof(uint64) * nwords * entries->count);
	for (int i = 0; i < entries->count; i++)
	{
		SketchReady *ready;

		CHECK_FOR_INTERRUPTS();
		numbers[i] = SKETCH_UNKNOWN;
		if (!fetch_vector(introduction, entries->tids[i], &vector))
			continue;
		/* anew for each row: an expression of the index may have made the backend forget the model */
		ready = sketch_ready(introduction->index, introduction->codes.model);
		if (ready != NULL)
			memcpy(words + (Size) i * nwords, sketch_encode_one(ready, vector.values, &numbers[i]),
				   sizeof(uint64) * nwords);
	}
}

/*
 * Gives the entries of a page their codes, if they have none by the model.  Rows are read while
 * the page is not locked; if it has changed meanwhile, once more.
 */
static void
convert_page(Introduction *introduction, BlockNumber block)
{
	const FlatLayout *layout = &introduction->codes;
	uint64			 *words = palloc(sizeof(uint64) * layout->words * layout->capacity);
	uint32			 *numbers = palloc(sizeof(uint32) * layout->capacity);
	Buffer			  buffer = flat_read(introduction->index, block, BUFFER_LOCK_SHARE, NULL);
	PageEntries		  entries;
	PageEntries		  now;
	bool			  old;

	old = has_old_entries(introduction, BufferGetPage(buffer), block, &entries);
	while (old)
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		encode_entries(introduction, &entries, words, numbers);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		old = has_old_entries(introduction, BufferGetPage(buffer), block, &now);
		if (old && now.count == entries.count &&
			memcmp(now.tids, entries.tids, sizeof(ItemPointerData) * now.count) == 0)
		{
			GenericXLogState *xlog = GenericXLogStart(introduction->index);
			Page			  page = GenericXLogRegisterBuffer(xlog, buffer, 0);

			for (int i = 0; i < entries.count; i++)
				flat_page_set_code(page, layout, i, (uint8 *) (words + (Size) i * layout->words),
								   numbers[i]);
			FlatPageGetHead(page)->model = layout->model;
			GenericXLogFinish(xlog);
			old = false;
		}
		entries = now;
	}
	UnlockReleaseBuffer(buffer);
	pfree(words);
	pfree(numbers);
}

/* All entries get codes by the model; then it can be used for searches. */
static void
convert_pages(Introduction *introduction)
{
	FlatMeta flat = introduction->flat;

	introduction->codes = flat_codes_layout(&flat);
	/* no page without codes is started any more, so that we see them all */
	for (BlockNumber block = FLAT_FIRST_PAGE; block < flat_read_meta(introduction->index).end;
		 block++)
		convert_page(introduction, block);
	flat.learning = 0;
	update_meta(introduction, &flat, &introduction->meta);
}

/* An id that was noted by a backend that did not come to name its model: its pages are free. */
static void
forget_learning(Introduction *introduction)
{
	FlatMeta flat = introduction->flat;

	flat.learning = 0;
	update_meta(introduction, &flat, &introduction->meta);
}

bool
sketch_may_introduce(Relation index)
{
	FlatMeta		 flat;
	const SketchMeta meta = sketch_read_meta(index, &flat);
	const FlatLayout codes = flat_codes_layout(&flat);
	SketchShape		 shape;

	if (flat.learning != 0)
		return true;
	if (flat.model != 0 || flat.dims == 0)
		return false;
	shape = sketch_index_shape((int) meta.bits, (int) flat.dims);
	return (int64) (flat.end - FLAT_FIRST_PAGE) * codes.capacity >= sketch_least_rows(&shape);
}

static void
introduce(Relation heap, Relation index)
{
	Introduction introduction = {.index = index};

	introduction.meta = sketch_read_meta(index, &introduction.flat);
	introduction.codes = flat_codes_layout(&introduction.flat);
	introduction.nulls = flat_layout(FLAT_NULLS, 0);
	introduction.row =
		AllocSetContextCreate(CurrentMemoryContext, "sketch row", ALLOCSET_DEFAULT_SIZES);
	InitDirtySnapshot(introduction.snapshot);
	sketch_reader_init(&introduction.reader, index);
	sketch_rows_begin(&introduction.rows, heap, index, NULL, &introduction.snapshot);
	if (introduction.flat.learning != 0 && introduction.flat.learning != introduction.flat.model)
		forget_learning(&introduction);
	if (introduction.flat.model == 0 && introduction.flat.dims != 0)
		make_model(&introduction);
	if (introduction.flat.model != 0 && introduction.flat.learning != 0)
		convert_pages(&introduction);
	sketch_rows_end(&introduction.rows);
}

void
sketch_introduce(Relation heap, Relation index)
{
	MemoryContext context;
	MemoryContext caller;
	LOCKTAG		  tag;

	SET_LOCKTAG_TUPLE(tag, index->rd_lockInfo.lockRelId.dbId, index->rd_lockInfo.lockRelId.relId,
					  FLAT_FIRST_PAGE, FirstOffsetNumber);
	switch (LockAcquire(&tag, ExclusiveLock, false, true))
	{
		case LOCKACQUIRE_OK:
			break;
		case LOCKACQUIRE_ALREADY_HELD:
			/* an expression of the index has brought us here while we do it */
			LockRelease(&tag, ExclusiveLock, false);
			return;
		default:
			return;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "sketch model", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	introduce(heap, index);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	LockRelease(&tag, ExclusiveLock, false);
}

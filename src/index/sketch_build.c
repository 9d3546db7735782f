/*
 * sketch_build.c
 *		Building a sketch index.
 *
 * A sample of the table's pages teaches the model.  Then all rows are sketched, block by block, while
 * the same blocks calibrate the model.  A table with too few rows gets entries without codes.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "flat_build.h"
#include "sketch_learn.h"
#include "sketch_model.h"

/* rows that are sketched together, in so much memory at most */
#define MOST_ROWS_IN_BLOCK 256
#define MOST_BYTES_IN_BLOCK (4 << 20)

typedef struct SketchBuild
{
	Relation		   heap;
	IndexInfo		  *info;
	MemoryContext	   context; /* of the build */
	MemoryContext	   row;		/* of a row */
	SketchReader	   reader;
	int				   bits;	  /* the option */
	SketchLearner	  *learner;	  /* NULL until there is a row */
	int64			   wanted;	  /* rows for learning */
	SketchModel		  *model;	  /* NULL if there are too few rows */
	float			   explained; /* by the model */
	SketchEncoder	  *encoder;
	SketchCalibration *calibration;
	FlatBuild		   pages;
	BlockNumber		   model_end; /* of the pages that are kept for the model */
	int64			   rows;	  /* of the table that have been indexed */

	/* the rows that wait to be sketched together */
	int				 block;
	int				 waiting;
	float			*vectors;
	ItemPointerData *tids;
	uint64			*words;
	uint32			*numbers;
} SketchBuild;

/* The first vector tells the dimensions, and so what entries and blocks of rows look like. */
static void
set_dims(SketchBuild *build, int dims)
{
	const SketchShape shape = sketch_index_shape(build->bits, dims);
	MemoryContext	  caller = MemoryContextSwitchTo(build->context);

	build->pages.layouts[BUILD_CODES] = flat_sketch_layout(64 * sketch_code_words(&shape), dims, 0);
	build->block =
		Max(Min(MOST_ROWS_IN_BLOCK, MOST_BYTES_IN_BLOCK / (int) sizeof(float) / dims), 1);
	build->vectors = palloc(sizeof(float) * dims * build->block);
	build->tids = palloc(sizeof(ItemPointerData) * build->block);
	build->words = palloc0(sizeof(uint64) * sketch_code_words(&shape) * build->block);
	build->numbers = palloc0(sizeof(uint32) * build->block);
	build->wanted = sketch_least_rows(&shape) / SKETCH_LEAST_ROWS * SKETCH_SAMPLE_ROWS;
	build->learner = sketch_learner_create(shape, build->reader.metric, build->wanted);
	MemoryContextSwitchTo(caller);
}

/* A row of the sample. */
static void
learn_row(Relation index, ItemPointer tid pg_attribute_unused(), Datum *values, bool *isnull,
		  bool alive, void *arg)
{
	SketchBuild	 *build = arg;
	MemoryContext caller;
	Vector		  vector;

	if (isnull[0] || !alive)
		return;
	caller = MemoryContextSwitchTo(build->row);
	vector = sketch_read_vector(&build->reader, values[0]);
	if (build->learner == NULL)
		set_dims(build, vector.dims);
	sketch_check_dims(index, vector, build->pages.layouts[BUILD_CODES].dims, false);
	MemoryContextSwitchTo(build->context);
	sketch_learner_add(build->learner, vector.values);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(build->row);
}

/* The largest number that divides neither and is at most this. */
static BlockNumber
coprime_below(BlockNumber number, BlockNumber other)
{
	for (; number > 1; number--)
	{
		BlockNumber a = number;
		BlockNumber b = other;

		while (b != 0)
		{
			const BlockNumber rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			break;
	}
	return Max(number, 1);
}

/*
 * Learns from pages all over the table, until there are rows enough.  A step of the golden section that
 * has no divisor in common with the number of pages visits each of them once, always in the largest gap.
 */
static void
learn_sample(SketchBuild *build, Relation index)
{
	const BlockNumber blocks = RelationGetNumberOfBlocks(build->heap);
	const BlockNumber step = coprime_below((BlockNumber) (0.618034 * blocks), blocks);
	BlockNumber		  block = 0;

	for (BlockNumber i = 0; i < blocks; i++)
	{
		CHECK_FOR_INTERRUPTS();
		table_index_build_range_scan(build->heap, index, build->info, false, false, false, block, 1,
									 learn_row, build, NULL);
		if (build->learner != NULL && sketch_learner_rows(build->learner) >= build->wanted)
			break;
		block = (BlockNumber) (((uint64) block + step) % blocks);
	}
}

/* Makes the model, if there were rows enough. */
static void
make_model(SketchBuild *build)
{
	FlatLayout		 *layout = &build->pages.layouts[BUILD_CODES];
	const SketchShape shape = sketch_index_shape(build->bits, layout->dims);

	if (sketch_learner_rows(build->learner) < sketch_least_rows(&shape))
		return;
	build->model = sketch_learner_finish(build->learner, &build->explained);
	build->encoder = sketch_encoder_create(build->model, build->block);
	build->calibration = sketch_learner_calibration(build->learner, build->model, build->block);
	layout->model = sketch_new_id();
	/* the model comes first, though it is complete last */
	build->pages.end += sketch_model_pages(&shape);
	build->model_end = build->pages.end;
}

/* Sketches the rows that wait, and makes entries of them. */
static void
finish_block(SketchBuild *build)
{
	const int words = build->pages.layouts[BUILD_CODES].words;

	if (build->model != NULL && build->waiting > 0)
	{
		sketch_encode(build->encoder, build->vectors, build->waiting, build->words, build->numbers);
		sketch_calibrate(build->calibration, build->vectors, build->waiting, build->words,
						 build->numbers);
	}
	for (int i = 0; i < build->waiting; i++)
	{
		const FlatEntry entry = {.bits = (const uint8 *) (build->words + (Size) i * words),
								 .numbers = build->numbers[i],
								 .tid = build->tids[i]};

		flat_build_add(&build->pages, entry);
	}
	build->waiting = 0;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, build->rows);
}

/* Reads the vector of a row; false if such a row cannot be indexed, and need not be. */
static bool
read_row(SketchBuild *build, Relation index, Datum value, bool alive, Vector *vector)
{
	const int dims = build->pages.layouts[BUILD_CODES].dims;

	/*
	 * A deleted row that an older snapshot may still see, with a vector unlike the others': it is no
	 * reason to fail, but such snapshots must do without this index.
	 */
	if (!alive && (!sketch_try_read_vector(&build->reader, value, vector) ||
				   (dims != 0 && vector->dims != dims)))
	{
		build->info->ii_BrokenHotChain = true;
		return false;
	}
	if (alive)
		*vector = sketch_read_vector(&build->reader, value);
	/* in a concurrent build, there may be rows where the sample found none */
	if (build->learner == NULL)
		set_dims(build, vector->dims);
	sketch_check_dims(index, *vector, dims, false);
	return true;
}

static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	SketchBuild	 *build = arg;
	MemoryContext caller = MemoryContextSwitchTo(build->row);
	Vector		  vector;

	CHECK_FOR_INTERRUPTS();
	if (isnull[0])
	{
		const FlatEntry entry = {.bits = NULL, .tid = *tid};

		MemoryContextSwitchTo(build->context);
		flat_build_add(&build->pages, entry);
		build->rows++;
	}
	else if (read_row(build, index, values[0], alive, &vector))
	{
		MemoryContextSwitchTo(build->context);
		if (build->model != NULL)
			memcpy(build->vectors + (Size) build->waiting * vector.dims, vector.values,
				   sizeof(float) * vector.dims);
		build->tids[build->waiting++] = *tid;
		build->rows++;
		if (build->waiting == build->block)
			finish_block(build);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(build->row);
}

/* The model's pages, from the last of those that were kept for it. */
static Page
new_model_page(void *state, BlockNumber *block)
{
	SketchBuild *build = state;

	*block = --build->model_end;
	return page_writer_new(build->pages.writer);
}

static void
write_model_page(void *state, BlockNumber block, Page page)
{
	SketchBuild *build = state;

	page_writer_write(build->pages.writer, block, page);
}

static void
finish_build(SketchBuild *build, Relation index)
{
	const ModelPageWriter writer = {build, new_model_page, write_model_page};
	const FlatLayout	 *layout = &build->pages.layouts[BUILD_CODES];
	SketchMeta			  model = {0};
	SketchMeta			 *meta;
	Page				  page;

	if (build->model != NULL)
	{
		sketch_calibration_finish(build->calibration, &build->model->parameters);
		model.block = sketch_write_model(build->model, layout->model, &writer, &model.crc);
		model.learnt = sketch_learner_rows(build->learner);
		model.calibrated = build->pages.counts[BUILD_CODES];
		model.explained = build->explained;
	}
	page = flat_build_meta(&build->pages);
	sketch_meta_add(index, page);
	meta = SketchPageGetMeta(page);
	model.bits = meta->bits;
	model.metric = meta->metric;
	*meta = model;
	flat_build_finish(&build->pages, page);
}

IndexBuildResult *
sketch_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	MemoryContext	  context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext	 caller = MemoryContextSwitchTo(context);
	SketchBuild		*build = palloc0(sizeof(SketchBuild));
	const FlatLayout unknown = flat_sketch_layout(0, 0, 0);

	build->heap = heap;
	build->info = info;
	build->context = context;
	build->row = AllocSetContextCreate(context, "sketch build, a row", ALLOCSET_DEFAULT_SIZES);
	build->bits = sketch_bits_option(index);
	sketch_reader_init(&build->reader, index);
	flat_build_start(&build->pages, index, &unknown);

	MemoryContextSwitchTo(caller);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SKETCH_PHASE_LEARN);
	learn_sample(build, index);
	MemoryContextSwitchTo(context);
	if (build->learner != NULL)
		make_model(build);

	MemoryContextSwitchTo(caller);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SKETCH_PHASE_SCAN);
	result->heap_tuples =
		table_index_build_scan(heap, index, info, true, true, add_row, build, NULL);
	result->index_tuples = (double) build->rows;
	MemoryContextSwitchTo(context);
	finish_block(build);
	finish_build(build, index);
	MemoryContextSwitchTo(caller);

	MemoryContextDelete(context);
	return result;
}

void
sketch_build_empty(Relation index)
{
	flat_build_empty(index, sketch_meta_init);
}

char *
sketch_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case SKETCH_PHASE_LEARN:
			return "learning";
		case SKETCH_PHASE_SCAN:
			return "scanning table";
		default:
			return NULL;
	}
}

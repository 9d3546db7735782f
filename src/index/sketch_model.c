/*
 * sketch_model.c
 *		The model of a sketch index: its pages, and how a backend keeps it ready.
 */
#include "postgres.h"

#include <math.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "../model/sketcher.h"
#include "sketch.h"
#include "sketch_model.h"

/* models that a backend keeps ready, in bytes; the one that was used last stays in any case */
#define MOST_READY_BYTES ((Size) 128 << 20)

/* what a page of a model has before its bytes */
typedef struct ModelPage
{
	uint32 next;
	uint32 zero;
	char   bytes[FLEXIBLE_ARRAY_MEMBER];
} ModelPage;

#define ModelPageOf(page) ((ModelPage *) ((char *) (page) + FLAT_ENTRIES))
#define BYTES_ON_PAGE (BLCKSZ - FLAT_ENTRIES - (int) offsetof(ModelPage, bytes))

StaticAssertDecl(sizeof(SketchParameters) <= BYTES_ON_PAGE, "the first page tells the size");

/* A ready model, in the list of those that the backend keeps: most recently used first. */
typedef struct Kept
{
	dlist_node	node;
	Oid			index;
	uint32		id;
	SketchReady ready;
} Kept;

static dlist_head kept_models = DLIST_STATIC_INIT(kept_models);

/* Adds our part to a metapage, without a model. */
void
sketch_meta_add(Relation index, Page page)
{
	SketchMeta *meta = SketchPageGetMeta(page);

	FlatPageGetMeta(page)->numbers = sizeof(uint32);
	memset(meta, 0, sizeof(*meta));
	meta->bits = sketch_bits_option(index);
	meta->metric = sketch_metric(index);
	((PageHeader) page)->pd_lower = (char *) (meta + 1) - (char *) page;
}

/* The metapage of an index without any other page. */
void
sketch_meta_init(Relation index, Page page)
{
	flat_meta_init(page, 0);
	sketch_meta_add(index, page);
}

/* What the metapage, which the caller has locked, says of models, after checking it. */
SketchMeta *
sketch_checked_meta(Relation index, Page page)
{
	SketchMeta *meta = SketchPageGetMeta(page);

	if (flat_checked_meta(index, page)->numbers != sizeof(uint32))
		flat_corrupt(index, FLAT_METAPAGE, "it is not the metapage of a sketch index");
	if (meta->bits > SKETCH_MAX_BITS || meta->metric > SKETCH_IP)
		flat_corrupt(index, FLAT_METAPAGE, "the metapage has impossible options");
	return meta;
}

/* Both parts of the metapage. */
SketchMeta
sketch_read_meta(Relation index, FlatMeta *flat)
{
	Buffer			 buffer = flat_read(index, FLAT_METAPAGE, BUFFER_LOCK_SHARE, NULL);
	const SketchMeta meta = *sketch_checked_meta(index, BufferGetPage(buffer));

	*flat = *FlatPageGetMeta(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return meta;
}

/* What a model is stored as; memory is the current context's. */
static char *
model_bytes(const SketchModel *model, Size *size)
{
	const SketchShape *shape = &model->parameters.shape;
	const Size		   mean = sizeof(float) * shape->dims;
	const Size		   projection = mean * shape->projections;
	char			  *bytes;

	*size = sizeof(SketchParameters) + mean + projection;
	bytes = MemoryContextAllocHuge(CurrentMemoryContext, *size);
	memcpy(bytes, &model->parameters, sizeof(SketchParameters));
	memcpy(bytes + sizeof(SketchParameters), model->mean, mean);
	memcpy(bytes + sizeof(SketchParameters) + mean, model->projection, projection);
	return bytes;
}

static uint32
crc_of(const char *bytes, Size size)
{
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, bytes, size);
	FIN_CRC32C(crc);
	return crc;
}

/* The pages that it takes to store a model of this shape. */
BlockNumber
sketch_model_pages(const SketchShape *shape)
{
	const Size floats = (Size) shape->dims * (shape->projections + 1);
	const Size size = sizeof(SketchParameters) + sizeof(float) * floats;

	return (BlockNumber) ((size - 1) / BYTES_ON_PAGE + 1);
}

static void
fill_page(Page page, uint32 id, const char *bytes, Size count, BlockNumber next)
{
	FlatLayout layout = {.kind = FLAT_MODEL, .model = id};

	flat_page_init(page, &layout);
	FlatPageGetHead(page)->count = (uint16) count;
	ModelPageOf(page)->next = next;
	memcpy(ModelPageOf(page)->bytes, bytes, count);
	((PageHeader) page)->pd_lower = (char *) ModelPageOf(page)->bytes + count - (char *) page;
}

/*
 * Writes all pages of a model, from the last on, so that it is known where the next one is.  Each comes
 * from new_page, with its block, and goes to write_page.  Returns the first block, and the CRC.
 */
BlockNumber
sketch_write_model(const SketchModel *model, uint32 id, const ModelPageWriter *writer, uint32 *crc)
{
	Size		size;
	char	   *bytes = model_bytes(model, &size);
	Size		left = size;
	BlockNumber next = 0;

	*crc = crc_of(bytes, size);
	while (left > 0)
	{
		const Size	count = left % BYTES_ON_PAGE == 0 ? BYTES_ON_PAGE : left % BYTES_ON_PAGE;
		BlockNumber block;
		Page		page;

		CHECK_FOR_INTERRUPTS();
		page = writer->new_page(writer->state, &block);
		left -= count;
		fill_page(page, id, bytes + left, count, next);
		writer->write_page(writer->state, block, page);
		next = block;
	}
	pfree(bytes);
	return next;
}

/* An id that no model of this index has or had: 0 means none. */
uint32
sketch_new_id(void)
{
	uint32 id = 0;

	while (id == 0)
	{
		if (!pg_strong_random(&id, sizeof(id)))
			ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR),
					errmsg("could not generate a random number"));
	}
	return id;
}

/* Reading a model: what of its bytes has been read. */
typedef struct ModelReading
{
	Relation index;
	uint32	 id;
	char	*bytes;
	Size	 size; /* of all; 0 until the first page has told */
	Size	 read;
} ModelReading;

/*
 * Something is not as it should be.  If the index has another model by now, the pages may have been
 * put to other use, and false is the answer; else it is an error.
 */
static bool
wrong_page(const ModelReading *reading, BlockNumber block, const char *what)
{
	if (flat_read_meta(reading->index).model == reading->id)
		flat_corrupt(reading->index, block, what);
	return false;
}

/* The first bytes tell what comes. */
static bool
read_size(ModelReading *reading, BlockNumber block, const ModelPage *page, Size count)
{
	SketchParameters parameters;

	if (count < sizeof(parameters))
		return wrong_page(reading, block, "its model has no parameters");
	memcpy(&parameters, page->bytes, sizeof(parameters));
	if (!sketch_parameters_valid(&parameters))
		return wrong_page(reading, block, "its model has impossible parameters");
	reading->size = sizeof(parameters) + sizeof(float) * (Size) parameters.shape.dims *
											 ((Size) parameters.shape.projections + 1);
	reading->bytes = MemoryContextAllocHuge(CurrentMemoryContext, reading->size);
	return true;
}

static bool
read_page(ModelReading *reading, BlockNumber block, BlockNumber *next)
{
	Buffer			 buffer = flat_read(reading->index, block, BUFFER_LOCK_SHARE, NULL);
	PGAlignedBlock	 copy;
	const FlatHead	*head = FlatPageGetHead(copy.data);
	const ModelPage *page = ModelPageOf(copy.data);

	memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	if (PageIsNew(copy.data) || head->page_id != FLAT_PAGE_ID || head->kind != FLAT_MODEL ||
		head->model != reading->id)
		return wrong_page(reading, block, "it is not a page of the model");
	if (head->count == 0 || head->count > BYTES_ON_PAGE)
		return wrong_page(reading, block, "it has an impossible part of the model");
	if (reading->size == 0 && !read_size(reading, block, page, head->count))
		return false;
	if (head->count > reading->size - reading->read)
		return wrong_page(reading, block, "its model is longer than it says");
	memcpy(reading->bytes + reading->read, page->bytes, head->count);
	reading->read += head->count;
	*next = page->next;
	return true;
}

/* Reads all bytes of a model; false if the index has another one by now. */
static bool
read_model(ModelReading *reading, const SketchMeta *meta)
{
	BlockNumber block = meta->block;

	while (reading->size == 0 || reading->read < reading->size)
	{
		CHECK_FOR_INTERRUPTS();
		if (block == 0 || block >= RelationGetNumberOfBlocks(reading->index))
			return wrong_page(reading, block, "the model ends too early");
		if (!read_page(reading, block, &block))
			return false;
	}
	if (crc_of(reading->bytes, reading->size) != meta->crc)
		return wrong_page(reading, meta->block, "the model has a wrong checksum");
	return true;
}

/* Makes a model of its bytes, which must outlive it. */
static void
view_model(ModelReading *reading, const FlatMeta *flat, const SketchMeta *meta, SketchModel *model)
{
	const float		  *floats = (const float *) (reading->bytes + sizeof(SketchParameters));
	const SketchShape *shape = &model->parameters.shape;
	const Size		   count = (reading->size - sizeof(SketchParameters)) / sizeof(float);

	memcpy(&model->parameters, reading->bytes, sizeof(SketchParameters));
	if (shape->dims != (int) flat->dims || 64 * sketch_code_words(shape) != (int) flat->nbits ||
		model->parameters.metric != (int) meta->metric)
		flat_corrupt(reading->index, meta->block, "the model does not fit the index");
	for (Size i = 0; i < count; i++)
	{
		if (!isfinite(floats[i]))
			flat_corrupt(reading->index, meta->block, "the model has numbers that are not finite");
	}
	model->mean = floats;
	model->projection = floats + shape->dims;
}

static void
forget_old_models(void)
{
	dlist_mutable_iter iter;
	Size			   bytes = 0;

	dlist_foreach_modify(iter, &kept_models)
	{
		Kept *kept = dlist_container(Kept, node, iter.cur);

		bytes += MemoryContextMemAllocated(kept->ready.context, true);
		if (bytes > MOST_READY_BYTES && iter.cur != dlist_head_node(&kept_models))
		{
			dlist_delete(&kept->node);
			MemoryContextDelete(kept->ready.context);
		}
	}
}

/* Reads a model and makes it ready; NULL if the index has another one by now. */
static Kept *
make_ready(Relation index, uint32 id)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "unifdiag sketch model",
												  ALLOCSET_START_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Kept		 *kept = palloc0(sizeof(Kept));
	ModelReading  reading = {.index = index, .id = id};
	FlatMeta	  flat;
	SketchMeta	  meta = sketch_read_meta(index, &flat);

	if (flat.model != id || !read_model(&reading, &meta))
	{
		MemoryContextSwitchTo(caller);
		MemoryContextDelete(context);
		return NULL;
	}
	view_model(&reading, &flat, &meta, &kept->ready.model);
	kept->index = RelationGetRelid(index);
	kept->id = id;
	kept->ready.calibrated = meta.calibrated;
	kept->ready.context = context;
	MemoryContextSwitchTo(caller);
	return kept;
}

/*
 * A model of the index, ready for use; NULL if the index has another one by now.  It belongs to the
 * backend, and may be gone after the next call.
 */
SketchReady *
sketch_ready(Relation index, uint32 id)
{
	dlist_iter iter;
	Kept	  *kept;

	dlist_foreach(iter, &kept_models)
	{
		kept = dlist_container(Kept, node, iter.cur);
		if (kept->index == RelationGetRelid(index) && kept->id == id)
		{
			dlist_move_head(&kept_models, &kept->node);
			return &kept->ready;
		}
	}
	kept = make_ready(index, id);
	if (kept == NULL)
		return NULL;
	/* whole now: no error can leave anything half made behind */
	MemoryContextSetParent(kept->ready.context, CacheMemoryContext);
	dlist_push_head(&kept_models, &kept->node);
	forget_old_models();
	return &kept->ready;
}

/* A ready model's encoder of single rows. */
SketchEncoder *
sketch_ready_encoder(SketchReady *ready)
{
	/* whoever only searches does without, and so without the library that encoders need */
	if (ready->encoder == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(ready->context);

		sketcher_require_linalg();
		ready->words = palloc(sizeof(uint64) * sketch_code_words(&ready->model.parameters.shape));
		ready->encoder = sketch_encoder_create(&ready->model, 1);
		MemoryContextSwitchTo(caller);
	}
	return ready->encoder;
}

/* Sketches a vector by a ready model; the code stays where it is until the next one is made. */
const uint64 *
sketch_encode_one(SketchReady *ready, const float *vector, uint32 *number)
{
	SketchEncoder *encoder = sketch_ready_encoder(ready);

	sketch_encode(encoder, vector, 1, ready->words, number);
	return ready->words;
}

/* Raises an error if the model of that id, which the index has, is not as it should be. */
void
sketch_check_model(Relation index, uint32 id)
{
	Kept *kept = id == 0 ? NULL : make_ready(index, id);

	if (kept != NULL)
		MemoryContextDelete(kept->ready.context);
}

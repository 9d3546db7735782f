/*
 * code_store.c
 *		The codes of an index and their rows, copied once, by blocks.
 */
#include "postgres.h"

#include "../compat.h"
#include "code_store.h"
#include "visit.h"

/* entries that a block has room for at first */
#define FIRST_ROOM 1024

/* The bytes of an entry, in memory and in the file. */
static Size
entry_bytes(const CodeBlock *block)
{
	return sizeof(uint64) * (block->words + 1);
}

void
code_block_init(CodeBlock *block, int words, uint32 room)
{
	block->words = words;
	block->first = block->count = 0;
	block->room = room;
	block->codes = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * words * room);
	block->rows = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * room);
}

static void
enlarge_block(CodeBlock *block, uint32 room)
{
	block->room = room;
	block->codes = repalloc_huge(block->codes, sizeof(uint64) * block->words * room);
	block->rows = repalloc_huge(block->rows, sizeof(uint64) * room);
}

static void
seek_block(CodeStore *store, int number)
{
	const int64 position = (int64) number * store->capacity * (int64) entry_bytes(&store->block);

	if (BufFileSeek(store->file, 0, position, SEEK_SET) != 0)
		ereport(ERROR, errcode_for_file_access(), errmsg("could not seek in a temporary file"));
}

static void
read_exactly(BufFile *file, void *to, Size size)
{
	if (BufFileRead(file, to, size) != size)
		ereport(ERROR, errcode_for_file_access(), errmsg("could not read from a temporary file"));
}

void
code_store_load(CodeStore *store, int number, CodeBlock *block)
{
	if (store->file == NULL)
	{
		Assert(block == &store->block);
		return;
	}
	block->first = (uint32) number * store->capacity;
	block->count = store->counts[number];
	seek_block(store, number);
	read_exactly(store->file, block->codes, sizeof(uint64) * block->words * block->count);
	read_exactly(store->file, block->rows, sizeof(uint64) * block->count);
}

void
code_store_save(CodeStore *store, int number, CodeBlock *block)
{
	store->counts[number] = block->count;
	if (store->file == NULL)
		return;
	seek_block(store, number);
	BufFileWrite(store->file, block->codes, sizeof(uint64) * block->words * block->count);
	BufFileWrite(store->file, block->rows, sizeof(uint64) * block->count);
}

/* Writes a block of what has been read to the file; the rest begins the next one. */
static void
append_block(CodeStore *store)
{
	CodeBlock	*block = &store->block;
	const uint32 count = Min(block->count, store->capacity);
	const uint32 rest = block->count - count;

	if ((uint64) (store->nblocks + 2) * store->capacity > PG_UINT32_MAX)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				errmsg("index \"%s\" has too many entries",
					   RelationGetRelationName(store->source->index)));
	if (store->file == NULL)
		store->file = BufFileCreateTemp(false);
	store->counts = repalloc(store->counts, sizeof(uint32) * (store->nblocks + 1));
	block->count = count;
	code_store_save(store, store->nblocks++, block);
	memmove(block->codes, code_block_code(block, count), sizeof(uint64) * block->words * rest);
	memmove(block->rows, block->rows + count, sizeof(uint64) * rest);
	block->count = rest;
}

/* The start of a pass over the index, or of another attempt. */
static void
start_reading(void *state)
{
	CodeStore *store = state;

	store->nblocks = 0;
	store->block.count = 0;
}

/* Between pages, when none is locked: makes room for all entries of the next one. */
static void
make_room(void *state)
{
	CodeStore *store = state;
	CodeBlock *block = &store->block;

	while (block->count > store->capacity)
		append_block(store);
	if (block->room - block->count < (uint32) store->codes.capacity)
		enlarge_block(block, Min(2 * block->room, store->capacity) + store->codes.capacity);
}

static void
read_page(void *state, Page page, BlockNumber number,
		  HammingUpcoming upcoming pg_attribute_unused())
{
	CodeStore		  *store = state;
	CodeBlock		  *block = &store->block;
	const FlatLayout  *layout = &store->codes;
	const FlatContents contents =
		flat_page_contents(store->source->index, page, number, layout, &store->nulls);

	if (contents.layout != layout)
		return;
	Assert((uint32) contents.count <= block->room - block->count);
	for (int i = 0; i < contents.count; i++)
	{
		uint64 *code = block->codes + (Size) block->count * block->words;

		for (int column = 0; column < block->words; column++)
			code[column] = load_word(FlatPageGetWords(page, layout, column) + 8 * i, 8);
		block->rows[block->count++] = ROW_OF_TID(&FlatPageGetTids(page, layout)[i]);
	}
}

void
code_store_read(CodeStore *store, HammingRows *source, int nbits, uint32 capacity)
{
	store->source = source;
	store->codes = flat_layout(FLAT_CODES, nbits);
	store->nulls = flat_layout(FLAT_NULLS, 0);
	store->capacity = capacity;
	store->file = NULL;
	store->counts = palloc(sizeof(uint32));
	code_block_init(&store->block, store->codes.words,
					Min(FIRST_ROOM, capacity) + store->codes.capacity);
	flat_visit_pages_with_pauses(source->index, start_reading, read_page, make_room, store);
	if (store->file == NULL || store->nblocks == 0)
	{
		/* the file, if there is one, is left of an attempt that began again */
		code_store_end(store);
		store->counts[0] = store->block.count;
		store->nblocks = store->block.count > 0 ? 1 : 0;
	}
	else if (store->block.count > 0)
		append_block(store);
}

void
code_store_end(CodeStore *store)
{
	if (store->file != NULL)
		BufFileClose(store->file);
	store->file = NULL;
}

bool
code_block_visible(CodeBlock *block, uint32 entry, HammingRows *rows)
{
	uint64 row = block->rows[entry];

	if ((row & ROW_KNOWN) == 0)
	{
		ItemPointerData tid;

		tid = code_block_tid(block, entry);
		row = ROW_KNOWN;
		if (hamming_rows_fetch(rows, &tid))
			row |= ROW_VISIBLE | ROW_OF_TID(&tid);
		block->rows[entry] = row;
	}
	return (row & ROW_VISIBLE) != 0;
}

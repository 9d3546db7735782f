/*
 * code_store.h
 *		The codes of an index and their rows, copied once: in memory or, if that does not suffice,
 *		in a temporary file, by blocks.
 */
#ifndef UNIFDIAG_CODE_STORE_H
#define UNIFDIAG_CODE_STORE_H

#include "storage/buffile.h"

#include "hamming_rows.h"

/* A block of entries in memory; the numbers of entries go on from block to block. */
typedef struct CodeBlock
{
	int		words; /* of a code */
	uint32	first; /* number of the first entry */
	uint32	count;
	uint32	room;
	uint64 *codes; /* one after the other */
	uint64 *rows;  /* TIDs, and what is known of the rows: see below */
} CodeBlock;

/* A row is block and offset, and above these whether its visibility is known, and what it is. */
#define ROW_KNOWN (UINT64CONST(1) << 63)
#define ROW_VISIBLE (UINT64CONST(1) << 62)
#define ROW_OF_TID(tid) \
	((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 | ItemPointerGetOffsetNumberNoCheck(tid))

typedef struct CodeStore
{
	HammingRows *source;
	FlatLayout	 codes;
	FlatLayout	 nulls;
	uint32		 capacity; /* entries of a block */
	CodeBlock	 block;	   /* the only one, or room for one */
	BufFile		*file;	   /* all blocks, if there are more */
	int			 nblocks;
	uint32		*counts; /* entries of each */
} CodeStore;

/* reads all codes, by blocks of so many entries; memory is the current context's */
extern void code_store_read(CodeStore *store, HammingRows *source, int nbits, uint32 capacity);
extern void code_store_end(CodeStore *store);

/* makes a block the contents of block, which has room for one, or is the store's own */
extern void code_store_load(CodeStore *store, int number, CodeBlock *block);
/* stores what has become of a block that was loaded, and has no more entries than before */
extern void code_store_save(CodeStore *store, int number, CodeBlock *block);
extern void code_block_init(CodeBlock *block, int words, uint32 room);

/* whether the row of an entry of a block is visible; from then on the row is its visible version */
extern bool code_block_visible(CodeBlock *block, uint32 entry, HammingRows *rows);

static inline const uint64 *
code_block_code(const CodeBlock *block, uint32 entry)
{
	return block->codes + (Size) entry * block->words;
}

/* the row's TID in the index or, if it is known to be visible, that of its visible version */
static inline ItemPointerData
code_block_tid(const CodeBlock *block, uint32 entry)
{
	const uint64	row = block->rows[entry];
	ItemPointerData tid;

	ItemPointerSet(&tid, (BlockNumber) (row >> 16), (OffsetNumber) (row & 0xFFFF));
	return tid;
}

#endif /* UNIFDIAG_CODE_STORE_H */

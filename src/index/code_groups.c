/*
 * code_groups.c
 *		The codes of a block, grouped by the value of a part: a counting sort.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "../compat.h"
#include "code_groups.h"

/* a power of two */
#define ENTRIES_UNTIL_INTERRUPT 65536

Size
code_groups_entry_bytes(int words)
{
	/* there are at most twice as many groups as entries */
	return sizeof(uint64) * (words + 1) + sizeof(uint64) * words + 3 * sizeof(uint32);
}

void
code_groups_init(CodeGroups *groups, int words, uint32 room)
{
	const Size ngroups = (Size) 1 << join_widest_part(room);

	groups->starts = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * (ngroups + 1));
	groups->order = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * room);
	groups->columns = palloc(sizeof(uint8 *) * words);
	for (int column = 0; column < words; column++)
		groups->columns[column] =
			MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * room);
}

/* Sets the starts to where the groups end; putting entries there from the last one moves them. */
static void
count_groups(CodeGroups *groups, const CodeBlock *block, const JoinPart *part)
{
	const uint32 ngroups = 1U << part->bits;
	uint32		 total = 0;

	memset(groups->starts, 0, sizeof(uint32) * (ngroups + 1));
	for (uint32 i = 0; i < block->count; i++)
	{
		if (i % ENTRIES_UNTIL_INTERRUPT == 0)
			CHECK_FOR_INTERRUPTS();
		groups->starts[join_part_key(part, code_block_code(block, i))]++;
	}
	for (uint32 group = 0; group <= ngroups; group++)
	{
		total += groups->starts[group];
		groups->starts[group] = total;
	}
}

void
code_groups_make(CodeGroups *groups, const CodeBlock *block, const JoinPart *part)
{
	count_groups(groups, block, part);
	for (uint32 i = block->count; i-- > 0;)
	{
		const uint64 *code = code_block_code(block, i);
		const uint32  place = --groups->starts[join_part_key(part, code)];

		if (i % ENTRIES_UNTIL_INTERRUPT == 0)
			CHECK_FOR_INTERRUPTS();
		groups->order[place] = i;
		for (int column = 0; column < block->words; column++)
			memcpy(groups->columns[column] + (Size) place * 8, &code[column], 8);
	}
}

/*
 * code_groups.h
 *		The codes of a block, grouped by the value of a part, and by columns as kernels read them.
 */
#ifndef UNIFDIAG_CODE_GROUPS_H
#define UNIFDIAG_CODE_GROUPS_H

#include "join_plan.h"

typedef struct CodeGroups
{
	uint32 *starts;	 /* of each group, and the end of the last */
	uint32 *order;	 /* the entries, by groups */
	uint8 **columns; /* of their codes */
} CodeGroups;

/* the bytes that entries take in a block and its groups, each */
extern Size code_groups_entry_bytes(int words);

/* makes room for the groups of blocks of so many entries; memory is the current context's */
extern void code_groups_init(CodeGroups *groups, int words, uint32 room);
extern void code_groups_make(CodeGroups *groups, const CodeBlock *block, const JoinPart *part);

#endif /* UNIFDIAG_CODE_GROUPS_H */

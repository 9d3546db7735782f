/*
 * join_plan.h
 *		By which parts of the codes near pairs are found.
 *
 * If codes differ in at most r bits, and disjoint parts i of the codes have radii r_i with the sum
 * of all r_i + 1 at least r + 1, then the codes differ in at most r_i bits of at least one part i:
 * else they would differ in more than r altogether.  So near pairs are among those that are near in
 * some part, whose value is a small number.  A single part of no bits means comparing all with all.
 */
#ifndef UNIFDIAG_JOIN_PLAN_H
#define UNIFDIAG_JOIN_PLAN_H

#include "code_store.h"

/* the most bits of a part, and its largest radius */
#define PART_MOST_BITS 24
#define PART_MOST_RADIUS 3

typedef struct JoinPart
{
	int first; /* bit of the code's words, from the lowest of the first word on */
	int bits;
	int radius;
} JoinPart;

typedef struct JoinPlan
{
	int		  nparts;
	JoinPart *parts;
} JoinPlan;

/* the widest part for blocks of so many entries: about a group for each */
extern int join_widest_part(uint32 entries);

/* the plan that is likely the fastest, in the current memory context; both blocks may be the same */
extern JoinPlan join_plan(const CodeBlock *a, const CodeBlock *b, int nbits, uint32 radius);

/* the value of a part */
static inline uint32
join_part_key(const JoinPart *part, const uint64 *code)
{
	const int shift = part->first % 64;
	uint64	  bits = code[part->first / 64] >> shift;

	if (shift + part->bits > 64)
		bits |= code[part->first / 64 + 1] << (64 - shift);
	return (uint32) (bits & ((UINT64CONST(1) << part->bits) - 1));
}

static inline bool
join_part_agrees(const JoinPart *part, const uint64 *a, const uint64 *b)
{
	const uint32 differ = join_part_key(part, a) ^ join_part_key(part, b);

	return __builtin_popcount(differ) <= part->radius;
}

#endif /* UNIFDIAG_JOIN_PLAN_H */

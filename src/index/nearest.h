/*
 * nearest.h
 *		The nearest of the entries that a pass over the index finds.
 *
 * An entry is a key that contains all there is to say of it, and keys compare as entries
 * should be returned: distance, block and offset of the row, from the highest bits down.
 */
#ifndef UNIFDIAG_NEAREST_H
#define UNIFDIAG_NEAREST_H

#include "storage/itemptr.h"

#include "../code/bithash.h"

/* the distance of a NULL code, or from a NULL query: after all others */
#define NULL_DISTANCE 0xFFFF

StaticAssertDecl(BITHASH_MAX_BITS < NULL_DISTANCE, "no distance is taken for NULL");

#define KEY_DISTANCE(key) ((uint32) ((key) >> 48))
#define KEY_BLOCK(key) ((BlockNumber) ((key) >> 16))
#define KEY_OFFSET(key) ((OffsetNumber) ((key) & 0xFFFF))

/*
 * The rank of a distance is the distance itself, and for NULL the one after the largest.
 * Keys are counted by rank, and so it is known at any time which are still of interest.
 */
typedef struct Nearest
{
	int		nbits; /* the largest distance */
	int		keep;  /* keys that are wanted */
	uint64	from;  /* keys before this one are not */
	uint64	bound; /* nor are keys from this one on */
	uint64 *keys;  /* those found, sorted in the end */
	uint64 *spare; /* as much room again, for sorting */
	int		found;
	int		room;
	uint32	farthest; /* the last rank of interest */
	int		closer;	  /* keys found that are before that */
	int	   *counts;	  /* keys found at each rank up to that */
} Nearest;

/* the bytes it takes to keep so many keys: room for four times as many, twice */
#define NEAREST_ROOM 4
#define NEAREST_BYTES (2 * NEAREST_ROOM * sizeof(uint64))

extern void nearest_init(Nearest *nearest, int nbits);
extern void nearest_start(Nearest *nearest, uint32 horizon);
extern void nearest_make_room(Nearest *nearest);
extern void nearest_finish(Nearest *nearest);

static inline uint32
rank_of(const Nearest *nearest, uint32 distance)
{
	return distance == NULL_DISTANCE ? (uint32) nearest->nbits + 1 : distance;
}

static inline void
nearest_count(Nearest *nearest, uint32 rank)
{
	nearest->counts[rank]++;
	nearest->closer += rank < nearest->farthest;
	/* if there are enough closer ones, the farthest are of no interest any more */
	while (nearest->closer >= nearest->keep)
		nearest->closer -= nearest->counts[--nearest->farthest];
}

static inline uint64
nearest_key(uint32 distance, const ItemPointerData *tid)
{
	return (uint64) distance << 48 | (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
		   ItemPointerGetOffsetNumberNoCheck(tid);
}

/*
 * Adds an entry that is not beyond the farthest distance when its page is looked at; false if it is
 * not wanted.
 */
static inline bool
nearest_add(Nearest *nearest, uint64 key)
{
	if (key < nearest->from || key >= nearest->bound)
		return false;
	nearest->keys[nearest->found++] = key;
	nearest_count(nearest, rank_of(nearest, KEY_DISTANCE(key)));
	if (nearest->found == nearest->room)
		nearest_make_room(nearest);
	return true;
}

#endif /* UNIFDIAG_NEAREST_H */

/*
 * hamming_found.c
 *		The codes of the entries that a pass finds, for index-only scans.
 */
#include "postgres.h"

#include "access/visibilitymap.h"

#include "../compat.h"
#include "hamming_found.h"

static Size
entry_size(int nbytes)
{
	return MAXALIGN(offsetof(HammingFound, code) + nbytes);
}

Size
found_bytes(int nbytes)
{
	return NEAREST_ROOM * entry_size(nbytes) + sizeof(int);
}

static HammingFound *
entry_at(const HammingFoundSet *set, int position)
{
	return (HammingFound *) (set->entries + set->size * position);
}

/* Makes room for as many entries as there is room for keys.  Memory is the current context's. */
void
found_init(HammingFoundSet *set, Relation table, int nbytes, const Nearest *keys)
{
	if (set->room > 0)
	{
		pfree(set->entries);
		pfree(set->order);
	}
	set->table = table;
	set->map = InvalidBuffer;
	set->size = entry_size(nbytes);
	set->room = keys->room;
	set->entries = palloc(set->size * set->room);
	set->order = palloc(sizeof(int) * keys->keep);
}

/* The start of a pass, or of another attempt at it. */
void
found_start(HammingFoundSet *set)
{
	set->count = 0;
}

/*
 * Forgets entries whose keys nearest_make_room has forgotten, or nearest_finish will.  Of those at the
 * bound one is kept, so that there are not more entries than keys.
 */
static void
make_room(HammingFoundSet *set, const Nearest *keys)
{
	bool at_bound = false;
	int	 left = 0;

	for (int i = 0; i < set->count; i++)
	{
		const uint64 key = entry_at(set, i)->key;

		if (rank_of(keys, KEY_DISTANCE(key)) > keys->farthest || key > keys->bound ||
			(key == keys->bound && at_bound))
			continue;
		at_bound |= key == keys->bound;
		if (left < i)
			memcpy(entry_at(set, left), entry_at(set, i), set->size);
		left++;
	}
	set->count = left;
}

/*
 * Adds an entry of a page that is share-locked.  Whether everybody sees its row has to be looked up
 * while the page is locked: as long as VACUUM has not removed an entry, it does not say of the page
 * of a dead row that all see all its rows.
 */
void
found_add(HammingFoundSet *set, const Nearest *keys, uint64 key, Page page,
		  const FlatLayout *layout, int entry)
{
	HammingFound *found;

	if (set->count == set->room)
		make_room(set, keys);
	found = entry_at(set, set->count++);
	found->key = key;
	found->all_visible = VM_ALL_VISIBLE(set->table, KEY_BLOCK(key), &set->map);
	found->is_null = layout->kind == FLAT_NULLS;
	if (!found->is_null)
		flat_page_get_code(page, layout, entry, found->code);
}

/* The first position of a key among the sorted ones, or -1. */
static int
position_of(const Nearest *keys, uint64 key)
{
	int low = 0;
	int high = keys->found;

	while (low < high)
	{
		const int middle = low + (high - low) / 2;

		if (keys->keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < keys->found && keys->keys[low] == key ? low : -1;
}

/*
 * The end of a pass, when the keys have been sorted.  A key may be there twice: the entry of a dead row
 * was found, VACUUM removed it, and a new row took its place, too late for our snapshot.
 */
void
found_finish(HammingFoundSet *set, const Nearest *keys)
{
	for (int i = 0; i < set->count; i++)
	{
		const int position = position_of(keys, entry_at(set, i)->key);

		if (position >= 0)
			set->order[position] = i;
	}
	for (int i = 1; i < keys->found; i++)
	{
		if (keys->keys[i] == keys->keys[i - 1])
			set->order[i] = set->order[i - 1];
	}
	if (BufferIsValid(set->map))
		ReleaseBuffer(set->map);
	set->map = InvalidBuffer;
}

const HammingFound *
found_get(const HammingFoundSet *set, int position)
{
	return entry_at(set, set->order[position]);
}

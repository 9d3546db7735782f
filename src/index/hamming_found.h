/*
 * hamming_found.h
 *		The codes of the entries that a pass finds, for index-only scans.
 *
 * These belong to the keys of nearest.h: entries are added in step with their keys, forgotten when
 * their keys are, and put into the order of the keys in the end.
 */
#ifndef UNIFDIAG_HAMMING_FOUND_H
#define UNIFDIAG_HAMMING_FOUND_H

#include "hamming.h"
#include "nearest.h"

typedef struct HammingFound
{
	uint64 key;
	bool   is_null;		/* there is no code */
	bool   all_visible; /* everybody saw all rows of its page when we saw the entry */
	uint8  code[FLEXIBLE_ARRAY_MEMBER];
} HammingFound;

typedef struct HammingFoundSet
{
	Relation table;
	Buffer	 map;  /* page of the table's visibility map that was looked at last */
	Size	 size; /* of an entry */
	int		 room;
	int		 count;
	char	*entries;
	int		*order; /* for each of the sorted keys, the position of its entry */
} HammingFoundSet;

/* the bytes that it takes to keep an entry, beside those of its key */
extern Size found_bytes(int nbytes);

extern void found_init(HammingFoundSet *set, Relation table, int nbytes, const Nearest *keys);
extern void found_start(HammingFoundSet *set);
extern void found_add(HammingFoundSet *set, const Nearest *keys, uint64 key, Page page,
					  const FlatLayout *layout, int entry);
extern void found_finish(HammingFoundSet *set, const Nearest *keys);

/* the entry of one of the sorted keys */
extern const HammingFound *found_get(const HammingFoundSet *set, int position);

#endif /* UNIFDIAG_HAMMING_FOUND_H */

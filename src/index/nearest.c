/*
 * nearest.c
 *		Keeping the nearest entries, and sorting them.
 */
#include "postgres.h"

#include "nearest.h"

#define ST_SORT sort_keys
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* What depends on the codes' length.  Memory is the current context's. */
void
nearest_init(Nearest *nearest, int nbits)
{
	nearest->nbits = nbits;
	nearest->counts = palloc(sizeof(int) * (nbits + 2));
}

/* The start of a pass that looks at distances up to the rank horizon, or of another attempt. */
void
nearest_start(Nearest *nearest, uint32 horizon)
{
	nearest->found = 0;
	nearest->bound = PG_UINT64_MAX;
	nearest->farthest = horizon;
	nearest->closer = 0;
	memset(nearest->counts, 0, sizeof(int) * (nearest->nbits + 2));
}

/* Brings the smallest count keys to the front. */
static void
select_smallest(uint64 *keys, int n, int count)
{
	int low = 0;
	int high = n - 1;

	/* Hoare's selection: what is left and right of the pivot changes places */
	while (low < high)
	{
		const uint64 pivot = keys[low + (high - low) / 2];
		int			 i = low;
		int			 j = high;

		while (i <= j)
		{
			while (keys[i] < pivot)
				i++;
			while (keys[j] > pivot)
				j--;
			if (i <= j)
			{
				const uint64 swap = keys[i];

				keys[i++] = keys[j];
				keys[j--] = swap;
			}
		}
		if (count - 1 <= j)
			high = j;
		else if (count - 1 >= i)
			low = i;
		else
			break;
	}
}

/*
 * Forgets keys that are too far, and if nearly all are at the farthest distance, those with
 * the largest TIDs.
 */
void
nearest_make_room(Nearest *nearest)
{
	int left = 0;

	for (int i = 0; i < nearest->found; i++)
	{
		nearest->keys[left] = nearest->keys[i];
		left += rank_of(nearest, KEY_DISTANCE(nearest->keys[i])) <= nearest->farthest;
	}
	nearest->found = left;
	if (left <= nearest->room / 2)
		return;

	select_smallest(nearest->keys, nearest->found, nearest->keep);
	nearest->found = nearest->keep;
	nearest->bound = 0;
	nearest->closer = 0;
	memset(nearest->counts, 0, sizeof(int) * (nearest->nbits + 2));
	for (int i = 0; i < nearest->keep; i++)
	{
		nearest->bound = Max(nearest->bound, nearest->keys[i]);
		nearest_count(nearest, rank_of(nearest, KEY_DISTANCE(nearest->keys[i])));
	}
}

/*
 * Sorts what was found, and keeps as much as is wanted.  The counts tell where the keys of
 * each distance go; among them keys mostly are in order already, as rows are in the table.
 */
void
nearest_finish(Nearest *nearest)
{
	uint64 *sorted = nearest->spare;
	int		total = 0;
	int		start = 0;

	for (uint32 rank = 0; rank <= nearest->farthest; rank++)
	{
		const int count = nearest->counts[rank];

		nearest->counts[rank] = total;
		total += count;
	}
	for (int i = 0; i < nearest->found; i++)
	{
		const uint32 rank = rank_of(nearest, KEY_DISTANCE(nearest->keys[i]));

		if (rank <= nearest->farthest)
			sorted[nearest->counts[rank]++] = nearest->keys[i];
	}
	for (uint32 rank = 0; rank <= nearest->farthest; rank++)
	{
		int end = nearest->counts[rank];

		if (end > nearest->keep)
		{
			/* only of the farthest there can be too many */
			select_smallest(sorted + start, end - start, nearest->keep - start);
			end = nearest->keep;
		}
		if (end - start > 1)
			sort_keys(sorted + start, end - start);
		start = end;
	}
	nearest->spare = nearest->keys;
	nearest->keys = sorted;
	nearest->found = start;
}

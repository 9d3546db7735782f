/*
 * sketch_queue.c
 *		Rows whose distances are known, and that wait for their turn: a binary heap.
 */
#include "postgres.h"

#include "utils/float.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "sketch_queue.h"

#define FIRST_ROOM 256

void
sketch_queue_init(SketchQueue *queue, int others)
{
	queue->context =
		AllocSetContextCreate(CurrentMemoryContext, "sketch rows", ALLOCSET_DEFAULT_SIZES);
	queue->others = others;
	queue->count = queue->room = 0;
	queue->rows = NULL;
}

void
sketch_queue_reset(SketchQueue *queue)
{
	MemoryContextReset(queue->context);
	queue->count = queue->room = 0;
	queue->rows = NULL;
}

static bool
is_before(const SketchQueue *queue, const SketchRow *a, const SketchRow *b)
{
	ItemPointerData first = a->tid;
	ItemPointerData second = b->tid;

	if (!float8_eq(a->distance, b->distance))
		return float8_lt(a->distance, b->distance);
	for (int i = 0; i < queue->others; i++)
	{
		if (!float8_eq(a->others[i], b->others[i]))
			return float8_lt(a->others[i], b->others[i]);
	}
	return ItemPointerCompare(&first, &second) < 0;
}

static void
make_room(SketchQueue *queue)
{
	const Size room = Max(2 * queue->room, FIRST_ROOM);

	if (queue->rows == NULL)
		queue->rows = MemoryContextAllocHuge(queue->context, sizeof(SketchRow) * room);
	else
		queue->rows = repalloc_huge(queue->rows, sizeof(SketchRow) * room);
	queue->room = room;
}

void
sketch_queue_add(SketchQueue *queue, const SketchRow *row)
{
	SketchRow added = *row;
	Size	  position = queue->count;

	if (queue->count == queue->room)
		make_room(queue);
	if (queue->others > 0)
	{
		added.others = MemoryContextAlloc(queue->context, sizeof(double) * queue->others);
		memcpy(added.others, row->others, sizeof(double) * queue->others);
	}
	queue->count++;
	/* parents that it comes before move down */
	while (position > 0 && is_before(queue, &added, &queue->rows[(position - 1) / 2]))
	{
		queue->rows[position] = queue->rows[(position - 1) / 2];
		position = (position - 1) / 2;
	}
	queue->rows[position] = added;
}

SketchRow
sketch_queue_take(SketchQueue *queue)
{
	const SketchRow first = queue->rows[0];
	const SketchRow last = queue->rows[--queue->count];
	Size			position = 0;

	/* children that come before the last row move up, until it has found its place */
	for (;;)
	{
		Size child = 2 * position + 1;

		if (child + 1 < queue->count &&
			is_before(queue, &queue->rows[child + 1], &queue->rows[child]))
			child++;
		if (child >= queue->count || !is_before(queue, &queue->rows[child], &last))
			break;
		queue->rows[position] = queue->rows[child];
		position = child;
	}
	queue->rows[position] = last;
	return first;
}

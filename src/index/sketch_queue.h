/*
 * sketch_queue.h
 *		Rows whose distances are known, and that wait for their turn.
 */
#ifndef UNIFDIAG_SKETCH_QUEUE_H
#define UNIFDIAG_SKETCH_QUEUE_H

#include "storage/itemptr.h"

/* A row; NaN comes after all other distances.  Further distances decide among equal ones. */
typedef struct SketchRow
{
	double			distance;
	double		   *others; /* NULL if there are none */
	ItemPointerData tid;
} SketchRow;

typedef struct SketchQueue
{
	MemoryContext context;
	int			  others; /* further distances of a row */
	Size		  count;
	Size		  room;
	SketchRow	 *rows; /* a heap: none is before its parent at half its position */
} SketchQueue;

/* memory is the current context's */
extern void sketch_queue_init(SketchQueue *queue, int others);
extern void sketch_queue_reset(SketchQueue *queue);

/* adds a row, and copies its further distances */
extern void sketch_queue_add(SketchQueue *queue, const SketchRow *row);

/* removes the first row, if there is one */
extern SketchRow sketch_queue_take(SketchQueue *queue);

#endif /* UNIFDIAG_SKETCH_QUEUE_H */

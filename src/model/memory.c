/*
 * memory.c
 *		Memory for the mathematics, from the current memory context.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../math/memory.h"

/* Long computations allocate again and again: here a query can be cancelled. */
void *
math_alloc(size_t count, size_t size)
{
	math_check_cancelled();
	return MemoryContextAllocExtended(CurrentMemoryContext, Max(count, 1) * size,
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

void
math_free(void *memory)
{
	pfree(memory);
}

void
math_check_cancelled(void)
{
	CHECK_FOR_INTERRUPTS();
}

void
math_hold_cancel(void)
{
	HOLD_INTERRUPTS();
}

/* After an error in between, the server has let go of it already. */
void
math_resume_cancel(void)
{
	RESUME_INTERRUPTS();
}

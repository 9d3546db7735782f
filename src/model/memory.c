/*
 * memory.c
 *		Memory for the mathematics, from the current memory context.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "../math/memory.h"

void *
math_alloc(size_t count, size_t size)
{
	return MemoryContextAllocExtended(CurrentMemoryContext, Max(count, 1) * size,
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

void
math_free(void *memory)
{
	pfree(memory);
}

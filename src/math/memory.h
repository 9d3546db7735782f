/*
 * memory.h
 *		Memory for the mathematics, which knows nothing of PostgreSQL.
 *
 * The server supplies these functions from its memory contexts, where running out of
 * memory is an error that frees everything; a plain program supplies them from malloc.
 */
#ifndef UNIFDIAG_MEMORY_H
#define UNIFDIAG_MEMORY_H

#include <stddef.h>

/* memory of count elements of size bytes, all zero; never NULL */
extern void *math_alloc(size_t count, size_t size);
extern void	 math_free(void *memory);

#endif /* UNIFDIAG_MEMORY_H */

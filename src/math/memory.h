/*
 * memory.h
 *		What the mathematics, which knows nothing of PostgreSQL, needs of its surroundings.
 *
 * The server supplies these functions from its memory contexts, where running out of
 * memory is an error that frees everything, as is a cancelled query; a plain program supplies
 * them from malloc.
 */
#ifndef UNIFDIAG_MEMORY_H
#define UNIFDIAG_MEMORY_H

#include <stddef.h>

/* memory of count elements of size bytes, all zero; never NULL */
extern void *math_alloc(size_t count, size_t size);
extern void	 math_free(void *memory);

/* does not return if the query was cancelled; so may math_alloc */
extern void math_check_cancelled(void);

/* between the two it does return: what is changed there is changed as a whole */
extern void math_hold_cancel(void);
extern void math_resume_cancel(void);

#endif /* UNIFDIAG_MEMORY_H */

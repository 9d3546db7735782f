/*
 * components.h
 *		Connected components of numbered entries: union and find, in memory or in a temporary file.
 */
#ifndef UNIFDIAG_COMPONENTS_H
#define UNIFDIAG_COMPONENTS_H

#include "storage/buffile.h"

typedef struct Components
{
	uint32	*parents; /* of the entries, or NULL if they are in a file */
	BufFile *file;
} Components;

/* entries below count, none of them in a component; memory is the current context's */
extern void components_init(Components *components, uint32 count);
extern void components_end(Components *components);

/* makes an entry a component of its own; false if it is in one already */
extern bool components_add(Components *components, uint32 entry);

/* makes one of the components of two entries */
extern void components_join(Components *components, uint32 a, uint32 b);

/* the entry that stands for the component of an entry */
extern uint32 components_find(Components *components, uint32 entry);

#endif /* UNIFDIAG_COMPONENTS_H */

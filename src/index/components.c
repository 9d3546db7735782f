/*
 * components.c
 *		Connected components of numbered entries: union and find.
 *
 * Every entry of a component has a parent, which for the root is the root itself.  Paths are halved as they are walked,
 * and the smaller number becomes the root.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "components.h"

#define NO_PARENT PG_UINT32_MAX

static void
seek_entry(Components *components, uint32 entry)
{
	if (BufFileSeek(components->file, 0, (int64) entry * (int64) sizeof(uint32), SEEK_SET) != 0)
		ereport(ERROR, errcode_for_file_access(), errmsg("could not seek in a temporary file"));
}

static uint32
get_parent(Components *components, uint32 entry)
{
	uint32 parent;

	if (components->parents != NULL)
		return components->parents[entry];
	seek_entry(components, entry);
	if (BufFileRead(components->file, &parent, sizeof(parent)) != sizeof(parent))
		ereport(ERROR, errcode_for_file_access(), errmsg("could not read from a temporary file"));
	return parent;
}

static void
set_parent(Components *components, uint32 entry, uint32 parent)
{
	if (components->parents != NULL)
	{
		components->parents[entry] = parent;
		return;
	}
	seek_entry(components, entry);
	BufFileWrite(components->file, &parent, sizeof(parent));
}

void
components_init(Components *components, uint32 count)
{
	const Size size = sizeof(uint32) * (Size) count;
	uint32	   none[BLCKSZ / sizeof(uint32)];

	components->parents = NULL;
	components->file = NULL;
	/* they are read and written at random, as hash tables are */
	if (size <= get_hash_memory_limit())
	{
		components->parents = MemoryContextAllocHuge(CurrentMemoryContext, Max(size, 1));
		memset(components->parents, 0xFF, size);
		return;
	}
	memset(none, 0xFF, sizeof(none));
	components->file = BufFileCreateTemp(false);
	for (Size done = 0; done < size; done += sizeof(none))
	{
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(components->file, none, sizeof(none));
	}
}

void
components_end(Components *components)
{
	if (components->file != NULL)
		BufFileClose(components->file);
	else
		pfree(components->parents);
}

bool
components_add(Components *components, uint32 entry)
{
	if (get_parent(components, entry) != NO_PARENT)
		return false;
	set_parent(components, entry, entry);
	return true;
}

uint32
components_find(Components *components, uint32 entry)
{
	uint32 parent = get_parent(components, entry);

	while (parent != entry)
	{
		const uint32 above = get_parent(components, parent);

		if (above != parent)
			set_parent(components, entry, above);
		entry = parent;
		parent = above;
	}
	return entry;
}

void
components_join(Components *components, uint32 a, uint32 b)
{
	a = components_find(components, a);
	b = components_find(components, b);
	if (a != b)
		set_parent(components, Max(a, b), Min(a, b));
}

/*
 * flat_build.c
 *		Filling the pages of a flat index that nobody else sees yet.
 *
 * So the pages need no buffers.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"

#include "../compat.h"
#include "flat_build.h"

void
flat_build_start(FlatBuild *build, Relation index, const FlatLayout *codes)
{
	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	memset(build, 0, sizeof(*build));
	build->index = index;
	build->layouts[BUILD_CODES] = *codes;
	build->layouts[BUILD_NULLS] = flat_layout(FLAT_NULLS, 0);
	build->writer = page_writer_start(index);
	build->end = FLAT_FIRST_PAGE;
}

BlockNumber
flat_build_page(FlatBuild *build, Page page)
{
	const BlockNumber block = build->end++;

	page_writer_write(build->writer, block, page);
	return block;
}

/* Writes the page being filled; returns its block. */
static BlockNumber
finish_page(FlatBuild *build, int which)
{
	const BlockNumber block = flat_build_page(build, build->pages[which]);

	build->pages[which] = NULL;
	return block;
}

void
flat_build_add(FlatBuild *build, FlatEntry entry)
{
	const int		  which = entry.bits == NULL ? BUILD_NULLS : BUILD_CODES;
	const FlatLayout *layout = &build->layouts[which];

	if (build->pages[which] == NULL)
	{
		build->pages[which] = page_writer_new(build->writer);
		flat_page_init(build->pages[which], layout);
	}
	flat_page_add(build->pages[which], layout, entry);
	if (FlatPageGetHead(build->pages[which])->count == layout->capacity)
		finish_page(build, which);
	build->counts[which]++;
}

/* Writes the pages that are not full; in room what the free space map should know of them. */
static void
finish_pages(FlatBuild *build, BlockNumber *blocks, Size *room)
{
	for (int which = 0; which < BUILD_KINDS; which++)
	{
		FlatContents contents = {.layout = &build->layouts[which]};

		blocks[which] = InvalidBlockNumber;
		if (build->pages[which] == NULL)
			continue;
		contents.count = FlatPageGetHead(build->pages[which])->count;
		room[which] = flat_page_room(contents);
		blocks[which] = finish_page(build, which);
	}
}

Page
flat_build_meta(FlatBuild *build)
{
	Page	  page = page_writer_new(build->writer);
	FlatMeta *meta = FlatPageGetMeta(page);

	flat_meta_init(page, build->layouts[BUILD_CODES].nbits);
	meta->dims = build->layouts[BUILD_CODES].dims;
	meta->model = build->layouts[BUILD_CODES].model;
	meta->codes = build->counts[BUILD_CODES];
	meta->nulls = build->counts[BUILD_NULLS];
	return page;
}

/* All pages get to the log and to the file; then the free space map can be told of them. */
void
flat_build_finish(FlatBuild *build, Page meta)
{
	BlockNumber blocks[BUILD_KINDS];
	Size		room[BUILD_KINDS];

	finish_pages(build, blocks, room);
	FlatPageGetMeta(meta)->end = build->end;
	page_writer_write(build->writer, FLAT_METAPAGE, meta);
	page_writer_finish(build->writer);
	for (int which = 0; which < BUILD_KINDS; which++)
	{
		if (blocks[which] != InvalidBlockNumber)
			RecordPageWithFreeSpace(build->index, blocks[which], room[which]);
	}
	IndexFreeSpaceMapVacuum(build->index);
}

void
flat_build_empty(Relation index, void (*init)(Relation index, Page meta))
{
	PGAlignedBlock meta;
	Buffer		   buffer;

	/* first, because that may read catalogs */
	init(index, meta.data);
	extend_relation(index, INIT_FORKNUM, &buffer);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), meta.data, BLCKSZ);
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/*
 * page_writer.c
 *		Writing the pages of an index that nobody else sees yet, without buffers.
 *
 * From 17 on the server does that for us.  For older ones we do the same.
 */
#include "postgres.h"

#include "../compat.h"
#include "page_writer.h"

#ifdef HAVE_BULK_WRITE

#include "storage/bulk_write.h"

struct PageWriter
{
	BulkWriteState *bulk;
};

PageWriter *
page_writer_start(Relation index)
{
	PageWriter *writer = palloc(sizeof(PageWriter));

	writer->bulk = smgr_bulk_start_rel(index, MAIN_FORKNUM);
	return writer;
}

Page
page_writer_new(PageWriter *writer)
{
	return (Page) smgr_bulk_get_buf(writer->bulk);
}

void
page_writer_write(PageWriter *writer, BlockNumber block, Page page)
{
	smgr_bulk_write(writer->bulk, block, (BulkWriteBuffer) page, true);
}

void
page_writer_finish(PageWriter *writer)
{
	smgr_bulk_finish(writer->bulk);
	pfree(writer);
}

#else

#include "access/xloginsert.h"
#include "storage/smgr.h"

/* pages that are written together: as many as one record of the log holds */
#define PAGES_AT_A_TIME 32

/* pages that the caller may have at a time */
#define PAGES_OUTSIDE 3

/* what the server wants pages to be aligned to that it writes, from some version on */
#define PAGE_ALIGNMENT 4096

struct PageWriter
{
	Relation	index;
	BlockNumber written; /* blocks that the file has */
	char	   *memory;
	int			nfree;
	Page		free[PAGES_AT_A_TIME + PAGES_OUTSIDE];
	int			nwaiting; /* pages to be written, and their blocks */
	Page		waiting[PAGES_AT_A_TIME];
	BlockNumber blocks[PAGES_AT_A_TIME];
};

PageWriter *
page_writer_start(Relation index)
{
	PageWriter *writer = palloc0(sizeof(PageWriter));
	char	   *aligned;

	writer->index = index;
	writer->memory = palloc(lengthof(writer->free) * (Size) BLCKSZ + PAGE_ALIGNMENT);
	aligned = writer->memory + PAGE_ALIGNMENT - (uintptr_t) writer->memory % PAGE_ALIGNMENT;
	for (int i = 0; i < (int) lengthof(writer->free); i++)
		writer->free[writer->nfree++] = aligned + i * (Size) BLCKSZ;
	return writer;
}

Page
page_writer_new(PageWriter *writer)
{
	Assert(writer->nfree > 0);
	return writer->free[--writer->nfree];
}

/* Writes one page; the file may have to be extended to it. */
static void
write_page(PageWriter *writer, BlockNumber block, Page page)
{
	SMgrRelation file = RelationGetSmgr(writer->index);
	const bool	 synced = RelationNeedsWAL(writer->index); /* in the end, by us */

	PageSetChecksumInplace(page, block);
	if (block < writer->written)
	{
		smgrwrite(file, MAIN_FORKNUM, block, page, synced);
		return;
	}
	while (writer->written < block)
	{
		Page zeros = page_writer_new(writer);

		memset(zeros, 0, BLCKSZ);
		smgrextend(file, MAIN_FORKNUM, writer->written++, zeros, synced);
		writer->free[writer->nfree++] = zeros;
	}
	smgrextend(file, MAIN_FORKNUM, writer->written++, page, synced);
}

static void
write_waiting(PageWriter *writer)
{
	if (RelationNeedsWAL(writer->index) && writer->nwaiting > 0)
		log_newpages(&relation_locator(writer->index), MAIN_FORKNUM, writer->nwaiting,
					 writer->blocks, writer->waiting, true);
	for (int i = 0; i < writer->nwaiting; i++)
	{
		write_page(writer, writer->blocks[i], writer->waiting[i]);
		writer->free[writer->nfree++] = writer->waiting[i];
	}
	writer->nwaiting = 0;
}

void
page_writer_write(PageWriter *writer, BlockNumber block, Page page)
{
	writer->blocks[writer->nwaiting] = block;
	writer->waiting[writer->nwaiting++] = page;
	if (writer->nwaiting == PAGES_AT_A_TIME)
		write_waiting(writer);
}

/*
 * In the end all must get to disk: a checkpoint may have been in the meantime, after which our log
 * would not be looked at again, and it knows nothing of us.
 */
void
page_writer_finish(PageWriter *writer)
{
	write_waiting(writer);
	if (RelationNeedsWAL(writer->index))
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
	pfree(writer->memory);
	pfree(writer);
}

#endif

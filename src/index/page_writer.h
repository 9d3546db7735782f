/*
 * page_writer.h
 *		Writing the pages of an index that nobody else sees yet, without buffers.
 */
#ifndef UNIFDIAG_PAGE_WRITER_H
#define UNIFDIAG_PAGE_WRITER_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

typedef struct PageWriter PageWriter;

/* memory is the current context's */
extern PageWriter *page_writer_start(Relation index);

/* a page to be filled; at most three at a time */
extern Page page_writer_new(PageWriter *writer);

/* writes such a page, which then belongs to the writer: some time, and at the latest at the end */
extern void page_writer_write(PageWriter *writer, BlockNumber block, Page page);

/* when this returns, all is logged and, if need be, on disk */
extern void page_writer_finish(PageWriter *writer);

#endif /* UNIFDIAG_PAGE_WRITER_H */

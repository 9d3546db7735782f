/*
 * page_stream.h
 *		Pages of an index, one after the other.
 */
#ifndef UNIFDIAG_PAGE_STREAM_H
#define UNIFDIAG_PAGE_STREAM_H

#include "storage/block.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

typedef struct PageStream PageStream;

/* every step-th page from first to before end; maintenance is what VACUUM does */
extern PageStream *
page_stream_start(Relation index, BlockNumber first, BlockNumber end, BlockNumber step,
				  bool maintenance, BufferAccessStrategy strategy);

/* the next page's buffer, pinned, which the caller releases; or InvalidBuffer */
extern Buffer page_stream_next(PageStream *stream);

extern void page_stream_end(PageStream *stream);

#endif /* UNIFDIAG_PAGE_STREAM_H */

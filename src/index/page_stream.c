/*
 * page_stream.c
 *		Pages of an index, one after the other.
 *
 * From 17 on the server reads ahead for us.  Before, the operating system does, since pages are
 * read in order.
 */
#include "postgres.h"

#include "../compat.h"
#include "page_stream.h"

#ifdef HAVE_READ_STREAM
#include "storage/read_stream.h"
#endif

struct PageStream
{
	Relation			 index;
	BlockNumber			 next;
	BlockNumber			 end;
	BlockNumber			 step;
	BufferAccessStrategy strategy;
#ifdef HAVE_READ_STREAM
	ReadStream *stream;
#endif
};

static BlockNumber
next_block(PageStream *stream)
{
	const BlockNumber block = stream->next;

	if (block >= stream->end)
		return InvalidBlockNumber;
	stream->next += stream->step;
	return block;
}

#ifdef HAVE_READ_STREAM
static BlockNumber
next_block_of(ReadStream *stream pg_attribute_unused(), void *state,
			  void *data pg_attribute_unused())
{
	return next_block(state);
}
#endif

PageStream *
page_stream_start(Relation index, BlockNumber first, BlockNumber end, BlockNumber step,
				  bool maintenance pg_attribute_unused(), BufferAccessStrategy strategy)
{
	PageStream *stream = palloc(sizeof(PageStream));

	stream->index = index;
	stream->next = first;
	stream->end = end;
	stream->step = step;
	stream->strategy = strategy;
#ifdef HAVE_READ_STREAM
	stream->stream = read_stream_begin_relation(
		READ_STREAM_FULL | (maintenance ? READ_STREAM_MAINTENANCE : READ_STREAM_DEFAULT), strategy,
		index, MAIN_FORKNUM, next_block_of, stream, 0);
#endif
	return stream;
}

Buffer
page_stream_next(PageStream *stream)
{
#ifdef HAVE_READ_STREAM
	return read_stream_next_buffer(stream->stream, NULL);
#else
	const BlockNumber block = next_block(stream);

	if (block == InvalidBlockNumber)
		return InvalidBuffer;
	return ReadBufferExtended(stream->index, MAIN_FORKNUM, block, RBM_NORMAL, stream->strategy);
#endif
}

void
page_stream_end(PageStream *stream)
{
#ifdef HAVE_READ_STREAM
	read_stream_end(stream->stream);
#endif
	pfree(stream);
}

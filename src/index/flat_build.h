/*
 * flat_build.h
 *		Filling the pages of a flat index that nobody else sees yet.
 */
#ifndef UNIFDIAG_FLAT_BUILD_H
#define UNIFDIAG_FLAT_BUILD_H

#include "flat.h"
#include "page_writer.h"

/* the two kinds of entries, each with a page being filled */
enum
{
	BUILD_CODES,
	BUILD_NULLS,
	BUILD_KINDS
};

typedef struct FlatBuild
{
	Relation	index;
	FlatLayout	layouts[BUILD_KINDS];
	PageWriter *writer;
	Page		pages[BUILD_KINDS]; /* or NULL */
	BlockNumber end;				/* blocks that have been given to pages */
	int64		counts[BUILD_KINDS];
} FlatBuild;

/* memory is the current context's */
extern void flat_build_start(FlatBuild *build, Relation index, const FlatLayout *codes);

/* an entry; if it has bits, the layout of codes is known */
extern void flat_build_add(FlatBuild *build, FlatEntry entry);

/* writes a page from page_writer_new that is not one of entries; returns its block */
extern BlockNumber flat_build_page(FlatBuild *build, Page page);

/* the metapage, to which the caller may add before he hands it on */
extern Page flat_build_meta(FlatBuild *build);
extern void flat_build_finish(FlatBuild *build, Page meta);

/* the index of an unlogged table as it is after a crash: this metapage */
extern void flat_build_empty(Relation index, void (*init)(Relation index, Page meta));

#endif /* UNIFDIAG_FLAT_BUILD_H */

/*
 * compact.h
 *		Filling pages from those at the end, so that the index ends earlier.
 */
#ifndef UNIFDIAG_COMPACT_H
#define UNIFDIAG_COMPACT_H

#include "flat.h"

/* ncodes and nnulls are the index's entries; other pages stay where they are */
extern void flat_compact(IndexVacuumInfo *info, const FlatLayout *codes, const FlatLayout *nulls,
						 uint64 ncodes, uint64 nnulls, BlockNumber others);

#endif /* UNIFDIAG_COMPACT_H */

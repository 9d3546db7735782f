/*
 * compact.h
 *		Filling pages from those at the end, so that the index ends earlier.
 */
#ifndef UNIFDIAG_COMPACT_H
#define UNIFDIAG_COMPACT_H

#include "hamming.h"

/* ncodes and nnulls are the index's entries */
extern void hamming_compact(IndexVacuumInfo *info, const HammingLayout *codes,
							const HammingLayout *nulls, uint64 ncodes, uint64 nnulls);

#endif /* UNIFDIAG_COMPACT_H */

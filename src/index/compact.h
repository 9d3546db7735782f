/*
 * compact.h
 *		Filling pages from those at the end, so that the file can be cut.
 */
#ifndef UNIFDIAG_COMPACT_H
#define UNIFDIAG_COMPACT_H

#include "hamming.h"

/* whether there was something to move; ncodes and nnulls are the index's entries */
extern bool hamming_compact(IndexVacuumInfo *info, const HammingLayout *codes,
							const HammingLayout *nulls, uint64 ncodes, uint64 nnulls);

#endif /* UNIFDIAG_COMPACT_H */

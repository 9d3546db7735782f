/*
 * hamming_page.h
 *		A page of codes and a query, as kernels read them.
 */
#ifndef UNIFDIAG_HAMMING_PAGE_H
#define UNIFDIAG_HAMMING_PAGE_H

#include "../code/kernels.h"
#include "hamming.h"

/* A code in words, as codes are on pages. */
static inline void
hamming_query_words(BitHashView code, const FlatLayout *layout, uint64 *words)
{
	for (int column = 0; column < layout->words; column++)
		words[column] =
			load_word(code.bits + 8 * column, Min(8, BITHASH_BYTES(code.nbits) - 8 * column));
}

/* The codes of a page, without a query.  columns has room for as many as there are. */
static inline HammingColumns
hamming_page_codes(Page page, const FlatLayout *layout, int count, const uint8 **columns)
{
	const HammingColumns codes = {
		.columns = columns,
		.ncolumns = layout->words,
		.count = count,
		.payload = (const uint8 *) FlatPageGetTids(page, layout),
		.payload_bytes = sizeof(ItemPointerData),
	};

	for (int column = 0; column < layout->words; column++)
		columns[column] = FlatPageGetWords(page, layout, column);
	return codes;
}

/* Sets what they are compared with, and within which radius. */
static inline void
hamming_set_query(HammingColumns *codes, const uint64 *query, uint32 radius)
{
	codes->query = query;
	codes->radius = radius;
	codes->first = hamming_first_columns(radius, codes->ncolumns);
}

#endif /* UNIFDIAG_HAMMING_PAGE_H */

/*
 * sketches.c
 *		How fast the kernels rank sketches, beside the Hamming distances of codes of as many bits.
 *
 * One million sketches, on pages of 8 kB as an index has them, are searched for those within a
 * radius that next to none is within; then the same codes for those within a Hamming distance.
 * Passes take turns; medians are compared.  The codes are the same ones in each pass, so
 * that short ones come from the last-level cache, and long ones from memory.
 */
#include <stdio.h>
#include <string.h>

#include "../../src/code/sketch_kernels.h"
#include "../unit/tap.h"
#include "timing.h"

#define SKETCHES 1000000
#define PAGE 8192
#define HEAD 64
#define TID 6
#define MAX_WORDS 16
#define PASSES 51

/* takes what a pass computed, so that the compiler must compute it */
static volatile size_t sink;

/* Pages of sketches: words by columns, then numbers. */
typedef struct Pages
{
	uint8_t *bytes;
	size_t	 words;
	size_t	 capacity;
	size_t	 count;
} Pages;

static Pages
make_pages(size_t words, uint64_t *state)
{
	Pages pages = {.words = words, .capacity = (PAGE - HEAD) / (8 * words + 4 + TID) / 8 * 8};

	pages.count = (SKETCHES + pages.capacity - 1) / pages.capacity;
	pages.bytes = malloc(pages.count * PAGE + CACHE_LINE);
	if (pages.bytes == NULL)
	{
		perror("pages");
		exit(1);
	}
	pages.bytes += CACHE_LINE - (uintptr_t) pages.bytes % CACHE_LINE;
	for (size_t i = 0; i < pages.count * PAGE; i += 8)
	{
		const uint64_t word = next_random(state);

		memcpy(pages.bytes + i, &word, 8);
	}
	return pages;
}

/* Where a page's columns are, and how far the next pages are from it. */
static HammingUpcoming
look_at_page(const Pages *pages, size_t page, const uint8_t **columns, const uint8_t **numbers)
{
	const uint8_t *bytes = pages->bytes + page * PAGE + HEAD;

	for (size_t k = 0; k < pages->words; k++)
		columns[k] = bytes + k * 8 * pages->capacity;
	*numbers = bytes + pages->words * 8 * pages->capacity;
	return (HammingUpcoming) {.next = page + 1 < pages->count ? PAGE : 0,
							  .later = page + 2 < pages->count ? 2 * PAGE : 0};
}

static size_t
search(const HammingKernel *hamming, const SketchKernel *kernel, const Pages *pages,
	   const uint64_t *query, const SketchScore *score)
{
	static HammingMatch matches[PAGE + MATCH_ROOM];
	size_t				found = 0;

	for (size_t page = 0; page < pages->count; page++)
	{
		const uint8_t		 *columns[MAX_WORDS];
		const uint8_t		 *numbers;
		const HammingUpcoming upcoming = look_at_page(pages, page, columns, &numbers);
		const HammingColumns  codes = {.columns = columns,
									   .ncolumns = pages->words,
									   .count = pages->capacity,
									   .query = query,
									   .radius = (uint32_t) pages->words * 10,
									   .first = pages->words,
									   .upcoming = upcoming,
									   .payload = numbers};
		const SketchColumns	  sketches = {.columns = columns,
										  .ncolumns = pages->words,
										  .numbers = numbers,
										  .count = pages->capacity,
										  .score = score,
										  .radius = 100,
										  .upcoming = upcoming,
										  .payload = numbers};

		found +=
			kernel != NULL ? kernel->within(&sketches, matches) : hamming->within(&codes, matches);
	}
	return found;
}

/* Medians in ms of Hamming search and of ranking, by the kernels of one name. */
static void
measure(const HammingKernel *hamming, const SketchKernel *kernel, const Pages *pages,
		uint64_t *state, double *distance, double *rank)
{
	static uint64_t query[MAX_WORDS * SKETCH_PLANES];
	static uint8_t	tables[MAX_WORDS * SKETCH_TABLE];
	double			times[2][PASSES];
	/* a bound that only a sum near 0 brings down to the radius */
	const SketchScore score = {.planes = query,
							   .tables = tables,
							   .start = 12000.0F,
							   .n_factor = 0.1F,
							   .f_start = 480.0F * (float) pages->words,
							   .f_factor = 1.0F,
							   .e_factor = 100.0F};

	for (size_t i = 0; i < MAX_WORDS * SKETCH_PLANES; i++)
		query[i] = next_random(state);
	for (size_t i = 0; i < sizeof(tables); i++)
		tables[i] = (uint8_t) (next_random(state) % 61);
	for (int pass = 0; pass < PASSES; pass++)
	{
		double start = microseconds();

		sink += search(hamming, NULL, pages, query, &score);
		times[0][pass] = (microseconds() - start) / 1e3;
		start = microseconds();
		sink += search(NULL, kernel, pages, query, &score);
		times[1][pass] = (microseconds() - start) / 1e3;
	}
	*distance = median(times[0], PASSES);
	*rank = median(times[1], PASSES);
}

int
main(void)
{
	uint64_t state = 20180415;

	printf("1,000,000 sketches on pages, one core; median of %d passes\n\n", PASSES);
	printf("| kernel   | bits | Hamming, ms | sketches, ms | ratio |\n");
	printf("|----------|-----:|------------:|-------------:|------:|\n");
	for (size_t words = 1; words <= MAX_WORDS; words *= 2)
	{
		Pages pages = make_pages(words, &state);

		for (size_t k = 0; k < sketch_kernel_count; k++)
		{
			double distance;
			double rank;

			if (!sketch_kernels[k]->supported() || !hamming_kernels[k]->supported())
				continue;
			measure(hamming_kernels[k], sketch_kernels[k], &pages, &state, &distance, &rank);
			printf("| %-8s | %4zu | %11.3f | %12.3f | %5.2f |\n", sketch_kernels[k]->name,
				   words * 64, distance, rank, rank / distance);
		}
		/* the last pages stay until the end: the program ends soon */
	}
	return 0;
}

/*
 * test_sketch_kernels.c
 *		Every kernel that ranks sketches and that this machine can run, against the definition,
 *		bit by bit.
 *
 * Each input is a block of exactly its size, so that a sanitizer sees any read beyond.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/code/sketch_kernels.h"
#include "tap.h"

#define MAX_COLUMNS 250

static uint64_t state = 20180416;

/* size random bytes that start skew bytes into a block of their own */
static uint8_t *
random_block(size_t size, size_t skew, uint8_t **block)
{
	*block = malloc(size + skew > 0 ? size + skew : 1);
	for (size_t i = 0; i < size + skew; i++)
		(*block)[i] = (uint8_t) next_random(&state);
	return *block + skew;
}

/* A query's planes, the same as tables, and factors with which ranks are of all kinds. */
typedef struct Query
{
	uint64_t	planes[MAX_COLUMNS * SKETCH_PLANES];
	uint8_t		tables[MAX_COLUMNS * SKETCH_TABLE];
	SketchScore score;
} Query;

/* How often a bit counts if it differs from the planes'. */
static unsigned
weight_of(const Query *query, size_t column, int bit, unsigned value)
{
	unsigned weight = 0;

	for (int t = 0; t < SKETCH_PLANES; t++)
		weight += ((query->planes[column * SKETCH_PLANES + (size_t) t] >> bit & 1) != value) << t;
	return weight;
}

/* With random planes, or those that differ from words of zeros as much as any can. */
static void
make_query(Query *query, size_t ncolumns, bool farthest)
{
	const float scale = 16383.0F * 16383.0F / (float) (ncolumns * 64);

	for (size_t i = 0; i < ncolumns * SKETCH_PLANES; i++)
		query->planes[i] = farthest ? UINT64_MAX : next_random(&state);
	for (size_t column = 0; column < ncolumns; column++)
	{
		for (int half = 0; half < 16; half++)
		{
			for (unsigned entry = 0; entry < 16; entry++)
			{
				unsigned sum = 0;

				for (int bit = 0; bit < 4; bit++)
					sum += weight_of(query, column, half / 2 * 8 + half % 2 * 4 + bit,
									 entry >> bit & 1);
				query->tables[column * SKETCH_TABLE + (size_t) (half % 2 * 128 + half / 2 * 16) +
							  entry] = (uint8_t) sum;
			}
		}
	}
	query->score =
		(SketchScore) {.planes = query->planes,
					   .tables = query->tables,
					   .start = 1e4F * ((float) (next_random(&state) % 4000) - 2000.0F),
					   .n_factor = 1e5F * (float) (next_random(&state) % 4000),
					   .f_start = scale * 30.0F * (float) ncolumns,
					   .f_factor = scale / 7.0F,
					   .e_factor = 1e5F * ((float) (next_random(&state) % 4000) - 500.0F)};
	/* what a forged model can come to: then of no row it is known that it is not near */
	if (next_random(&state) % 16 == 0)
		query->score.start = NAN;
}

/* The rank by its definition: f and e from their parts, and each product rounded only once. */
static uint32_t
rank_by_definition(const Query *query, const uint8_t *const *columns, size_t ncolumns, size_t i,
				   uint32_t number)
{
	const SketchScore *score = &query->score;
	const float n = ldexpf(1.0F + (float) (number >> 19 & 255) / 256.0F, (int) (number >> 27) - 31);
	const float f =
		ldexpf(1.0F + (float) (number >> 8 & 127) / 128.0F, (int) (number >> 15 & 15) - 15);
	const float e = ldexpf(1.0F + (float) (number & 15) / 16.0F, (int) (number >> 4 & 15) - 15);
	uint32_t	sum = 0;
	float		rank;

	for (size_t column = 0; column < ncolumns; column++)
	{
		uint32_t part = 0;
		uint64_t word;

		memcpy(&word, columns[column] + 8 * i, 8);
		for (int bit = 0; bit < 64; bit++)
			part += weight_of(query, column, bit, word >> bit & 1);
		sum += part;
	}
	rank = fmaf(score->n_factor, n, score->start);
	rank = fmaf(-f, fmaf(-score->f_factor, (float) sum, score->f_start), rank);
	rank = fmaf(-score->e_factor, e, rank);
	if (number == 0 || !(rank >= 1.0F))
		return 0;
	rank = sqrtf(rank);
	return rank >= SKETCH_RANKS ? SKETCH_RANKS : (uint32_t) floorf(rank);
}

/*
 * The kernel on random sketches, or on words whose sums are as large as any; adds up how many are
 * of interest and how many of these above 0.
 */
static bool
within_agrees(const SketchKernel *kernel, size_t ncolumns, size_t count, size_t skew,
			  uint32_t radius, bool farthest, size_t *near, size_t *above)
{
	SketchColumns  sketches;
	Query		  *query = malloc(sizeof(Query));
	const uint8_t *columns[MAX_COLUMNS];
	uint8_t		  *blocks[MAX_COLUMNS];
	uint8_t		  *block;
	uint8_t		  *numbers = random_block(count * 4, skew % 4, &block);
	HammingMatch  *matches = malloc((count + MATCH_ROOM) * sizeof(HammingMatch));
	size_t		   expected = 0;
	size_t		   found;
	bool		   agrees = true;

	make_query(query, ncolumns, farthest);
	for (size_t c = 0; c < ncolumns; c++)
	{
		columns[c] = random_block(count * 8, (skew + c) % 8, &blocks[c]);
		if (farthest)
			memset(blocks[c], 0, count * 8 + (skew + c) % 8);
	}
	for (size_t i = 0; i < count; i++)
	{
		/* rows that nothing is known of, and others with ordinary f and e */
		uint32_t number = (uint32_t) next_random(&state);

		if (number % 16 == 0)
			number = SKETCH_UNKNOWN;
		else if (number % 16 < 12)
			number = (number & UINT32_C(0x07f87f0f)) | UINT32_C(30) << 27 | 12 << 15 | 12 << 4;
		memcpy(numbers + 4 * i, &number, 4);
	}
	sketches = (SketchColumns) {.columns = columns,
								.ncolumns = ncolumns,
								.numbers = numbers,
								.count = count,
								.score = &query->score,
								.radius = radius,
								.upcoming = {.next = (ptrdiff_t) (next_random(&state) % 65536),
											 .later = -(ptrdiff_t) (next_random(&state) % 65536)},
								.payload = (const uint8_t *) query,
								.payload_bytes = next_random(&state) % 8};
	found = kernel->within(&sketches, matches);
	for (size_t i = 0; i < count; i++)
	{
		uint32_t number;
		uint32_t rank;

		memcpy(&number, numbers + 4 * i, 4);
		rank = rank_by_definition(query, columns, ncolumns, i, number);
		if (rank <= radius)
		{
			agrees &= expected < found && matches[expected].position == i &&
					  matches[expected].distance == rank;
			expected++;
			*above += rank > 0 && rank < SKETCH_RANKS;
		}
	}
	agrees &= found == expected;
	*near += expected;
	free(matches);
	free(query);
	free(block);
	for (size_t c = 0; c < ncolumns; c++)
		free(blocks[c]);
	return agrees;
}

/* The disagreement of random codes and planes, bit by bit. */
static int
wrong_disagreements(const SketchKernel *kernel, size_t words)
{
	int wrong = 0;

	for (int i = 0; i < 20; i++)
	{
		uint8_t	 *blocks[2];
		uint64_t *code = (uint64_t *) random_block(8 * SKETCH_LEVELS * words, 0, &blocks[0]);
		uint64_t *planes = (uint64_t *) random_block(8 * SKETCH_FINE_PLANES * words, 0, &blocks[1]);
		uint32_t  expected = 0;

		for (size_t bit = 0; bit < 64 * words; bit++)
		{
			for (size_t level = 0; level < SKETCH_LEVELS; level++)
			{
				const uint64_t own = code[level * words + bit / 64] >> bit % 64 & 1;

				for (size_t t = 0; t < SKETCH_FINE_PLANES; t++)
				{
					const uint64_t weight = planes[bit / 64 * SKETCH_FINE_PLANES + t];

					if ((weight >> bit % 64 & 1) != own)
						expected += 1U << (SKETCH_LEVELS - 1 - level + t);
				}
			}
		}
		wrong += kernel->disagreement(code, words, planes) != expected;
		free(blocks[0]);
		free(blocks[1]);
	}
	return wrong;
}

static void
test_disagreement(const SketchKernel *kernel)
{
	int wrong = 0;

	for (size_t words = 1; words <= 17; words++)
		wrong += wrong_disagreements(kernel, words);
	wrong += wrong_disagreements(kernel, MAX_COLUMNS);
	ok(wrong == 0, "%s: what codes and planes disagree in", kernel->name);
}

static void
test_within(const SketchKernel *kernel)
{
	static const uint32_t radii[] = {
		0, 1, 100, 1000, 4000, 8000, 12000, 16382, 16383, SKETCH_RANKS + 1, UINT32_MAX};
	const size_t nradii = sizeof(radii) / sizeof(radii[0]);
	size_t		 near = 0;
	size_t		 above = 0;
	int			 wrong = 0;

	for (size_t count = 0; count <= 100; count++)
		for (size_t r = 0; r < nradii; r++)
			wrong +=
				!within_agrees(kernel, 1, count, (count + r) % 8, radii[r], false, &near, &above);
	ok(wrong == 0, "%s: sketches of a word, 0 to 100 of them", kernel->name);

	for (size_t ncolumns = 2; ncolumns <= 40; ncolumns++)
		for (size_t count = ncolumns % 7; count <= 100; count += 7)
			for (size_t r = 0; r < nradii; r++)
				wrong += !within_agrees(kernel, ncolumns, count, count + r, radii[r], false, &near,
										&above);
	ok(wrong == 0, "%s: sketches of 2 to 40 words", kernel->name);

	for (size_t r = 0; r < nradii; r++)
		wrong += !within_agrees(kernel, MAX_COLUMNS, 37, r, radii[r], false, &near, &above);
	ok(wrong == 0, "%s: sketches of %d words", kernel->name, MAX_COLUMNS);

	/* sums over so many words may be kept in 16 bits, and those over more may not */
	for (size_t ncolumns = 63; ncolumns <= MAX_COLUMNS; ncolumns += ncolumns < 70 ? 1 : 20)
	{
		for (size_t r = 0; r < nradii; r++)
		{
			wrong += !within_agrees(kernel, ncolumns, 37, r, radii[r], false, &near, &above);
			wrong += !within_agrees(kernel, ncolumns, 37, r, radii[r], true, &near, &above);
		}
	}
	ok(wrong == 0, "%s: sums of 63 words and more, and the largest", kernel->name);

	wrong += !within_agrees(kernel, 1, 65536, 0, 100, false, &near, &above);
	wrong += !within_agrees(kernel, 2, 65536, 5, 5000, false, &near, &above);
	wrong += !within_agrees(kernel, 1, 65536, 3, UINT32_MAX, false, &near, &above);
	ok(wrong == 0, "%s: 65536 sketches", kernel->name);
	ok(above > near / 8, "%s: %zu of %zu ranks are neither the first nor the last", kernel->name,
	   above, near);
}

int
main(void)
{
	ok(sketch_kernels[0] == &sketch_kernel_portable, "the portable kernel comes first");
	ok(sketch_kernel_best()->supported(), "the best kernel, %s, is supported",
	   sketch_kernel_best()->name);
	ok(sketch_kernel_named(sketch_kernel_best()->name) == sketch_kernel_best(),
	   "a kernel is found by its name");
	ok(sketch_kernel_named("none") == &sketch_kernel_portable,
	   "an unknown name is the portable kernel");
	for (size_t i = 0; i < sketch_kernel_count; i++)
	{
		const SketchKernel *kernel = sketch_kernels[i];

		if (!kernel->supported())
		{
			ok(true, "%s # SKIP not supported by this machine", kernel->name);
			continue;
		}
		test_within(kernel);
		test_disagreement(kernel);
	}
	return done_testing();
}

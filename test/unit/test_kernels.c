/*
 * test_kernels.c
 *		Every distance kernel that this machine can run, against counting bit by bit.
 *
 * Each input is a block of exactly its size, so that a sanitizer sees any read beyond.
 */
#include <stdlib.h>
#include <string.h>

#include "../../src/code/kernels.h"
#include "tap.h"

#define MAX_BYTES 8000
#define MAX_COLUMNS 1000

static uint64_t state = 20180415;

/* size random bytes that start skew bytes into a block of their own */
static uint8_t *
random_block(size_t size, size_t skew, uint8_t **block)
{
	*block = malloc(size + skew > 0 ? size + skew : 1);
	for (size_t i = 0; i < size + skew; i++)
		(*block)[i] = (uint8_t) next_random(&state);
	return *block + skew;
}

static uint32_t
count_differing_bits(const uint8_t *a, const uint8_t *b, size_t nbytes)
{
	uint32_t count = 0;

	for (size_t bit = 0; bit < nbytes * 8; bit++)
		count += ((a[bit / 8] ^ b[bit / 8]) >> (bit % 8)) & 1;
	return count;
}

/* One distance at one length and alignment, and the same after changing one bit. */
static bool
distance_agrees(const HammingKernel *kernel, size_t nbytes, size_t skew_a, size_t skew_b)
{
	uint8_t *block_a;
	uint8_t *block_b;
	uint8_t *a = random_block(nbytes, skew_a, &block_a);
	uint8_t *b = random_block(nbytes, skew_b, &block_b);
	bool	 agrees = kernel->distance(a, b, nbytes) == count_differing_bits(a, b, nbytes);

	memcpy(b, a, nbytes);
	agrees &= kernel->distance(a, b, nbytes) == 0;
	if (nbytes > 0)
	{
		b[next_random(&state) % nbytes] ^= (uint8_t) (1 << next_random(&state) % 8);
		agrees &= kernel->distance(a, b, nbytes) == 1;
		for (size_t i = 0; i < nbytes; i++)
			b[i] = (uint8_t) ~a[i];
		agrees &= kernel->distance(a, b, nbytes) == nbytes * 8;
	}
	free(block_a);
	free(block_b);
	return agrees;
}

static void
test_distance(const HammingKernel *kernel)
{
	int wrong = 0;

	for (size_t nbytes = 0; nbytes <= 600; nbytes++)
		for (size_t skew = 0; skew < 8; skew++)
			wrong += !distance_agrees(kernel, nbytes, skew, (skew * 3 + nbytes) % 8);
	ok(wrong == 0, "%s: distance of 0 to 600 bytes at every alignment", kernel->name);

	wrong = 0;
	for (size_t skew = 0; skew < 64; skew++)
		wrong += !distance_agrees(kernel, MAX_BYTES, skew, 63 - skew);
	ok(wrong == 0, "%s: distance of %d bytes", kernel->name, MAX_BYTES);
}

/* The streaming kernel, on codes of which some are near the query. */
static bool
within_agrees(const HammingKernel *kernel, size_t ncolumns, size_t count, size_t skew,
			  uint32_t radius)
{
	HammingColumns codes;
	uint64_t	   query[MAX_COLUMNS];
	const uint8_t *columns[MAX_COLUMNS];
	uint8_t		  *words[MAX_COLUMNS];
	uint8_t		  *blocks[MAX_COLUMNS];
	HammingMatch  *matches = malloc((count + MATCH_ROOM) * sizeof(HammingMatch));
	size_t		   expected = 0;
	size_t		   found;
	bool		   agrees = true;

	for (size_t c = 0; c < ncolumns; c++)
	{
		query[c] = next_random(&state);
		columns[c] = words[c] = random_block(count * 8, (skew + c) % 8, &blocks[c]);
	}
	for (size_t i = 0; i < count; i++)
	{
		/* the query with at most two bits changed, in some words or in all */
		const uint64_t near = next_random(&state) % 4 == 0 ? next_random(&state) : 0;

		for (size_t c = 0; c < ncolumns; c++)
		{
			const uint64_t changed = query[c] ^ (UINT64_C(1) << next_random(&state) % 64) ^
									 (UINT64_C(1) << next_random(&state) % 64);

			if (near % 2 == 1 || (near >> (c % 64)) % 2 == 1)
				memcpy(words[c] + 8 * i, &changed, 8);
		}
	}
	/* whatever is read first, and prefetched: the answer is the same */
	codes = (HammingColumns) {.columns = columns,
							  .ncolumns = ncolumns,
							  .count = count,
							  .query = query,
							  .radius = radius,
							  .first = 1 + next_random(&state) % ncolumns,
							  .upcoming = {.next = (ptrdiff_t) (next_random(&state) % 65536),
										   .later = -(ptrdiff_t) (next_random(&state) % 65536)},
							  .payload = (const uint8_t *) query,
							  .payload_bytes = next_random(&state) % 8};
	found = kernel->within(&codes, matches);
	for (size_t i = 0; i < count; i++)
	{
		uint32_t distance = 0;

		for (size_t c = 0; c < ncolumns; c++)
			distance += count_differing_bits(columns[c] + 8 * i, (const uint8_t *) &query[c], 8);
		if (distance <= radius)
		{
			agrees &= expected < found && matches[expected].position == i &&
					  matches[expected].distance == distance;
			expected++;
		}
	}
	agrees &= found == expected;
	free(matches);
	for (size_t c = 0; c < ncolumns; c++)
		free(blocks[c]);
	return agrees;
}

static void
test_within(const HammingKernel *kernel)
{
	int wrong = 0;

	for (size_t count = 0; count <= 100; count++)
		for (uint32_t radius = 0; radius <= 65; radius++)
			wrong += !within_agrees(kernel, 1, count, (count + radius) % 8, radius);
	ok(wrong == 0, "%s: words within radii 0 to 65, 0 to 100 words", kernel->name);

	wrong = 0;
	for (size_t ncolumns = 2; ncolumns <= 9; ncolumns++)
		for (size_t count = 0; count <= 70; count += 5)
			for (uint32_t radius = 0; radius <= ncolumns * 64 + 1; radius += 3)
				wrong += !within_agrees(kernel, ncolumns, count, (count + radius) % 8, radius);
	ok(wrong == 0, "%s: codes of 2 to 9 words within all radii", kernel->name);

	wrong = 0;
	for (uint32_t radius = 0; radius <= 64001; radius += 1000)
		wrong += !within_agrees(kernel, MAX_COLUMNS, 17, 0, radius);
	ok(wrong == 0, "%s: codes of %d words", kernel->name, MAX_COLUMNS);

	wrong = 0;
	wrong += !within_agrees(kernel, 1, 65536, 0, 1);
	wrong += !within_agrees(kernel, 1, 65536, 1, 30);
	wrong += !within_agrees(kernel, 1, 65536, 3, UINT32_MAX);
	wrong += !within_agrees(kernel, 2, 65536, 5, 50);
	ok(wrong == 0, "%s: words within a radius, 65536 words", kernel->name);
}

int
main(void)
{
	ok(hamming_kernels[0] == &hamming_kernel_portable, "the portable kernel comes first");
	ok(hamming_kernel_best()->supported(), "the best kernel, %s, is supported",
	   hamming_kernel_best()->name);
	for (size_t i = 0; i < hamming_kernel_count; i++)
	{
		const HammingKernel *kernel = hamming_kernels[i];

		if (!kernel->supported())
		{
			ok(true, "%s # SKIP not supported by this machine", kernel->name);
			continue;
		}
		test_distance(kernel);
		test_within(kernel);
	}
	return done_testing();
}

/*
 * kernel_neon.c
 *		Distance kernel for 64-bit ARM: NEON, 128 bits at a time.
 *
 * NEON is part of the architecture's baseline: there is nothing to ask the CPU.
 */
#include "kernel_columns.h"

#if defined(__aarch64__)

#include <arm_neon.h>

/* The population counts of the two 64-bit words of v. */
static inline uint64x2_t
popcounts(uint8x16_t v)
{
	return vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vcntq_u8(v))));
}

static inline uint8x16_t
load(const uint8_t *from)
{
	return vld1q_u8(from);
}

static uint32_t
popcount(uint64_t word)
{
	return vaddv_u8(vcnt_u8(vcreate_u8(word)));
}

static uint32_t
distance(const uint8_t *a, const uint8_t *b, size_t nbytes)
{
	uint64x2_t sums = vdupq_n_u64(0);
	uint32_t   sum;

	for (; nbytes >= 16; a += 16, b += 16, nbytes -= 16)
		sums = vaddq_u64(sums, popcounts(veorq_u8(load(a), load(b))));
	sum = (uint32_t) vaddvq_u64(sums);
	for (; nbytes >= 8; a += 8, b += 8, nbytes -= 8)
		sum += popcount(load_word(a, 8) ^ load_word(b, 8));
	return sum + popcount(load_word(a, nbytes) ^ load_word(b, nbytes));
}

/* The distances of eight codes' words in one column, a byte each. */
static inline uint8x8_t
distances(const uint8_t *group, uint64_t query)
{
	const uint8x16_t queries = vreinterpretq_u8_u64(vdupq_n_u64(query));
	/* pairwise additions of byte counts leave each word's sum in two bytes, then one */
	const uint8x16_t first = vpaddq_u8(vcntq_u8(veorq_u8(queries, load(group))),
									   vcntq_u8(veorq_u8(queries, load(group + 16))));
	const uint8x16_t second = vpaddq_u8(vcntq_u8(veorq_u8(queries, load(group + 32))),
										vcntq_u8(veorq_u8(queries, load(group + 48))));
	const uint8x16_t halves = vpaddq_u8(first, second);

	return vget_low_u8(vpaddq_u8(halves, halves));
}

/*
 * Eight codes a turn: only their least distance is compared with the radius, because in a
 * search nearly all groups hold no match.
 */
static size_t
within(const HammingColumns *codes, HammingMatch *matches)
{
	size_t nmatches = 0;
	size_t i = 0;

	for (; i + 8 <= codes->count; i += 8)
	{
		uint16x8_t sums = vmovl_u8(distances(codes->columns[0] + 8 * i, codes->query[0]));
		size_t	   column = 1;

		prefetch_same_lines(codes, i);
		for (; column < codes->ncolumns; column++)
		{
			if (column >= codes->first && vminvq_u16(sums) > codes->radius)
				break;
			sums = vaddw_u8(sums, distances(codes->columns[column] + 8 * i, codes->query[column]));
		}
		if (column == codes->ncolumns && vminvq_u16(sums) <= codes->radius)
		{
			prefetch_match(codes, i);
			nmatches = append_matches(codes, i, i + 8, matches, nmatches);
		}
	}
	return append_matches(codes, i, codes->count, matches, nmatches);
}

static bool
supported(void)
{
	return true;
}

const HammingKernel hamming_kernel_neon = {
	.name = "neon",
	.supported = supported,
	.distance = distance,
	.within = within,
};

#endif /* __aarch64__ */

/*
 * join_plan.c
 *		The choice of the parts by which near pairs are found.
 *
 * Few wide parts with a radius have fewer pairs that agree by chance than many narrow ones without,
 * but each group is compared with more others.  The bits of codes are not random, either: a sample of
 * pairs tells how many agree in each part.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "../code/kernels.h"
#include "../compat.h"
#include "join_plan.h"

/* Costs, in comparisons of a word as a kernel does them. */
#define COST_GROUPING 50.0 /* an entry by a part; as much as ten more of its words */
#define COST_WORD 5.0
#define COST_LOOK_UP 10.0 /* a group beside another */
#define COST_CALL 50.0	  /* of a kernel, for an entry and a group */

/* A pair of so many entries is sampled, and at most this many in all. */
#define SAMPLE_SHARE 8
#define MOST_SAMPLED 20000

typedef struct Candidate
{
	JoinPlan plan;
	int		*agreeing; /* sampled pairs that agree in each part */
	bool	 possible;
} Candidate;

/* What a join is about. */
typedef struct Situation
{
	const CodeBlock *a;
	const CodeBlock *b;
	int				 nbits;
	uint32			 radius;
	double			 pairs;
	double			 words; /* read to compare a pair */
} Situation;

int
join_widest_part(uint32 entries)
{
	return Min(pg_leftmost_one_pos32(Max(entries, 1)) + 1, PART_MOST_BITS);
}

/* How many numbers of so many bits are within a radius of one. */
static double
ball_size(int bits, int radius)
{
	double size = 1.0;
	double layer = 1.0;

	for (int i = 1; i <= radius; i++)
	{
		layer *= (double) (bits - i + 1) / i;
		size += layer;
	}
	return size;
}

/* So many parts, all as wide as they can be, whose radii suffice. */
static JoinPlan
make_parts(const Situation *situation, int nparts)
{
	const int nbits = 8 * BITHASH_BYTES(situation->nbits);
	const int widest = join_widest_part(Max(situation->a->count, situation->b->count));
	JoinPlan  plan = {.nparts = nparts, .parts = palloc(sizeof(JoinPart) * nparts)};
	int		  first = 0;

	for (int i = 0; i < nparts; i++)
	{
		const int bits = nbits / nparts + (i < nbits % nparts);

		plan.parts[i].first = first;
		plan.parts[i].bits = Min(bits, widest);
		plan.parts[i].radius = ((int) situation->radius + 1 - i + nparts - 1) / nparts - 1;
		first += bits;
	}
	return plan;
}

static JoinPlan
compare_all(void)
{
	JoinPlan plan = {.nparts = 1, .parts = palloc0(sizeof(JoinPart))};

	return plan;
}

/* The cost of one part, if that share of all pairs agrees in it. */
static double
part_cost(const Situation *situation, const JoinPart *part, double share)
{
	const double entries = situation->a == situation->b
							   ? situation->a->count
							   : (double) situation->a->count + situation->b->count;
	const double groups = (double) (1U << part->bits);
	const double neighbours = ball_size(part->bits, part->radius);
	const double filled = Min(groups, situation->a->count);
	/* of the groups that an entry is compared with, those that are not empty */
	const double calls =
		situation->a->count * neighbours * Min((double) situation->b->count / groups, 1.0);

	return entries * (COST_GROUPING + COST_WORD * situation->a->words) +
		   filled * neighbours * COST_LOOK_UP + calls * COST_CALL +
		   situation->pairs * share * situation->words;
}

/* The share of all pairs that agrees in a part: as sampled, but no less than by chance. */
static double
part_share(const JoinPart *part, int agreeing, int sampled)
{
	const double chance = ball_size(part->bits, part->radius) / (double) (1U << part->bits);

	return sampled == 0 ? chance : Max(chance, (double) agreeing / sampled);
}

static double
plan_cost(const Situation *situation, const Candidate *candidate, int sampled)
{
	double cost = 0.0;

	for (int i = 0; i < candidate->plan.nparts; i++)
	{
		const JoinPart *part = &candidate->plan.parts[i];

		cost += part_cost(situation, part, part_share(part, candidate->agreeing[i], sampled));
	}
	return cost;
}

/* The parts with radii up to the given one that are the widest, if that may pay. */
static Candidate
make_candidate(const Situation *situation, int part_radius, double all)
{
	const int nparts = (int) situation->radius / (part_radius + 1) + 1;
	Candidate candidate = {.possible = false};

	if (8 * BITHASH_BYTES(situation->nbits) / nparts <= 2 * part_radius)
		return candidate;
	candidate.plan = make_parts(situation, nparts);
	candidate.agreeing = palloc0(sizeof(int) * nparts);
	candidate.possible = plan_cost(situation, &candidate, 0) < all;
	return candidate;
}

/* Counts for each candidate in which of its parts some pairs agree; returns how many pairs. */
static int
sample_pairs(const Situation *situation, Candidate *candidates, int ncandidates)
{
	const CodeBlock *a = situation->a;
	const CodeBlock *b = situation->b;
	const int		 pairs = Min((a->count + b->count) / SAMPLE_SHARE, MOST_SAMPLED);
	uint64			 state = 1;
	int				 sampled = 0;

	for (int pair = 0; pair < pairs; pair++)
	{
		uint32 i;
		uint32 j;

		/* Knuth's linear congruential generator, whose high bits are good enough */
		state = state * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
		i = (uint32) ((state >> 32) * a->count >> 32);
		state = state * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
		j = (uint32) ((state >> 32) * b->count >> 32);
		if (a == b && i == j)
			continue;
		sampled++;
		for (int c = 0; c < ncandidates; c++)
		{
			const JoinPlan *plan = &candidates[c].plan;

			for (int p = 0; candidates[c].possible && p < plan->nparts; p++)
				candidates[c].agreeing[p] +=
					join_part_agrees(&plan->parts[p], code_block_code(a, i), code_block_code(b, j));
		}
	}
	return sampled;
}

JoinPlan
join_plan(const CodeBlock *a, const CodeBlock *b, int nbits, uint32 radius)
{
	const Situation situation = {
		.a = a,
		.b = b,
		.nbits = nbits,
		.radius = radius,
		.pairs = (double) a->count * b->count * (a == b ? 0.5 : 1.0),
		.words = (double) hamming_first_columns(radius, a->words),
	};
	Candidate candidates[PART_MOST_RADIUS + 1];
	JoinPlan  best = compare_all();
	double	  least = part_cost(&situation, &best.parts[0], 1.0);
	int		  sampled;

	for (int i = 0; i <= PART_MOST_RADIUS; i++)
		candidates[i] = make_candidate(&situation, i, least);
	sampled = sample_pairs(&situation, candidates, lengthof(candidates));
	for (int i = 0; i <= PART_MOST_RADIUS; i++)
	{
		const double cost =
			candidates[i].possible ? plan_cost(&situation, &candidates[i], sampled) : least;

		if (cost < least)
		{
			least = cost;
			best = candidates[i].plan;
		}
	}
	return best;
}

/*
 * hamming_join.c
 *		All pairs of near codes: every block of entries with every other.
 *
 * For each part of the plan (join_plan.h) both blocks are grouped by the part's value, and groups
 * whose values are near are compared.  A pair may be near in several parts; it is taken in the
 * first of them, so that nobody has to remember pairs.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../code/distance.h"
#include "../compat.h"
#include "code_groups.h"
#include "hamming_join.h"

/* bytes of codes that are compared with others while the CPU's first cache holds them */
#define TILE_BYTES 16384
#define MOST_IN_TILE 1024

/* blocks have at least so many entries, however long the codes are */
#define MIN_CAPACITY 64

/* words that are compared before looking at the clock */
#define WORDS_UNTIL_CLOCK 100000000

typedef struct CodeJoin
{
	const char		*name;
	CodeStore		*stores[2];
	uint32			 radius;
	HammingPairTaker take;
	void			*state;

	int			  nbits;
	int			  words;
	uint32		  tile;
	CodeBlock	 *blocks[2]; /* may be the same */
	CodeBlock	  other;	 /* room for another block of the same store */
	CodeGroups	  groups[2]; /* of these; the second is not used then */
	JoinPlan	  plan;
	int			  part;	   /* of the plan, the one that is done now */
	const uint8 **columns; /* of a tile */
	HammingMatch *matches;
	uint32		 *masks; /* how values of a part may differ */
	MemoryContext context;

	/* progress */
	int64		nblock_pairs;
	int64		done_block_pairs;
	int64		pairs;
	int64		compared; /* words, since the clock was looked at */
	TimestampTz reported;
} CodeJoin;

int
hamming_join_code_length(const HammingRows *a, const HammingRows *b)
{
	const int first = (int) flat_read_meta(a->index).nbits;
	const int second = (int) flat_read_meta(b->index).nbits;

	if (first == 0 || second == 0)
		return 0;
	hamming_check_lengths(first, second);
	return first;
}

uint32
hamming_join_radius(int32 radius, int nbits)
{
	if (radius < 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("radius must not be negative"));
	return (uint32) Min(radius, nbits);
}

uint32
hamming_join_capacity(int nbits)
{
	const Size bytes = code_groups_entry_bytes(flat_layout(FLAT_CODES, nbits).words);
	const Size entries = get_hash_memory_limit() / (2 * bytes);

	return (uint32) Min(Max(entries, MIN_CAPACITY), 1U << 30);
}

/* Tells how far it is, if it lasts: by the entries of the first block that a part has done. */
static void
report_progress(CodeJoin *join, double entries)
{
	double share;

	join->compared = 0;
	if (!hamming_notice_is_due(&join->reported))
		return;
	share = (join->part + entries / join->blocks[0]->count) / join->plan.nparts;
	share = (join->done_block_pairs + share) / join->nblock_pairs;
	ereport(NOTICE, errmsg("%s: %.1f %% compared, " INT64_FORMAT " pairs found", join->name,
						   100.0 * share, join->pairs));
}

/* Was the pair near in an earlier part, in which it was taken? */
static bool
taken_before(const CodeJoin *join, const uint64 *a, const uint64 *b)
{
	for (int part = 0; part < join->part; part++)
	{
		if (join_part_agrees(&join->plan.parts[part], a, b))
			return true;
	}
	return false;
}

static void
take_pair(CodeJoin *join, uint32 i, uint32 j, uint32 distance)
{
	CodeBlock *a = join->blocks[0];
	CodeBlock *b = join->blocks[1];

	if (taken_before(join, code_block_code(a, i), code_block_code(b, j)) ||
		!code_block_visible(a, i, join->stores[0]->source) ||
		!code_block_visible(b, j, join->stores[1]->source))
		return;
	join->pairs++;
	join->take(join->state, (JoinRow) {a->first + i, code_block_tid(a, i)},
			   (JoinRow) {b->first + j, code_block_tid(b, j)}, distance);
}

/*
 * Compares entries from..end of the first block's groups with those of a tile; if both are of the
 * same group, only with those that follow.
 */
static void
compare_with_tile(CodeJoin *join, uint32 from, uint32 end, const CodeGroups *groups, uint32 tile,
				  uint32 tile_end, bool same)
{
	HammingColumns codes = {
		.columns = join->columns,
		.ncolumns = join->words,
		.count = tile_end - tile,
		.radius = join->radius,
		.first = hamming_first_columns(join->radius, join->words),
		.payload = (const uint8 *) (groups->order + tile),
		.payload_bytes = sizeof(uint32),
	};

	for (int column = 0; column < join->words; column++)
		join->columns[column] = groups->columns[column] + (Size) tile * 8;
	for (uint32 i = from; i < end; i++)
	{
		const uint32 entry = join->groups[0].order[i];
		size_t		 nmatches;

		CHECK_FOR_INTERRUPTS();
		codes.query = code_block_code(join->blocks[0], entry);
		nmatches = hamming_kernel->within(&codes, join->matches);
		for (size_t k = 0; k < nmatches; k++)
		{
			const uint32 place = tile + join->matches[k].position;

			if (!same || place > i)
				take_pair(join, entry, groups->order[place], join->matches[k].distance);
		}
	}
}

/* Compares one group of each block; of the same group each pair once. */
static void
compare_groups(CodeJoin *join, uint32 group, uint32 other)
{
	const CodeGroups *a = &join->groups[0];
	const CodeGroups *b = join->blocks[0] == join->blocks[1] ? a : &join->groups[1];
	const bool		  same = a == b && group == other;
	const uint32	  start = a->starts[group];
	const uint32	  end = a->starts[group + 1];
	const uint32	  first_tile = b->starts[other];
	const uint32	  last = b->starts[other + 1];
	uint32			  tile_end;

	for (uint32 tile = first_tile; tile < last; tile = tile_end)
	{
		tile_end = tile + Min(join->tile, last - tile);
		compare_with_tile(join, start, same ? tile_end - 1 : end, b, tile, tile_end, same);
		join->compared += (int64) (end - start) * (tile_end - tile) * join->words;
		if (join->compared >= WORDS_UNTIL_CLOCK)
			report_progress(join, start + (double) (end - start) * (tile_end - first_tile) /
											  (last - first_tile));
	}
}

/* All numbers of so many bits of which at most radius are set: how values within it differ. */
static int
make_masks(uint32 *masks, int bits, int radius)
{
	int count = 0;
	int from = 0;

	masks[count++] = 0;
	for (int ones = 1; ones <= radius; ones++)
	{
		const int end = count;

		for (; from < end; from++)
		{
			for (int bit = masks[from] == 0 ? 0 : pg_leftmost_one_pos32(masks[from]) + 1;
				 bit < bits; bit++)
				masks[count++] = masks[from] | 1U << bit;
		}
	}
	return count;
}

/* Compares the groups of the blocks that are near in the part at hand. */
static void
compare_near_groups(CodeJoin *join)
{
	const JoinPart *part = &join->plan.parts[join->part];
	const bool		same = join->blocks[0] == join->blocks[1];
	const uint32   *starts = join->groups[0].starts;
	const uint32   *others = same ? starts : join->groups[1].starts;
	const int		nmasks = make_masks(join->masks, part->bits, part->radius);

	for (uint32 group = 0; group < 1U << part->bits; group++)
	{
		if (starts[group] == starts[group + 1])
			continue;
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < nmasks; i++)
		{
			const uint32 other = group ^ join->masks[i];

			if (others[other] < others[other + 1] && (!same || other >= group))
				compare_groups(join, group, other);
		}
	}
}

static void
join_blocks(CodeJoin *join, CodeBlock *a, CodeBlock *b)
{
	MemoryContext caller;

	if (a->count == 0 || b->count == 0)
		return;
	join->blocks[0] = a;
	join->blocks[1] = b;
	MemoryContextReset(join->context);
	caller = MemoryContextSwitchTo(join->context);
	join->plan = join_plan(a, b, join->nbits, join->radius);
	MemoryContextSwitchTo(caller);
	for (join->part = 0; join->part < join->plan.nparts; join->part++)
	{
		code_groups_make(&join->groups[0], a, &join->plan.parts[join->part]);
		if (a != b)
			code_groups_make(&join->groups[1], b, &join->plan.parts[join->part]);
		compare_near_groups(join);
	}
	join->done_block_pairs++;
}

/* Each pair of blocks of one store once, and each block with itself. */
static void
join_self(CodeJoin *join, CodeStore *store)
{
	const int n = store->nblocks;

	join->nblock_pairs = (int64) n * (n + 1) / 2;
	if (n > 1)
		code_block_init(&join->other, join->words, store->capacity);
	for (int i = 0; i < n; i++)
	{
		code_store_load(store, i, &store->block);
		join_blocks(join, &store->block, &store->block);
		for (int k = i + 1; k < n; k++)
		{
			code_store_load(store, k, &join->other);
			join_blocks(join, &store->block, &join->other);
		}
	}
}

static void
join_stores(CodeJoin *join, CodeStore *a, CodeStore *b)
{
	join->nblock_pairs = (int64) a->nblocks * b->nblocks;
	for (int i = 0; i < a->nblocks; i++)
	{
		code_store_load(a, i, &a->block);
		for (int k = 0; k < b->nblocks; k++)
		{
			code_store_load(b, k, &b->block);
			join_blocks(join, &a->block, &b->block);
		}
	}
}

static int
most_masks(void)
{
	const int n = PART_MOST_BITS;

	StaticAssertStmt(PART_MOST_RADIUS == 3, "these are the masks of up to three bits");
	return 1 + n + n * (n - 1) / 2 + n * (n - 1) * (n - 2) / 6;
}

void
hamming_join(const char *name, CodeStore *a, CodeStore *b, uint32 radius, HammingPairTaker take,
			 void *state)
{
	const uint32 room = Max(Min(a->block.room, a->capacity), Min(b->block.room, b->capacity));
	CodeJoin	 join = {
			.name = name,
			.stores = {a, b},
			.radius = radius,
			.take = take,
			.state = state,
			.nbits = a->codes.nbits,
			.words = a->codes.words,
			.reported = GetCurrentTimestamp(),
	};

	join.tile = Max(Min(TILE_BYTES / (8 * join.words), MOST_IN_TILE), 8);
	join.columns = palloc(sizeof(uint8 *) * join.words);
	join.matches = palloc(sizeof(HammingMatch) * (join.tile + MATCH_ROOM));
	join.masks = palloc(sizeof(uint32) * most_masks());
	join.context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming join plan", ALLOCSET_DEFAULT_SIZES);
	code_groups_init(&join.groups[0], join.words, room);
	if (a != b || a->nblocks > 1)
		code_groups_init(&join.groups[1], join.words, room);
	if (a == b)
		join_self(&join, a);
	else
		join_stores(&join, a, b);
}

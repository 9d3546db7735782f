/*
 * hamming_clusters.c
 *		hamming_clusters: the connected components of the pairs of near codes.
 *
 * Equal codes become one entry first, block by block: a million of them would be 5 * 10^11 pairs.
 * Members are kept as rows of the function's result, each a member and its cluster.  At first the
 * cluster is the number of an entry, in the place of a TID's block number.
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

#include "../compat.h"
#include "components.h"
#include "hamming_join.h"

typedef struct Clusters
{
	CodeStore		 store;
	Components		 components;
	TupleDesc		 descriptor;
	Tuplestorestate *members; /* each with the number of its entry */
} Clusters;

#define ST_SORT sort_by_code
#define ST_ELEMENT_TYPE uint32
#define ST_COMPARE_ARG_TYPE const CodeBlock
#define ST_COMPARE(a, b, block) \
	memcmp(code_block_code(block, *(a)), code_block_code(block, *(b)), \
		   sizeof(uint64) * (block)->words)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static void
put_row(Tuplestorestate *rows, TupleDesc descriptor, const ItemPointerData *member,
		const ItemPointerData *cluster)
{
	Datum values[2];
	bool  nulls[2] = {false};

	values[0] = PointerGetDatum(member);
	values[1] = PointerGetDatum(cluster);
	tuplestore_putvalues(rows, descriptor, values, nulls);
}

static void
add_member(Clusters *clusters, uint32 entry, ItemPointerData tid)
{
	ItemPointerData number;

	ItemPointerSet(&number, entry, FirstOffsetNumber);
	put_row(clusters->members, clusters->descriptor, &tid, &number);
}

static void
take_pair(void *state, JoinRow a, JoinRow b, uint32 distance pg_attribute_unused())
{
	Clusters *clusters = state;

	if (components_add(&clusters->components, a.entry))
		add_member(clusters, a.entry, a.tid);
	if (components_add(&clusters->components, b.entry))
		add_member(clusters, b.entry, b.tid);
	components_join(&clusters->components, a.entry, b.entry);
}

/*
 * Makes one entry of rows that have the same code, if any is visible, and a cluster if several
 * are.
 */
static void
merge_equal(Clusters *clusters, CodeBlock *from, const uint32 *entries, uint32 count, CodeBlock *to)
{
	const uint32 number = to->first + to->count;
	uint32		 first = entries[0]; /* that is visible */
	uint32		 visible = 0;

	/* a code that only one row has may be near to none: its row is looked at later */
	for (uint32 i = 0; i < count && count > 1; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!code_block_visible(from, entries[i], clusters->store.source))
			continue;
		if (visible++ == 0)
		{
			first = entries[i];
			continue;
		}
		if (components_add(&clusters->components, number))
			add_member(clusters, number, code_block_tid(from, first));
		add_member(clusters, number, code_block_tid(from, entries[i]));
	}
	if (count > 1 && visible == 0)
		return;
	memcpy(to->codes + (Size) to->count * to->words, code_block_code(from, first),
		   sizeof(uint64) * to->words);
	to->rows[to->count++] = from->rows[first];
}

/* Leaves one entry of each code in a block.  order and merged have room for as many entries. */
static void
merge_block(Clusters *clusters, CodeBlock *block, uint32 *order, CodeBlock *merged)
{
	const Size code_bytes = sizeof(uint64) * block->words;
	uint32	   end;

	for (uint32 i = 0; i < block->count; i++)
		order[i] = i;
	sort_by_code(order, block->count, block);
	merged->first = block->first;
	merged->count = 0;
	for (uint32 start = 0; start < block->count; start = end)
	{
		CHECK_FOR_INTERRUPTS();
		for (end = start + 1; end < block->count; end++)
		{
			if (memcmp(code_block_code(block, order[start]), code_block_code(block, order[end]),
					   code_bytes) != 0)
				break;
		}
		merge_equal(clusters, block, order + start, end - start, merged);
	}
	block->count = merged->count;
	memcpy(block->codes, merged->codes, code_bytes * merged->count);
	memcpy(block->rows, merged->rows, sizeof(uint64) * merged->count);
}

static void
merge_blocks(Clusters *clusters)
{
	CodeStore *store = &clusters->store;
	CodeBlock *block = &store->block;
	CodeBlock  merged;
	uint32	  *order = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * block->room);

	code_block_init(&merged, block->words, block->room);
	for (int i = 0; i < store->nblocks; i++)
	{
		code_store_load(store, i, block);
		merge_block(clusters, block, order, &merged);
		code_store_save(store, i, block);
	}
	pfree(order);
	pfree(merged.codes);
	pfree(merged.rows);
}

/* The members, sorted by cluster and TID; clusters are entries that stand for them. */
static Tuplesortstate *
sort_members(Clusters *clusters)
{
	AttrNumber		columns[2] = {2, 1};
	Oid				operators[2] = {TIDLessOperator, TIDLessOperator};
	Oid				collations[2] = {InvalidOid, InvalidOid};
	bool			nulls_first[2] = {false, false};
	Tuplesortstate *sort = tuplesort_begin_heap(clusters->descriptor, 2, columns, operators,
												collations, nulls_first, work_mem, NULL, 0);
	TupleTableSlot *member = MakeSingleTupleTableSlot(clusters->descriptor, &TTSOpsMinimalTuple);
	TupleTableSlot *row = MakeSingleTupleTableSlot(clusters->descriptor, &TTSOpsVirtual);

	while (tuplestore_gettupleslot(clusters->members, true, false, member))
	{
		ItemPointerData root;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(member);
		ItemPointerSet(&root,
					   components_find(&clusters->components,
									   ItemPointerGetBlockNumberNoCheck(
										   (ItemPointer) DatumGetPointer(member->tts_values[1]))),
					   FirstOffsetNumber);
		ExecClearTuple(row);
		row->tts_values[0] = member->tts_values[0];
		row->tts_values[1] = PointerGetDatum(&root);
		row->tts_isnull[0] = row->tts_isnull[1] = false;
		ExecStoreVirtualTuple(row);
		tuplesort_puttupleslot(sort, row);
	}
	ExecDropSingleTupleTableSlot(member);
	ExecDropSingleTupleTableSlot(row);
	tuplesort_performsort(sort);
	return sort;
}

/* Returns the members; a cluster is called after the first of its members. */
static void
return_members(Clusters *clusters, ReturnSetInfo *result)
{
	Tuplesortstate *sort = sort_members(clusters);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(clusters->descriptor, &TTSOpsMinimalTuple);
	ItemPointerData root;
	ItemPointerData first;

	ItemPointerSetInvalid(&root);
	while (tuplesort_gettupleslot(sort, true, false, slot, NULL))
	{
		ItemPointer member;
		ItemPointer number;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		member = (ItemPointer) DatumGetPointer(slot->tts_values[0]);
		number = (ItemPointer) DatumGetPointer(slot->tts_values[1]);
		if (!ItemPointerIsValid(&root) || !ItemPointerEquals(&root, number))
		{
			root = *number;
			first = *member;
		}
		put_row(result->setResult, result->setDesc, member, &first);
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplesort_end(sort);
}

static void
find_clusters(HammingRows *rows, int nbits, uint32 radius, ReturnSetInfo *result)
{
	Clusters   clusters = {.descriptor = result->setDesc};
	CodeStore *store = &clusters.store;

	code_store_read(store, rows, nbits, hamming_join_capacity(nbits));
	components_init(&clusters.components,
					store->nblocks == 1 ? store->block.count : store->nblocks * store->capacity);
	clusters.members = tuplestore_begin_heap(false, false, work_mem);
	merge_blocks(&clusters);
	hamming_join("hamming_clusters", store, store, radius, take_pair, &clusters);
	code_store_end(store);
	return_members(&clusters, result);
	tuplestore_end(clusters.members);
	components_end(&clusters.components);
}

PG_FUNCTION_INFO_V1(hamming_clusters);
Datum
hamming_clusters(PG_FUNCTION_ARGS)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming clusters", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;
	HammingRows	  rows;
	int			  nbits;
	uint32		  radius;

	InitMaterializedSRF(fcinfo, 0);
	caller = MemoryContextSwitchTo(context);
	hamming_rows_open(&rows, PG_GETARG_OID(0));
	nbits = hamming_join_code_length(&rows, &rows);
	radius = hamming_join_radius(PG_GETARG_INT32(1), nbits);
	if (nbits > 0)
		find_clusters(&rows, nbits, radius, (ReturnSetInfo *) fcinfo->resultinfo);
	hamming_rows_close(&rows);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return (Datum) 0;
}

/*
 * check.c
 *		hamming_info and hamming_check: what is in an index, and whether it is right.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "parser/parse_oper.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

#include "../compat.h"
#include "search.h"

/*
 * Opens an index after making sure that it is one of ours, and usable; and its table first, as
 * everybody who locks both does.
 */
static Relation
open_index(Oid oid, Relation *heap)
{
	const Oid heap_oid = IndexGetRelation(oid, true);
	Relation  index;

	*heap = OidIsValid(heap_oid) ? table_open(heap_oid, AccessShareLock) : NULL;
	index = relation_open(oid, AccessShareLock);
	if (index->rd_rel->relkind != RELKIND_INDEX || index->rd_indam->ambuild != hamming_build)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("\"%s\" is not a hamming index", RelationGetRelationName(index)));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("cannot access temporary indexes of other sessions"));
	if (!index->rd_index->indisvalid)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				errdetail("It is being built, or building it has failed."));
	return index;
}

/* Counts of rows are for those who may count them: who may read a column, and all rows of it. */
static void
check_may_count(Relation heap)
{
	const Oid table = RelationGetRelid(heap);
	const Oid user = GetUserId();

	if ((pg_class_aclcheck(table, user, ACL_SELECT) != ACLCHECK_OK &&
		 pg_attribute_aclcheck_all(table, user, ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK) ||
		check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(heap));
}

typedef struct Inspection
{
	Relation		index;
	int				nbits;
	HammingLayout	codes;
	HammingLayout	nulls;
	int64			ncodes;
	int64			nnulls;
	Tuplesortstate *rows; /* of the index's entries, or NULL if they are not wanted */
	Relation		heap;
	BlockNumber		heap_blocks; /* at the least */
	uint8		   *code;
} Inspection;

/*
 * A row as a number: its place, and below that a hash of its code.  The table's rows and the
 * index's entries are the same if these are.
 */
static int64
row_number(ItemPointer tid, const uint8 *bits, int nbytes)
{
	const uint64 hash = bits == NULL ? 0 : (hash_bytes(bits, nbytes) & 0x7FFF) + 1;

	return (int64) ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 32 |
					(uint64) ItemPointerGetOffsetNumberNoCheck(tid) << 16 | hash);
}

#define ROW_BLOCK(number) ((BlockNumber) ((uint64) (number) >> 32))
#define ROW_OFFSET(number) ((OffsetNumber) ((uint64) (number) >> 16 & 0xFFFF))

static Tuplesortstate *
start_sort(void)
{
	Oid less;

	get_sort_group_operators(INT8OID, true, false, false, &less, NULL, NULL, NULL);
	return tuplesort_begin_datum(INT8OID, less, InvalidOid, false, maintenance_work_mem, NULL, 0);
}

/* Called before the first page, also if the visit starts again. */
static void
start_inspection(void *state)
{
	Inspection *inspection = state;

	inspection->ncodes = inspection->nnulls = 0;
	if (inspection->rows != NULL)
	{
		tuplesort_end(inspection->rows);
		inspection->rows = start_sort();
	}
}

static void
check_tids(Inspection *inspection, Page page, BlockNumber block, const HammingLayout *layout,
		   int count)
{
	ItemPointer tids = HammingPageGetTids(page, layout);

	for (int i = 0; i < count; i++)
	{
		const BlockNumber heap_block = ItemPointerGetBlockNumberNoCheck(&tids[i]);

		/* the table may have grown */
		if (heap_block >= inspection->heap_blocks)
			inspection->heap_blocks = RelationGetNumberOfBlocks(inspection->heap);
		if (!ItemPointerIsValid(&tids[i]) || heap_block >= inspection->heap_blocks ||
			ItemPointerGetOffsetNumberNoCheck(&tids[i]) > MaxOffsetNumber)
			hamming_corrupt(inspection->index, block, "an entry points outside of the table");
	}
}

/* What no entry uses must be zero, as must be the bits behind a code's last. */
static void
check_rest(const Inspection *inspection, Page page, BlockNumber block, const HammingLayout *layout,
		   int count)
{
	PGAlignedBlock clean;

	hamming_page_init(clean.data, layout);
	hamming_page_set_count(clean.data, layout, count);
	for (int i = 0; i < count; i++)
	{
		hamming_page_copy(page, i, clean.data, i, layout);
		if (layout->kind == HAMMING_CODES)
		{
			hamming_page_get_code(page, layout, i, inspection->code);
			if (!bithash_padding_is_zero(inspection->nbits, inspection->code))
				hamming_corrupt(inspection->index, block, "a code has bits behind its end");
		}
	}
	if (memcmp(PageGetContents(clean.data), PageGetContents(page),
			   BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) != 0)
		hamming_corrupt(inspection->index, block, "there is something beside its entries");
}

static void
inspect_page(void *state, Page page, BlockNumber block,
			 HammingUpcoming upcoming pg_attribute_unused())
{
	Inspection			 *inspection = state;
	const HammingContents contents = hamming_page_contents(inspection->index, page, block,
														   &inspection->codes, &inspection->nulls);
	const HammingLayout	 *layout = contents.layout;
	const int			  count = contents.count;

	if (layout == NULL)
		return;
	*(layout == &inspection->codes ? &inspection->ncodes : &inspection->nnulls) += count;
	if (inspection->rows == NULL)
		return;

	check_tids(inspection, page, block, layout, count);
	check_rest(inspection, page, block, layout, count);
	for (int i = 0; i < count; i++)
	{
		const bool is_code = layout->kind == HAMMING_CODES;

		if (is_code)
			hamming_page_get_code(page, layout, i, inspection->code);
		tuplesort_putdatum(
			inspection->rows,
			Int64GetDatum(row_number(&HammingPageGetTids(page, layout)[i],
									 is_code ? inspection->code : NULL, layout->nbytes)),
			false);
	}
}

static void
inspect(Inspection *inspection, Relation index)
{
	inspection->index = index;
	inspection->nbits = (int) hamming_read_meta(index).nbits;
	inspection->codes = hamming_layout(HAMMING_CODES, inspection->nbits);
	inspection->nulls = hamming_layout(HAMMING_NULLS, 0);
	inspection->code = palloc(BITHASH_BYTES(BITHASH_MAX_BITS));
	hamming_visit_pages(index, start_inspection, inspect_page, inspection);
}

/* Behind the end of the index there are no entries; what is added there moves the end. */
static void
check_end(const Inspection *inspection)
{
	Relation index = inspection->index;

	for (BlockNumber block = hamming_read_meta(index).end; block < RelationGetNumberOfBlocks(index);
		 block++)
	{
		Buffer	  buffer = hamming_read(index, block, BUFFER_LOCK_SHARE, NULL);
		const int count = hamming_page_contents(index, BufferGetPage(buffer), block,
												&inspection->codes, &inspection->nulls)
							  .count;

		if (count > 0 && hamming_read_meta(index).end <= block)
			hamming_corrupt(index, block, "it has entries behind the end of the index");
		UnlockReleaseBuffer(buffer);
	}
}

PG_FUNCTION_INFO_V1(hamming_info);
Datum
hamming_info(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	index = open_index(PG_GETARG_OID(0), &heap);
	Inspection	inspection = {.rows = NULL};
	TupleDesc	descriptor;
	Datum		values[7];
	bool		nulls[7] = {false};
	double		room;
	BlockNumber end;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	check_may_count(heap);
	inspect(&inspection, index);
	end = hamming_read_meta(index).end;
	room = (double) (inspection.codes.nbytes + (int) sizeof(ItemPointerData)) * inspection.ncodes +
		   (double) sizeof(ItemPointerData) * inspection.nnulls;
	values[0] = Int32GetDatum(HAMMING_VERSION);
	values[1] = Int32GetDatum(inspection.nbits);
	nulls[1] = inspection.nbits == 0;
	values[2] = Int64GetDatum(inspection.ncodes);
	values[3] = Int64GetDatum(inspection.nnulls);
	values[4] = Int64GetDatum((int64) end);
	values[5] = Int64GetDatum((int64) RelationGetNumberOfBlocks(index) - end);
	values[6] = Float8GetDatum(room / ((double) end * BLCKSZ));
	relation_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	descriptor = BlessTupleDesc(descriptor);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/* A row of the table, as table_index_build_scan finds it. */
static void
add_table_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			  bool alive pg_attribute_unused(), void *state)
{
	Tuplesortstate *rows = state;
	BitHashView		code = {.nbits = 0, .bits = NULL};
	int64			number;

	(void) index;
	if (!isnull[0])
		code = DatumGetBitHashView(values[0]);
	number = row_number(tid, code.bits, BITHASH_BYTES(code.nbits));
	tuplesort_putdatum(rows, Int64GetDatum(number), false);
}

/* All rows that the snapshot sees, sorted, as they should be in the index. */
static Tuplesortstate *
collect_table_rows(Relation heap, Relation index, Snapshot snapshot)
{
	Tuplesortstate *rows = start_sort();
	IndexInfo	   *info = BuildIndexInfo(index);
	TableScanDesc	scan = table_beginscan_strat(heap, snapshot, 0, NULL, true, true);

	/* as in a concurrent build: what the snapshot sees, and nothing about uniqueness */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	table_index_build_scan(heap, index, info, true, false, add_table_row, rows, scan);
	tuplesort_performsort(rows);
	return rows;
}

static bool
next_row(Tuplesortstate *rows, int64 *number)
{
	Datum value;
	bool  isnull;

	if (!get_sorted_number(rows, &value, &isnull))
		return false;
	*number = DatumGetInt64(value);
	return true;
}

static void
report_row(Relation index, int64 number, const char *what)
{
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("index \"%s\" is corrupt: row (%u,%u) %s", RelationGetRelationName(index),
				   ROW_BLOCK(number), ROW_OFFSET(number), what),
			errhint("Please REINDEX it."));
}

/* Both are sorted: every row of the table must turn up among the entries, and none twice. */
static void
compare_rows(Relation index, Tuplesortstate *entries, Tuplesortstate *rows)
{
	int64 row;
	int64 entry = 0; /* no row: offsets start at 1 */
	bool  more_entries = true;
	bool  more_rows = next_row(rows, &row);

	while (more_entries || more_rows)
	{
		const int64 before = entry;

		CHECK_FOR_INTERRUPTS();
		/* entries that the snapshot does not see may be anywhere, but only once */
		more_entries = more_entries && next_row(entries, &entry);
		if (more_entries && before >> 16 == entry >> 16)
			report_row(index, entry, "is indexed twice");
		if (!more_entries || (more_rows && entry >> 16 > row >> 16))
		{
			if (more_rows)
				report_row(index, row, "is not indexed");
			continue;
		}
		if (more_rows && entry >> 16 == row >> 16)
		{
			if (entry != row)
				report_row(index, row, "is indexed with another code");
			more_rows = next_row(rows, &row);
		}
	}
}

static void
check_against_table(Inspection *inspection, Relation heap, Relation index, Snapshot snapshot)
{
	Tuplesortstate *rows = collect_table_rows(heap, index, snapshot);

	tuplesort_performsort(inspection->rows);
	compare_rows(index, inspection->rows, rows);
	tuplesort_end(rows);
}

PG_FUNCTION_INFO_V1(hamming_check);
Datum
hamming_check(PG_FUNCTION_ARGS)
{
	const bool with_table = PG_GETARG_BOOL(1);
	Relation   heap;
	Relation   index = open_index(PG_GETARG_OID(0), &heap);
	Oid		   user;
	int		   security;
	int		   settings;
	Inspection inspection = {.heap = heap};
	Snapshot   snapshot;

	if (!owns_relation(RelationGetRelid(heap), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, RelationGetRelationName(heap));
	/* the index may have expressions: they run as in CREATE INDEX, with the owner's rights */
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(heap->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
	settings = NewGUCNestLevel();
	restrict_search_path();

	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	inspection.rows = start_sort();
	inspect(&inspection, index);
	check_end(&inspection);
	if (with_table)
		check_against_table(&inspection, heap, index, snapshot);

	AtEOXact_GUC(false, settings);
	SetUserIdAndSecContext(user, security);
	UnregisterSnapshot(snapshot);
	tuplesort_end(inspection.rows);
	relation_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_VOID();
}

/*
 * flat_check.c
 *		What a flat index contains, and whether it is consistent.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "parser/parse_oper.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "flat_check.h"
#include "visit.h"

/*
 * Opens an index after making sure that it is one of the method with this build function, and usable;
 * and its table first, as everybody who locks both does.
 */
Relation
flat_open_index(Oid oid, ambuild_function build, const char *method, Relation *heap)
{
	const Oid heap_oid = IndexGetRelation(oid, true);
	Relation  index;

	*heap = OidIsValid(heap_oid) ? table_open(heap_oid, AccessShareLock) : NULL;
	index = relation_open(oid, AccessShareLock);
	if (index->rd_rel->relkind != RELKIND_INDEX || index->rd_indam->ambuild != build)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("\"%s\" is not a %s index", RelationGetRelationName(index), method));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("cannot access temporary indexes of other sessions"));
	if (!index->rd_index->indisvalid)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				errdetail("It is being built, or building it has failed."));
	return index;
}

/*
 * An error if the index may not have all rows that a snapshot of this transaction sees.  The planner
 * does not use such an index, either.
 */
void
flat_check_complete(Relation index)
{
	if (index->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							   TransactionXmin))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" cannot be used by this transaction yet",
					   RelationGetRelationName(index)),
				errdetail("The transaction may see row versions that the index lacks, because it "
						  "began before the index was built."));
}

void
flat_close_index(Relation heap, Relation index)
{
	relation_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
}

/* Counts of rows are for those who may count them: who may read a column, and all rows of it. */
void
flat_check_may_count(Relation heap)
{
	const Oid table = RelationGetRelid(heap);
	const Oid user = GetUserId();

	if ((pg_class_aclcheck(table, user, ACL_SELECT) != ACLCHECK_OK &&
		 pg_attribute_aclcheck_all(table, user, ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK) ||
		check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(heap));
}

/* From now on what runs has the rights of the table's owner, as in CREATE INDEX. */
void
flat_become_owner(FlatUser *user, Relation heap)
{
	GetUserIdAndSecContext(&user->id, &user->security);
	SetUserIdAndSecContext(heap->rd_rel->relowner, user->security | SECURITY_RESTRICTED_OPERATION);
	user->settings = NewGUCNestLevel();
	RestrictSearchPath();
}

void
flat_become_user(const FlatUser *user)
{
	AtEOXact_GUC(false, user->settings);
	SetUserIdAndSecContext(user->id, user->security);
}

/*
 * A row as a number: its place, and below that a hash of its code.  The table's rows and the
 * index's entries are the same if these are.
 */
int64
flat_row_number(ItemPointer tid, const uint8 *bits, int nbytes)
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
	FlatInspection *inspection = state;

	inspection->ncodes = inspection->nnulls = inspection->unknown = 0;
	if (inspection->rows != NULL)
	{
		tuplesort_end(inspection->rows);
		inspection->rows = start_sort();
	}
}

static void
check_tids(FlatInspection *inspection, Page page, BlockNumber block, const FlatLayout *layout,
		   int count)
{
	ItemPointer tids = FlatPageGetTids(page, layout);

	for (int i = 0; i < count; i++)
	{
		const BlockNumber heap_block = ItemPointerGetBlockNumberNoCheck(&tids[i]);

		/* the table may have grown */
		if (heap_block >= inspection->heap_blocks)
			inspection->heap_blocks = RelationGetNumberOfBlocks(inspection->heap);
		if (!ItemPointerIsValid(&tids[i]) || heap_block >= inspection->heap_blocks ||
			ItemPointerGetOffsetNumberNoCheck(&tids[i]) > MaxOffsetNumber)
			flat_corrupt(inspection->index, block, "an entry points outside of the table");
	}
}

/* What no entry uses must be zero, as must be the bits after a code's last. */
static void
check_rest(const FlatInspection *inspection, Page page, BlockNumber block, const FlatLayout *layout,
		   int count)
{
	PGAlignedBlock clean;

	flat_page_init(clean.data, layout);
	/* while a model is being introduced, pages have codes by it or none */
	FlatPageGetHead(clean.data)->model = FlatPageGetHead(page)->model;
	flat_page_set_count(clean.data, layout, count);
	for (int i = 0; i < count; i++)
	{
		flat_page_copy(page, i, clean.data, i, layout);
		if (layout->kind == FLAT_CODES)
		{
			flat_page_get_code(page, layout, i, inspection->code);
			if (!bithash_padding_is_zero(layout->nbits, inspection->code))
				flat_corrupt(inspection->index, block, "a code has bits beyond its end");
		}
	}
	if (memcmp(PageGetContents(clean.data), PageGetContents(page),
			   BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) != 0)
		flat_corrupt(inspection->index, block, "there is something besides its entries");
}

static void
inspect_page(void *state, Page page, BlockNumber block,
			 HammingUpcoming upcoming pg_attribute_unused())
{
	FlatInspection	  *inspection = state;
	const FlatContents contents =
		flat_page_contents(inspection->index, page, block, &inspection->codes, &inspection->nulls);
	const FlatLayout *layout = contents.layout;
	const int		  count = contents.count;

	if (layout == NULL)
		return;
	*(layout == &inspection->codes ? &inspection->ncodes : &inspection->nnulls) += count;
	for (int i = 0; layout->numbers != 0 && i < count; i++)
		inspection->unknown += FlatPageGetNumbers(page, layout)[i] == 0;
	if (inspection->rows == NULL)
		return;

	check_tids(inspection, page, block, layout, count);
	check_rest(inspection, page, block, layout, count);
	for (int i = 0; i < count; i++)
	{
		const bool is_code = layout->kind == FLAT_CODES;

		if (is_code)
			flat_page_get_code(page, layout, i, inspection->code);
		tuplesort_putdatum(inspection->rows,
						   Int64GetDatum(flat_row_number(&FlatPageGetTids(page, layout)[i],
														 is_code ? inspection->code : NULL,
														 inspection->by_code ? layout->nbytes : 0)),
						   false);
	}
}

void
flat_inspect(FlatInspection *inspection, Relation index)
{
	const FlatMeta meta = flat_read_meta(index);

	inspection->index = index;
	inspection->codes = flat_codes_layout(&meta);
	inspection->nulls = flat_layout(FLAT_NULLS, 0);
	inspection->code = palloc(BITHASH_BYTES(BITHASH_MAX_BITS));
	flat_visit_pages(index, start_inspection, inspect_page, inspection);
}

/* Behind the end of the index there are no entries; what is added there moves the end. */
static void
check_end(const FlatInspection *inspection)
{
	Relation index = inspection->index;

	for (BlockNumber block = flat_read_meta(index).end; block < RelationGetNumberOfBlocks(index);
		 block++)
	{
		Buffer			   buffer = flat_read(index, block, BUFFER_LOCK_SHARE, NULL);
		const FlatContents contents = flat_page_contents(index, BufferGetPage(buffer), block,
														 &inspection->codes, &inspection->nulls);

		if (contents.count > 0 && !contents.is_model && flat_read_meta(index).end <= block)
			flat_corrupt(index, block, "it has entries beyond the end of the index");
		UnlockReleaseBuffer(buffer);
	}
}

/* All rows that the snapshot sees, sorted, as they should be in the index. */
static Tuplesortstate *
collect_table_rows(Relation heap, Relation index, Snapshot snapshot, IndexBuildCallback add_row)
{
	FlatTableRows table = {.rows = start_sort()};
	IndexInfo	 *info = BuildIndexInfo(index);
	TableScanDesc scan = table_beginscan_strat(heap, snapshot, 0, NULL, true, true);

	table.context =
		AllocSetContextCreate(CurrentMemoryContext, "flat check, a row", ALLOCSET_DEFAULT_SIZES);
	/* as in a concurrent build: what the snapshot sees, and nothing about uniqueness */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	table_index_build_scan(heap, index, info, true, false, add_row, &table, scan);
	MemoryContextDelete(table.context);
	tuplesort_performsort(table.rows);
	return table.rows;
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

void
flat_check(Relation heap, Relation index, Snapshot snapshot, bool by_code,
		   IndexBuildCallback add_row)
{
	FlatInspection inspection = {.heap = heap, .by_code = by_code, .rows = start_sort()};

	flat_inspect(&inspection, index);
	check_end(&inspection);
	if (add_row != NULL)
	{
		Tuplesortstate *rows = collect_table_rows(heap, index, snapshot, add_row);

		tuplesort_performsort(inspection.rows);
		compare_rows(index, inspection.rows, rows);
		tuplesort_end(rows);
	}
	tuplesort_end(inspection.rows);
}

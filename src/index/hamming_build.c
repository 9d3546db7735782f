/*
 * hamming_build.c
 *		Building a hamming index: pages are filled in the order of the table.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "commands/progress.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

#include "../code/code_type.h"
#include "../compat.h"
#include "flat_build.h"
#include "hamming.h"

/* rows after which progress is reported, and what was detoasted is freed */
#define ROWS_AT_A_TIME 1024

typedef struct BuildState
{
	IndexInfo	 *info;
	MemoryContext context; /* for some rows */
	FlatBuild	  pages;
	int64		  rows; /* of the table that have been indexed */
} BuildState;

/* The length of the codes as the column's type gives it, or 0 if it does not. */
static int
declared_bits(Relation index)
{
	const FormData_pg_attribute *column = TupleDescAttr(RelationGetDescr(index), 0);
	const int					 nbits = hamming_code_type(index) == CODE_INT8
											 ? code_type_bits(INT8OID, -1)
											 : code_type_bits(column->atttypid, column->atttypmod);

	if (nbits > 0)
		bithash_check_length(nbits, ERRCODE_DATATYPE_MISMATCH, NULL);
	return nbits;
}

/* An error if a code to be indexed is not as long as those that are. */
static void
check_code(Relation index, BitHashView code, int nbits, bool is_built)
{
	const char *type = hamming_code_type(index) == CODE_BIT ? "bit" : "bithash";

	bithash_check_length(code.nbits, ERRCODE_STRING_DATA_LENGTH_MISMATCH, NULL);
	if (nbits != 0 && code.nbits != nbits)
		ereport(
			ERROR, errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
			errmsg("code has %d bits, but index \"%s\" holds codes of %d bits", code.nbits,
				   RelationGetRelationName(index), nbits),
			is_built
				? errhint(
					  "Give the column the type %s(n), so that all codes have the "
					  "same length.  To change it, delete all codes of %d bits, then run VACUUM "
					  "(INDEX_CLEANUP on) on the table.",
					  type, nbits)
				: errhint("Give the column the type %s(n), so that all codes have the "
						  "same length.",
						  type));
}

/* The same without an error. */
static bool
may_index(BitHashView code, int nbits)
{
	return code.nbits >= 1 && code.nbits <= BITHASH_MAX_BITS && (nbits == 0 || code.nbits == nbits);
}

/* A row of the table's first pages: its code tells how long all codes are. */
static void
look_at_row(Relation index, ItemPointer tid pg_attribute_unused(), Datum *values, bool *isnull,
			bool alive, void *arg)
{
	BuildState *state = arg;
	FlatLayout *layout = &state->pages.layouts[BUILD_CODES];

	if (alive && !isnull[0] && layout->capacity == 0)
	{
		MemoryContext	  caller = MemoryContextSwitchTo(state->context);
		const BitHashView code = code_view(hamming_code_type(index), values[0]);

		check_code(index, code, 0, false);
		*layout = flat_layout(FLAT_CODES, code.nbits);
		MemoryContextSwitchTo(caller);
	}
}

/*
 * If the column's type does not say how long codes are, the first row says it that has one and was not
 * deleted.  That has to be known before: deleted rows may come first, and when an index is built anew
 * nothing keeps older snapshots, which still see those rows, from using it.
 */
static void
find_length(BuildState *state, Relation heap, Relation index)
{
	const BlockNumber blocks = RelationGetNumberOfBlocks(heap);
	BlockNumber		  block = 0;

	/* the first page, then as many as were looked at before */
	while (block < blocks && state->pages.layouts[BUILD_CODES].capacity == 0)
	{
		const BlockNumber count = Min(Max(block, 1), blocks - block);

		table_index_build_range_scan(heap, index, state->info, false, false, false, block, count,
									 look_at_row, state, NULL);
		block += count;
	}
}

static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	BuildState	 *state = arg;
	FlatLayout	 *layout = &state->pages.layouts[BUILD_CODES];
	MemoryContext caller = MemoryContextSwitchTo(state->context);
	BitHashView	  code = {.nbits = 0, .bits = NULL};
	FlatEntry	  entry = {.bits = NULL, .tid = *tid};

	if (!isnull[0])
		code = code_view(hamming_code_type(index), values[0]);
	/*
	 * A deleted row that an older snapshot may still see, of another length than the others: it is no
	 * reason to fail, but such snapshots must do without this index.
	 */
	if (!alive && !isnull[0] && !may_index(code, layout->nbits))
	{
		state->info->ii_BrokenHotChain = true;
		MemoryContextSwitchTo(caller);
		return;
	}
	if (!isnull[0])
	{
		check_code(index, code, layout->nbits, false);
		if (layout->capacity == 0)
			*layout = flat_layout(FLAT_CODES, code.nbits);
		entry.bits = code.bits;
	}
	flat_build_add(&state->pages, entry);
	MemoryContextSwitchTo(caller);
	if (++state->rows % ROWS_AT_A_TIME == 0)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, state->rows);
		MemoryContextReset(state->context);
	}
}

IndexBuildResult *
hamming_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	MemoryContext	  context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext	 caller = MemoryContextSwitchTo(context);
	BuildState		*state = palloc0(sizeof(BuildState));
	const FlatLayout codes = flat_layout(FLAT_CODES, declared_bits(index));

	state->info = info;
	state->context = AllocSetContextCreate(context, "hamming build, rows", ALLOCSET_DEFAULT_SIZES);
	flat_build_start(&state->pages, index, &codes);

	MemoryContextSwitchTo(caller);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HAMMING_PHASE_SCAN);
	find_length(state, heap, index);
	result->heap_tuples =
		table_index_build_scan(heap, index, info, true, true, add_row, state, NULL);
	result->index_tuples = (double) state->rows;
	MemoryContextSwitchTo(context);
	flat_build_finish(&state->pages, flat_build_meta(&state->pages));
	MemoryContextSwitchTo(caller);

	MemoryContextDelete(context);
	return result;
}

static void
init_meta(Relation index, Page meta)
{
	flat_meta_init(meta, declared_bits(index));
}

void
hamming_build_empty(Relation index)
{
	flat_build_empty(index, init_meta);
}

IndexBulkDeleteResult *
hamming_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	return flat_vacuum_cleanup(info, stats, declared_bits(info->index));
}

bool
hamming_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			   Relation heap pg_attribute_unused(), IndexUniqueCheck check pg_attribute_unused(),
			   bool unchanged pg_attribute_unused(), IndexInfo *info pg_attribute_unused())
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "hamming insert", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	BitHashView	  code = {.nbits = 0, .bits = NULL};
	FlatEntry	  entry = {.bits = NULL, .tid = *tid};
	FlatLayout	  codes;

	/* first, because fetching a value that is stored out of line reads catalogs */
	if (!isnull[0])
	{
		code = code_view(hamming_code_type(index), values[0]);
		/* also of an index that has no length yet, which an empty one would seem to fit */
		check_code(index, code, 0, true);
	}
	entry.bits = code.bits;
	do
	{
		codes = flat_codes(index);
		if (!isnull[0] && codes.nbits != code.nbits)
		{
			/* what we remember may be out of date */
			flat_forget_codes(index);
			check_code(index, code, flat_codes(index).nbits, true);
			codes = flat_layout(FLAT_CODES, code.nbits);
		}
	} while (!flat_insert(index, &codes, entry));
	/* a statement may insert any number of rows in one memory context */
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return false;
}

char *
hamming_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case HAMMING_PHASE_SCAN:
			return "scanning table";
		default:
			return NULL;
	}
}

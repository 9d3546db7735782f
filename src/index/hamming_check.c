/*
 * hamming_check.c
 *		hamming_info and hamming_check: what an index contains, and whether it is consistent.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "flat_check.h"
#include "hamming.h"

Relation
hamming_open_index(Oid oid, Relation *heap)
{
	return flat_open_index(oid, hamming_build, "hamming", heap);
}

PG_FUNCTION_INFO_V1(hamming_info);
Datum
hamming_info(PG_FUNCTION_ARGS)
{
	Relation	   heap;
	Relation	   index = hamming_open_index(PG_GETARG_OID(0), &heap);
	FlatInspection inspection = {.rows = NULL};
	TupleDesc	   descriptor;
	Datum		   values[7];
	bool		   nulls[7] = {false};
	double		   room;
	BlockNumber	   end;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	flat_check_may_count(heap);
	flat_inspect(&inspection, index);
	end = flat_read_meta(index).end;
	room = (double) flat_entry_bytes(&inspection.codes) * inspection.ncodes +
		   (double) sizeof(ItemPointerData) * inspection.nnulls;
	values[0] = Int32GetDatum(FLAT_VERSION);
	values[1] = Int32GetDatum(inspection.codes.nbits);
	nulls[1] = inspection.codes.nbits == 0;
	values[2] = Int64GetDatum(inspection.ncodes);
	values[3] = Int64GetDatum(inspection.nnulls);
	values[4] = Int64GetDatum((int64) end);
	values[5] = Int64GetDatum((int64) RelationGetNumberOfBlocks(index) - end);
	values[6] = Float8GetDatum(room / ((double) end * BLCKSZ));
	flat_close_index(heap, index);
	descriptor = BlessTupleDesc(descriptor);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/* A row of the table, as table_index_build_scan finds it. */
static void
add_table_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			  bool alive pg_attribute_unused(), void *state)
{
	FlatTableRows *table = state;
	MemoryContext  caller = MemoryContextSwitchTo(table->context);
	BitHashView	   code = {.nbits = 0, .bits = NULL};
	int64		   number;

	if (!isnull[0])
		code = code_view(hamming_code_type(index), values[0]);
	number = flat_row_number(tid, code.bits, BITHASH_BYTES(code.nbits));
	MemoryContextSwitchTo(caller);
	MemoryContextReset(table->context);
	tuplesort_putdatum(table->rows, Int64GetDatum(number), false);
}

PG_FUNCTION_INFO_V1(hamming_check);
Datum
hamming_check(PG_FUNCTION_ARGS)
{
	const bool with_table = PG_GETARG_BOOL(1);
	Relation   heap;
	Relation   index = hamming_open_index(PG_GETARG_OID(0), &heap);
	FlatUser   user;
	Snapshot   snapshot;

	if (!owns_relation(RelationGetRelid(heap), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, RelationGetRelationName(heap));
	flat_check_complete(index);
	flat_become_owner(&user, heap);
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	flat_check(heap, index, snapshot, true, with_table ? add_table_row : NULL);
	UnregisterSnapshot(snapshot);
	flat_become_user(&user);
	flat_close_index(heap, index);
	PG_RETURN_VOID();
}

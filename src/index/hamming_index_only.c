/*
 * hamming_index_only.c
 *		Index-only scans: rows whose codes come from the index.
 *
 * The executor asks the visibility map whether it has to look at a row.  By then VACUUM may have
 * removed a dead row together with its entry, and the map says that all rows of the page are seen
 * by everybody: the executor would return a row that is gone.  Other access methods keep VACUUM
 * from removing entries that they are about to return; a search finds too many for that.  It looks
 * at the map while it sees the entry (hamming_found.c), and here rows on other pages are looked at before
 * they are returned.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "../code/distance.h"
#include "../compat.h"
#include "flat_scan.h"
#include "hamming_index_only.h"

/* Memory is the current context's. */
HammingIndexOnly *
index_only_create(IndexScanDesc scan)
{
	HammingIndexOnly *only = palloc0(sizeof(HammingIndexOnly));

	only->context = AllocSetContextCreate(CurrentMemoryContext, "hamming index-only scan",
										  ALLOCSET_SMALL_SIZES);
	only->slot = table_slot_create(scan->heapRelation, NULL);
	return only;
}

void
index_only_start(HammingIndexOnly *only)
{
	MemoryContextReset(only->context);
	only->ties = NULL;
	only->nties = only->room = only->next = 0;
	only->has_behind = false;
}

void
index_only_end(HammingIndexOnly *only)
{
	ExecDropSingleTupleTableSlot(only->slot);
	MemoryContextDelete(only->context);
}

static bool
row_is_visible(HammingIndexOnly *only, IndexScanDesc scan, uint64 key)
{
	ItemPointerData tid = flat_row_of_key(scan, key);
	bool			again = false;
	bool			visible;

	visible = table_index_fetch_tuple(scan->xs_heapfetch, &tid, scan->xs_snapshot, only->slot,
									  &again, NULL);
	ExecClearTuple(only->slot);
	return visible;
}

/* The next entry of which a row is visible, or at least was of a page that everybody saw. */
static bool
next_visible(HammingIndexOnly *only, IndexScanDesc scan, HammingSearch *search, uint64 *key)
{
	while (hamming_search_next(search, key))
	{
		if (hamming_search_found(search)->all_visible || row_is_visible(only, scan, *key))
			return true;
	}
	return false;
}

/* What the index knows of the row: its code.  Memory is the current context's. */
static HeapTuple
form_row(IndexScanDesc scan, const HammingSearch *search)
{
	const HammingFound *found = hamming_search_found(search);
	const BitHashView	code = hamming_search_code(search);
	Datum				value = (Datum) 0;
	bool				isnull = found->is_null;

	if (!isnull)
		value = code_datum(hamming_code_type(scan->indexRelation), code);
	return heap_form_tuple(RelationGetDescr(scan->indexRelation), &value, &isnull);
}

/* The distance of the row from one of the codes by which the scan is ordered. */
static uint16
distance_from(const HammingSearch *search, ScanKey orderby)
{
	if (hamming_search_found(search)->is_null || (orderby->sk_flags & SK_ISNULL) != 0)
		return NULL_DISTANCE;
	return (uint16) hamming_distance_views(hamming_search_code(search),
										   code_view(code_type_of(orderby->sk_subtype),
													 orderby->sk_argument));
}

static void
add_tie(HammingIndexOnly *only, IndexScanDesc scan, const HammingSearch *search, uint64 key)
{
	const int	others = scan->numberOfOrderBys - 1;
	HammingTie *tie;

	if (only->nties == only->room)
	{
		only->room = Max(2 * only->room, 16);
		only->ties = only->ties == NULL
						 ? palloc(sizeof(HammingTie) * only->room)
						 : repalloc_huge(only->ties, sizeof(HammingTie) * only->room);
	}
	tie = &only->ties[only->nties++];
	tie->key = key;
	tie->tuple = form_row(scan, search);
	tie->distances = palloc(sizeof(uint16) * others);
	for (int i = 0; i < others; i++)
		tie->distances[i] = distance_from(search, &scan->orderByData[i + 1]);
}

static int
compare_ties(const void *left, const void *right, void *others)
{
	const HammingTie *a = left;
	const HammingTie *b = right;

	for (int i = 0; i < *(const int *) others; i++)
	{
		if (a->distances[i] != b->distances[i])
			return a->distances[i] < b->distances[i] ? -1 : 1;
	}
	return (a->key > b->key) - (a->key < b->key);
}

/*
 * Reads all rows at the next distance, and sorts them by their others: in an index-only scan the
 * executor does not do that.
 */
static void
read_ties(HammingIndexOnly *only, IndexScanDesc scan, HammingSearch *search)
{
	int others = scan->numberOfOrderBys - 1;

	/* the row after the last ties is still the one that the search returned last */
	if (only->has_behind)
		add_tie(only, scan, search, only->behind);
	only->has_behind = false;
	while (next_visible(only, scan, search, &only->behind))
	{
		CHECK_FOR_INTERRUPTS();
		if (only->nties > 0 && KEY_DISTANCE(only->behind) != KEY_DISTANCE(only->ties[0].key))
		{
			only->has_behind = true;
			break;
		}
		add_tie(only, scan, search, only->behind);
	}
	if (only->nties > 1)
		qsort_arg(only->ties, only->nties, sizeof(HammingTie), compare_ties, &others);
}

static bool
next_tie(HammingIndexOnly *only, IndexScanDesc scan, HammingSearch *search, uint64 *key)
{
	if (only->next == only->nties)
	{
		const bool has_behind = only->has_behind;

		index_only_start(only);
		only->has_behind = has_behind;
		read_ties(only, scan, search);
	}
	if (only->next == only->nties)
		return false;
	scan->xs_hitup = only->ties[only->next].tuple;
	*key = only->ties[only->next++].key;
	return true;
}

bool
index_only_next(HammingIndexOnly *only, IndexScanDesc scan, HammingSearch *search, uint64 *key)
{
	MemoryContext caller = MemoryContextSwitchTo(only->context);
	bool		  found;

	scan->xs_hitupdesc = RelationGetDescr(scan->indexRelation);
	if (scan->numberOfOrderBys > 1)
		found = next_tie(only, scan, search, key);
	else
	{
		MemoryContextReset(only->context);
		found = next_visible(only, scan, search, key);
		if (found)
			scan->xs_hitup = form_row(scan, search);
	}
	MemoryContextSwitchTo(caller);
	return found;
}

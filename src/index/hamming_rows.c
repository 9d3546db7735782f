/*
 * hamming_rows.c
 *		A hamming index and the rows behind its entries, as the statement's snapshot sees them.
 *
 * Entries are read first, and their rows are looked at later.  Meanwhile VACUUM may have removed a
 * dead row, and another may be in its place, which an MVCC snapshot does not see.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/acl.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "../compat.h"
#include "flat_check.h"
#include "hamming_rows.h"

/* how often to tell how far a function is */
#define NOTICE_MILLISECONDS 10000

/*
 * May the user read what is in the index?  That is the column's codes, or what an expression makes
 * of columns of the table; and which rows fulfil the condition of a partial index.
 */
static bool
may_read(Relation table, Relation index)
{
	const AttrNumber column = index->rd_index->indkey.values[0];
	const Oid		 user = GetUserId();

	if (pg_class_aclcheck(RelationGetRelid(table), user, ACL_SELECT) == ACLCHECK_OK)
		return true;
	return column != 0 && RelationGetIndexPredicate(index) == NIL &&
		   pg_attribute_aclcheck(RelationGetRelid(table), column, user, ACL_SELECT) == ACLCHECK_OK;
}

static void
check_rights(Relation table, Relation index)
{
	if (!may_read(table, index))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(table));
	if (check_enable_rls(RelationGetRelid(table), InvalidOid, false) == RLS_ENABLED)
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("query would be affected by row-level security policy for table \"%s\"",
					   RelationGetRelationName(table)),
				errdetail("An index is read as a whole, whatever the policy."));
}

void
hamming_rows_open(HammingRows *rows, Oid index)
{
	rows->index = hamming_open_index(index, &rows->table);
	check_rights(rows->table, rows->index);
	flat_check_complete(rows->index);
	rows->snapshot = GetActiveSnapshot();
	/* as for an index scan: whoever inserts a code conflicts with a serializable reader */
	PredicateLockRelation(rows->index, rows->snapshot);
	pgstat_count_index_scan(rows->index);
	rows->fetch = begin_index_fetch(rows->table);
	rows->slot = table_slot_create(rows->table, NULL);
}

void
hamming_rows_close(HammingRows *rows)
{
	ExecDropSingleTupleTableSlot(rows->slot);
	table_index_fetch_end(rows->fetch);
	relation_close(rows->index, AccessShareLock);
	table_close(rows->table, AccessShareLock);
}

/* The entry of a row whose updates were HOT has the TID of its first version. */
bool
hamming_rows_fetch(HammingRows *rows, ItemPointer tid)
{
	bool again = false;
	bool visible;

	flat_check_tid(rows->table, rows->index, *tid);
	visible = table_index_fetch_tuple(rows->fetch, tid, rows->snapshot, rows->slot, &again, NULL);
	if (visible)
		*tid = rows->slot->tts_tid;
	ExecClearTuple(rows->slot);
	return visible;
}

bool
hamming_notice_is_due(TimestampTz *last)
{
	const TimestampTz now = GetCurrentTimestamp();

	if (!TimestampDifferenceExceeds(*last, now, NOTICE_MILLISECONDS))
		return false;
	*last = now;
	return true;
}

/*
 * walk.h
 *		What walk.c and walk_rows.c share: rows of one table that get another code.
 */
#ifndef UNIFDIAG_WALK_H
#define UNIFDIAG_WALK_H

#include "executor/tuptable.h"

#include "table.h"

/* One of the target's tables, open within one transaction. */
typedef struct WalkTable
{
	Walk		*walk;
	Relation	 relation;
	AttrNumber	 vector;
	AttrNumber	 code;
	VectorColumn column;
	Datum		*tids; /* of rows to be changed, and their new codes */
	Datum		*codes;
	bool		*nulls;
	int			 count;
	int			 room;
} WalkTable;

extern bool walk_open_table(WalkTable *table, Walk *walk, Oid oid);
extern bool walk_is_stale(WalkTable *table, TupleTableSlot *slot, Datum *code, bool *is_null);
extern bool walk_take_row(WalkTable *table, TupleTableSlot *slot, TupleTableSlot *locked,
						  Snapshot snapshot, Datum code, bool is_null);
extern void walk_write_codes(WalkTable *table);

#endif /* UNIFDIAG_WALK_H */

/*
 * flat_check.h
 *		What a flat index contains, and whether it is consistent.
 */
#ifndef UNIFDIAG_FLAT_CHECK_H
#define UNIFDIAG_FLAT_CHECK_H

#include "access/amapi.h"
#include "access/tableam.h"
#include "utils/tuplesort.h"

#include "flat.h"

/* The entries of an index, counted, and checked if rows are wanted. */
typedef struct FlatInspection
{
	Relation		index;
	FlatLayout		codes;
	FlatLayout		nulls;
	int64			ncodes;
	int64			nnulls;
	int64			unknown; /* entries with a code of which their number says nothing */
	Tuplesortstate *rows;	 /* of the index's entries, or NULL if they are not wanted */
	bool			by_code; /* these tell codes, too */
	Relation		heap;
	BlockNumber		heap_blocks; /* at the least */
	uint8		   *code;
} FlatInspection;

/* Who called us, while what runs has the rights of somebody else. */
typedef struct FlatUser
{
	Oid id;
	int security;
	int settings;
} FlatUser;

extern Relation
			flat_open_index(Oid oid, ambuild_function build, const char *method, Relation *heap);
extern void flat_close_index(Relation heap, Relation index);
extern void flat_check_complete(Relation index);
extern void flat_check_may_count(Relation heap);
extern void flat_become_owner(FlatUser *user, Relation heap);
extern void flat_become_user(const FlatUser *user);

/* counts entries; all but heap, rows and by_code is set here */
extern void flat_inspect(FlatInspection *inspection, Relation index);

/* The state that add_row gets: the row's number goes to the sort. */
typedef struct FlatTableRows
{
	Tuplesortstate *rows;
	MemoryContext	context; /* for one, which add_row resets */
} FlatTableRows;

/* a row as a number */
extern int64 flat_row_number(ItemPointer tid, const uint8 *bits, int nbytes);

/*
 * Raises an error if an index is inconsistent in itself or, if add_row is not NULL, with its table: row
 * numbers have codes in them if by_code, else whether there is one.
 */
extern void flat_check(Relation heap, Relation index, Snapshot snapshot, bool by_code,
					   IndexBuildCallback add_row);

#endif /* UNIFDIAG_FLAT_CHECK_H */

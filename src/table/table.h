/*
 * table.h
 *		Living in a table: a column of codes that a trigger and sketcher_refresh keep up to date.
 *
 * The model table has one row, with the columns below in this order.  Its owner can write
 * anything there, so it is checked each time it is read (model_table.c).
 *
 * target       regclass     the user's table; primary key
 * auto_refresh float8       drift from which a refresh in the background publishes; null = never
 * published    sketcher     makes all codes; null until enough rows have been learnt
 * learning     sketcher     has learnt the rows up to `learnt`, and holds the options of
 *                           sketcher_new; without rows its dimensions mean nothing
 * dims         integer      of the vectors; null until attach or the first row says
 * generation   bigint       how often a model was published
 * learnt       pg_snapshot  sees the row versions that learning has seen; null = none
 * server       bigint       the system identifier of the server that took this snapshot
 * learnt_in    oid[]        the tables that it is about: the target, or its partitions
 * rewritten    xid8[]       transactions since then in which a refresh that came to its end wrote
 *                           codes
 * walk_table   regclass     where a refresh is: the table or partition; null if none is
 * walk_file    oid            unfinished; the table's file, whose change starts it again;
 * walk_page    bigint         the first page that is not done
 *
 * src/table/README.md has the whole picture: who finds what, who may do what, locks.
 */
#ifndef UNIFDIAG_TABLE_H
#define UNIFDIAG_TABLE_H

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "../compat.h"
#include "../model/sketcher.h"

/* columns of the model table */
enum
{
	MODEL_TARGET = 1,
	MODEL_AUTO_REFRESH,
	/* from here on a refresh writes */
	MODEL_PUBLISHED,
	MODEL_LEARNING,
	MODEL_DIMS,
	MODEL_GENERATION,
	MODEL_LEARNT,
	MODEL_SERVER,
	MODEL_LEARNT_IN,
	MODEL_REWRITTEN,
	MODEL_WALK_TABLE,
	MODEL_WALK_FILE,
	MODEL_WALK_PAGE,
	MODEL_COLUMNS = MODEL_WALK_PAGE
};

/* A row of a model table; values by reference are in the memory context it was read into. */
typedef struct ModelRow
{
	Oid	  model; /* the model table */
	Datum values[MODEL_COLUMNS];
	bool  nulls[MODEL_COLUMNS];
} ModelRow;

#define ROW_VALUE(row, column) ((row)->values[MODEL_##column - 1])
#define ROW_IS_NULL(row, column) ((row)->nulls[MODEL_##column - 1])

/* A code column and what belongs to it, as the trigger that makes the codes says. */
typedef struct CodeColumn
{
	Oid			trigger;
	const char *trigger_name;
	Oid			model; /* the model table */
	AttrNumber	vector;
	AttrNumber	code;
} CodeColumn;

/* The vector column, and how to read it. */
typedef struct VectorColumn
{
	Oid			owner; /* casts run as this user */
	VectorCast	cast;
	const char *table;
	ItemPointer row; /* that is being read, or NULL */
} VectorColumn;

/* What a model has learnt of a table already; rows of later transactions are new to it. */
typedef struct LearntMarks
{
	bool   nothing;
	Datum  learnt;	  /* a pg_snapshot */
	Datum *rewritten; /* numbers of transactions, sorted */
	int	   rewritten_count;
	uint64 next; /* number of a transaction */
} LearntMarks;

/* How learning goes: the model, and what was found. */
typedef struct Learning
{
	ModelRow	 *row;
	LearntMarks	  marks;
	Sketcher	 *sketcher;
	MemoryContext context; /* of the sketcher */
	int64		  learnt;  /* rows */
	int64		  skipped; /* rows that have no vector of the model's kind */
	int64		  missing; /* rows that have a vector and no code */
} Learning;

/* A refresh; what it keeps from transaction to transaction is in its context. */
typedef struct Refresh
{
	Oid			  target;
	AttrNumber	  code;
	Oid			  model; /* the model table */
	Oid			  owner;
	double		  min_drift;
	int			  batch; /* rows changed in one transaction */
	MemoryContext context;
	HashPin		 *pin;
	HashPlan	 *plan;	  /* of the published model */
	int64		  learnt; /* rows */
	/* how the walk goes */
	bool			 finishing; /* one that was begun before */
	Oid				 end_table;
	BlockNumber		 end; /* of that table, when the walk came to it */
	int64			 changed;
	int64			 kept;		/* rows that somebody kept from being changed */
	ItemPointerData	 held;		/* the row that ended the last batch, if somebody else held it */
	ArrayBuildState *rewritten; /* the transactions that did so; stored at the end */
	TimestampTz		 reported;
} Refresh;

/* sql.c: statements, as the owner of a table */
typedef struct SqlUser
{
	Oid user;
	int context;
	int settings; /* the level of nesting */
} SqlUser;

extern SqlUser become_user(Oid user);
extern void	   restore_user(SqlUser before);
extern char	  *sql_relation(Oid relation);
extern void	   sql_run(const char *statement);
extern bool	   lock_for_session(LockRelId *lock);
extern void	   next_transaction(void);

/* columns.c */
extern Relation	  open_named(Oid table, LOCKMODE mode);
extern Relation	  open_own(Oid table, LOCKMODE mode);
extern Oid		  table_owner(Oid table);
extern bool		  is_type_of(Oid type, PGFunction input);
extern bool		  trigger_code_column(const Trigger *trigger, CodeColumn *column);
extern bool		  find_code_column(Relation target, AttrNumber code, Oid model, CodeColumn *column);
extern void		  get_code_column(Relation target, AttrNumber code, CodeColumn *column);
extern void		  check_table_owner(Relation target);
extern AttrNumber column_number(Relation target, const char *name);
extern void		  check_code_type(Relation relation, AttrNumber number, int bits);
extern void		  check_not_foreign(const char *name, char kind);
extern List		 *leaf_tables(Oid target);
extern CodeColumn column_of_part(Relation part, Oid target, const CodeColumn *column);
extern bool		  is_part_of(Oid table, Oid target);
extern void		  vector_column_init(VectorColumn *column, Relation relation, AttrNumber number);
extern ArrayType *vector_column_array(VectorColumn *column, Datum datum, ItemPointer row);

/* model_table.c: the row */
extern char *model_table_columns(const char *extension);
extern bool	 model_row_get(Oid model, Snapshot snapshot, bool missing_ok, ModelRow *row);
extern void	 model_row_set(ModelRow *row, int column, Datum value);
extern void	 model_row_set_walk(ModelRow *row, Oid table, Oid file, BlockNumber page);
extern void	 model_row_publish(ModelRow *row);
extern void	 model_row_update(ModelRow *row, int first, int last);

/* learn.c */
extern void		read_marks(const ModelRow *row, Oid table, LearntMarks *marks);
extern bool		is_new(const LearntMarks *marks, TupleTableSlot *slot);
extern void		add_rewritten(ModelRow *row, const Datum *transactions, int count);
extern Learning learn_rows(ModelRow *row, const CodeColumn *column);

/* refresh.c */
extern void refresh_look_up(Refresh *refresh, Relation target, CodeColumn *column, ModelRow *row);
extern bool refresh_step(Refresh *refresh, bool (*step)(Refresh *, Relation));
extern void refresh_column(Refresh *refresh, Relation target, AttrNumber code);

/* walk.c */
extern void report_kept(Oid target, int64 rows);
extern void walk_codes(Refresh *refresh);
extern bool
walk_writes(Relation relation, ItemPointer row, const HashPlan *plan, Datum code, bool is_null);

/* worker.c: refreshes in the background */
extern void worker_init(void);
extern void worker_expect_rows(const ModelRow *row);
extern void worker_count_row(Oid model);
extern void worker_ask(Oid model);

/* functions of SQL that others look for by their address */
extern PGDLLEXPORT Datum sketcher_in(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum sketcher_columns(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum sketcher_hash_trigger(PG_FUNCTION_ARGS);

#endif /* UNIFDIAG_TABLE_H */

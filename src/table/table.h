/*
 * table.h
 *		Living in a table: a column of codes that triggers and sketcher_refresh keep true.
 *
 * The model table has one row, with the columns below in this order:
 *
 * published   sketcher   makes all codes; null until enough rows have been learnt
 * learning    sketcher   has learnt all rows that have been folded; null before the first
 * target      regclass   the user's table
 * pending     regclass   the table of what waits to be learnt
 * bits        integer
 * dims        integer    null until the first vector says
 * tracker, rotation, stable, center, forgetting, seed
 *                        the other options of sketcher_new
 * generation  bigint     how often a model was published
 * walk_table  regclass   where a refresh is: the table or partition; null if none is
 * walk_file   oid          unfinished; the table's file, whose change restarts it;
 * walk_page   bigint       the first page that is not done;
 * walk_since  bigint       the oldest transaction when the model was published
 *
 * A row of the pending table is what one transaction has inserted:
 *
 * rows        integer    how many vectors
 * vectors     real[]     rows x dims, or null, and then
 * delta       sketcher   has learnt them
 *
 * src/README.md has the whole picture: who finds what, locks, the order of things.
 */
#ifndef UNIFDIAG_TABLE_H
#define UNIFDIAG_TABLE_H

#include "access/htup.h"
#include "commands/trigger.h"
#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "storage/lock.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "../model/sketcher.h"

/* columns of the model table */
enum
{
	MODEL_PUBLISHED = 1,
	MODEL_LEARNING,
	MODEL_TARGET,
	MODEL_PENDING,
	MODEL_BITS,
	MODEL_DIMS,
	MODEL_TRACKER,
	MODEL_ROTATION,
	MODEL_STABLE,
	MODEL_CENTER,
	MODEL_FORGETTING,
	MODEL_SEED,
	MODEL_GENERATION,
	MODEL_WALK_TABLE,
	MODEL_WALK_FILE,
	MODEL_WALK_PAGE,
	MODEL_WALK_SINCE,
	MODEL_COLUMNS = MODEL_WALK_SINCE
};

/* columns of the pending table */
enum
{
	PENDING_ROWS = 1,
	PENDING_VECTORS,
	PENDING_DELTA,
	PENDING_COLUMNS = PENDING_DELTA
};

/* locks on a model table; src/README.md says in which order they are taken */
typedef enum ModelLock
{
	LOCK_FOLD = 1,
	LOCK_WORKER,
	LOCK_REFRESH,
	LOCK_PAUSES
} ModelLock;

/* The row of a model table. */
typedef struct Attachment
{
	Oid			model;
	Oid			target;
	Oid			pending;
	ModelConfig config; /* dims is 0 if it is not known yet */
	int64		generation;
	Datum		published; /* as stored, mostly a toast pointer; 0 if null */
	Datum		learning;
	Oid			walk_table; /* InvalidOid if there is no walk */
	Oid			walk_file;
	int64		walk_page;
	int64		walk_since;
	HeapTuple	tuple; /* all of it, to be changed */
} Attachment;

/* attachment.c: the model table */
extern Relation open_named(Oid table, LOCKMODE mode);
extern Oid		extension_schema(Oid function);
extern Oid		extension_type(Oid schema, const char *name);
extern bool		is_bithash_type(Oid type);
extern void		model_check(Relation model);
extern void		attachment_read(Relation model, Snapshot snapshot, Attachment *attachment);
extern void		attachment_read_latest(Oid model, Attachment *attachment);
extern void attachment_update(Oid model, const Attachment *attachment, int *columns, Datum *values,
							  bool *nulls, int count);
extern void pending_check(Relation pending);
extern void pending_check_owner(Oid pending, Oid model);
extern bool model_lock(Oid model, ModelLock lock, bool session, bool wait);
extern void model_unlock(Oid model, ModelLock lock);
extern bool model_is_locked(Oid model, ModelLock lock);

/* link.c: from triggers and columns to model tables */
extern Oid	link_of_trigger(TriggerData *trigger, bool teaches);
extern bool link_exists(Relation target, AttrNumber code, Oid schema);
extern Oid link_of_column(Relation target, const char *code_column, Oid schema, AttrNumber *vector);
extern List *link_triggers(Relation target, Oid schema, Oid model);
extern void	 link_record(Oid trigger, Oid model);
extern void	 link_reset(bool committed);
extern Oid	 table_owner(Oid table);

/* attach.c */
extern void table_check_owner(Relation target);

/* column.c: the vector column */
typedef struct VectorColumn
{
	bool	 by_cast;
	FmgrInfo cast; /* to real[] */
} VectorColumn;

extern void
vector_column_init(VectorColumn *column, Oid type, const char *name, MemoryContext context);
extern Vector vector_column_read(VectorColumn *column, Datum datum);

/* trigger.c: set while a refresh writes codes that it has made itself */
extern bool codes_are_made;

/* collect.c: what a transaction has inserted */
extern void collect_init(void);
extern void collect_row(const Attachment *attachment, Vector vector);

/* fold.c */
extern int64 pending_due(const ModelConfig *config);
extern int64 pending_size(Relation pending);
extern int64 pending_most(const ModelConfig *config);
extern bool	 fold_pending(Oid model, bool all);

/* worker.c */
extern void worker_launch(Oid model);

/* walk.c: codes of rows that are there already */
typedef struct Walk
{
	/* where and with what */
	Oid		   target;
	Oid		   model;
	Oid		   owner;
	AttrNumber vector; /* columns of the target; partitions may number them otherwise */
	AttrNumber code;
	Oid		   code_type;
	int		   batch;
	HashPlan  *plan;

	/* since when: rows of older transactions are seen by the first look */
	TransactionId		  since;
	VirtualTransactionId *writers; /* that may have used the model of before */
	int					  writer_count;

	/* the walk's own transactions, in order */
	TransactionId *own;
	int			   own_count;
	int			   own_room;

	/* how it goes */
	bool		skipped; /* a row that somebody else had locked */
	int64		pages;
	int64		pages_done;
	int64		looked_at;
	int64		changed;
	TimestampTz told;
} Walk;

extern List *walk_tables(Oid target);
extern void	 walk_note_writers(Walk *walk);
extern void	 walk_all(Walk *walk);
extern void	 walk_commit(void);

#endif /* UNIFDIAG_TABLE_H */

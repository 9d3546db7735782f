/*
 * worker.c
 *		The background worker that learns what has been committed, and clears up after it.
 *
 * Started by a writer that finds enough pending; one at a time for a model table.  It works
 * until little is left, stays a moment for more to come, and leaves.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "parser/parse_node.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "../compat.h"
#include "table.h"

/* it looks this often whether something is due, and leaves after so many looks in vain */
#define NAP_MILLISECONDS 5
#define MOST_NAPS 200

/* after so many it gives back the room that is not needed any longer */
#define NAPS_TO_TRUNCATE 20

/* how often, a millisecond apart, it tries to lock a table to truncate it */
#define TRUNCATE_TRIES 5

/* what was deleted so long ago, and cannot be removed, is held by an old transaction */
#define HOPE_MILLISECONDS 1000

/* a connection asks for a worker at most this often */
#define LAUNCH_MILLISECONDS 1000

typedef struct WorkerArguments
{
	Oid database;
	Oid model;
} WorkerArguments;

/* How things stand. */
typedef struct Learner
{
	Oid			  model;
	Oid			  pending;	 /* InvalidOid if the tables have been dropped */
	bool		  oversized; /* the pending table is larger than it should be */
	bool		  helps;	 /* would be smaller if writers made pauses, and they do */
	TransactionId mark;		 /* a fold, and when it was; to see whether vacuum gets on */
	TimestampTz	  mark_time;
} Learner;

StaticAssertDecl(sizeof(WorkerArguments) <= BGW_EXTRALEN, "arguments fit");

extern PGDLLEXPORT void unifdiag_worker_main(Datum argument);

/*
 * Asks for a worker.  Called when a transaction has just been committed, so it must not
 * fail: if there is no room for a worker, there will be a next time.
 */
void
worker_launch(Oid model)
{
	static Oid		   last_model = InvalidOid;
	static TimestampTz last_time = 0;
	const TimestampTz  now = GetCurrentTimestamp();
	BackgroundWorker   worker = {0};
	WorkerArguments	   arguments = {.database = MyDatabaseId, .model = model};

	if (last_model == model && !TimestampDifferenceExceeds(last_time, now, LAUNCH_MILLISECONDS))
		return;
	last_model = model;
	last_time = now;
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "unifdiag", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "unifdiag_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "unifdiag learner", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "unifdiag learner", sizeof(worker.bgw_type));
	memcpy(worker.bgw_extra, &arguments, sizeof(arguments));
	RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* VACUUM; truncating takes a lock that writers have to wait for, a moment. */
static void
vacuum_table(Oid table, bool truncate)
{
	MemoryContext context =
		AllocSetContextCreate(TopMemoryContext, "unifdiag vacuum", ALLOCSET_DEFAULT_SIZES);
	VacuumStmt *statement;
	char	   *name;

	StartTransactionCommand();
	/* where vacuum keeps what outlives its transactions; so must what it is told */
	PortalContext = context;
	MemoryContextSwitchTo(context);
	name = get_rel_name(table);
	if (name != NULL)
	{
		statement = makeNode(VacuumStmt);
		statement->is_vacuumcmd = true;
		statement->options =
			list_make1(makeDefElem("truncate", (Node *) makeString(truncate ? "on" : "off"), -1));
		statement->rels = list_make1(makeVacuumRelation(
			makeRangeVar(get_namespace_name(get_rel_namespace(table)), name, -1), table, NIL));
		PushActiveSnapshot(GetTransactionSnapshot());
		ExecVacuum(make_parsestate(NULL), statement, true);
	}
	CommitTransactionCommand();
	PortalContext = NULL;
	MemoryContextDelete(context);
}

/*
 * Truncates a table that has just been vacuumed, if the lock for that is to be had soon:
 * vacuum would try for seconds.
 */
static void
truncate_table(Oid table)
{
	LOCKTAG tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, table);
	for (int tries = 0; tries < TRUNCATE_TRIES; tries++)
	{
		bool locked;

		/* a lock that standbys are told of needs a transaction */
		StartTransactionCommand();
		locked = LockAcquire(&tag, AccessExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
		CommitTransactionCommand();
		if (locked)
		{
			vacuum_table(table, true);
			LockRelease(&tag, AccessExclusiveLock, true);
			return;
		}
		pg_usleep(1000);
	}
}

/* Notes how large the pending table is, and whether what was deleted there can be removed. */
static void
look_at_pending(Learner *learner, const Attachment *attachment)
{
	Relation		  pending = table_open(attachment->pending, AccessShareLock);
	const TimestampTz now = GetCurrentTimestamp();

	learner->pending = attachment->pending;
	learner->oversized = pending_size(pending) > pending_most(&attachment->config);
	if (!TransactionIdIsValid(learner->mark) ||
		TransactionIdPrecedes(learner->mark, GetOldestNonRemovableTransactionId(pending)))
	{
		learner->mark = GetCurrentTransactionIdIfAny();
		learner->mark_time = now;
	}
	table_close(pending, NoLock);
}

/* Learns what is pending, all or if it is due, in a transaction. */
static bool
fold_once(Learner *learner, bool all)
{
	bool folded = false;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	learner->pending = InvalidOid;
	/* it may have been dropped, and with the locks it is not any more */
	model_lock(learner->model, LOCK_FOLD, false, true);
	LockRelationOid(learner->model, RowExclusiveLock);
	if (get_rel_name(learner->model) != NULL)
	{
		Attachment attachment;

		attachment_read_latest(learner->model, &attachment);
		folded = fold_pending(learner->model, all);
		look_at_pending(learner, &attachment);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	return folded;
}

/*
 * Lets writers know whether pauses help.  They do not if an old transaction keeps vacuum
 * from removing anything: the pending table will grow then, however slow they are.
 */
static void
ask_for_pauses(Learner *learner)
{
	const bool helps =
		!TransactionIdIsValid(learner->mark) ||
		!TimestampDifferenceExceeds(learner->mark_time, GetCurrentTimestamp(), HOPE_MILLISECONDS);

	if (helps && !learner->helps)
		model_lock(learner->model, LOCK_PAUSES, true, false);
	else if (!helps && learner->helps)
		model_unlock(learner->model, LOCK_PAUSES);
	learner->helps = helps;
}

/* Learns what is due and clears up, until nothing has been due for a while. */
static void
learn_and_clear(Learner *learner, bool folded)
{
	for (int naps = 0; OidIsValid(learner->pending) && naps < MOST_NAPS;)
	{
		ask_for_pauses(learner);
		if (folded)
		{
			naps = 0;
			vacuum_table(learner->pending, false);
			vacuum_table(learner->model, learner->oversized && learner->helps);
			if (learner->oversized && learner->helps)
				truncate_table(learner->pending);
		}
		else
		{
			if (++naps == NAPS_TO_TRUNCATE)
			{
				/* the rush is over */
				vacuum_table(learner->pending, true);
				vacuum_table(learner->model, true);
			}
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 NAP_MILLISECONDS, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
		}
		CHECK_FOR_INTERRUPTS();
		folded = fold_once(learner, false);
	}
	/* the next worker may ask for them */
	if (learner->helps)
		model_unlock(learner->model, LOCK_PAUSES);
	learner->helps = false;
}

/*
 * A writer that has committed something due asks for a worker unless it sees that one has the
 * lock.  So the last look is after letting go of it: either the writer sees no lock, or we
 * see what it has committed.
 */
void
unifdiag_worker_main(Datum argument pg_attribute_unused())
{
	WorkerArguments arguments;
	Learner			learner = {0};
	bool			folded;

	memcpy(&arguments, MyBgworkerEntry->bgw_extra, sizeof(arguments));
	learner.model = arguments.model;
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(arguments.database, InvalidOid, 0);
	if (!model_lock(learner.model, LOCK_WORKER, true, false))
		proc_exit(0);
	pgstat_report_activity(STATE_RUNNING, "learning pending vectors");

	folded = fold_once(&learner, true);
	do
	{
		learn_and_clear(&learner, folded);
		model_unlock(learner.model, LOCK_WORKER);
		folded = OidIsValid(learner.pending) && fold_once(&learner, false);
	} while (folded && model_lock(learner.model, LOCK_WORKER, true, false));
	proc_exit(0);
}

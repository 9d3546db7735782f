/*
 * worker.c
 *		The background worker that learns what has been committed, and clears up after it.
 *
 * Started by a writer that finds enough pending; one at a time for a model table.  It works
 * until little is left, stays a moment for more to come, and leaves.
 */
#include "postgres.h"

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
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "../compat.h"
#include "table.h"

/* it looks this often whether something is due, and leaves after so many looks in vain */
#define NAP_MILLISECONDS 20
#define MOST_NAPS 50

/* after so many it gives back the room that is not needed any longer */
#define NAPS_TO_TRUNCATE 5

/* a connection asks for a worker at most this often */
#define LAUNCH_MILLISECONDS 1000

typedef struct WorkerArguments
{
	Oid database;
	Oid model;
} WorkerArguments;

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

/* VACUUM; truncating takes a lock that writers may have to wait for, a moment. */
static void
vacuum_table(Oid table, bool truncate)
{
	VacuumStmt *statement;
	char	   *name;

	StartTransactionCommand();
	/* vacuum outlives its transaction, and so must what it is told */
	MemoryContextSwitchTo(PortalContext);
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
}

static void
vacuum_both(Oid model, Oid pending, bool truncate)
{
	MemoryContext context =
		AllocSetContextCreate(TopMemoryContext, "unifdiag vacuum", ALLOCSET_DEFAULT_SIZES);

	/* where vacuum keeps what outlives its transactions */
	PortalContext = context;
	vacuum_table(pending, truncate);
	vacuum_table(model, truncate);
	PortalContext = NULL;
	MemoryContextDelete(context);
}

/* One fold, if due, in a transaction; tells the pending table. */
static bool
fold_once(Oid model, bool all, Oid *pending)
{
	bool folded = false;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	*pending = InvalidOid;
	/* it may have been dropped, and with the locks it is not any more */
	model_lock(model, LOCK_FOLD, false, true);
	LockRelationOid(model, RowExclusiveLock);
	if (get_rel_name(model) != NULL)
	{
		Attachment attachment;

		attachment_read_latest(model, &attachment);
		*pending = attachment.pending;
		folded = fold_pending(model, all);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	return folded;
}

void
unifdiag_worker_main(Datum argument pg_attribute_unused())
{
	WorkerArguments arguments;
	Oid				pending = InvalidOid;
	bool			folded;

	memcpy(&arguments, MyBgworkerEntry->bgw_extra, sizeof(arguments));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(arguments.database, InvalidOid, 0);
	if (!model_lock(arguments.model, LOCK_WORKER, true, false))
		proc_exit(0);
	pgstat_report_activity(STATE_RUNNING, "learning pending vectors");

	folded = fold_once(arguments.model, true, &pending);
	for (int naps = 0; OidIsValid(pending) && naps < MOST_NAPS;)
	{
		if (folded)
		{
			naps = 0;
			vacuum_both(arguments.model, pending, false);
		}
		else
		{
			/* the rush is over */
			if (++naps == NAPS_TO_TRUNCATE)
				vacuum_both(arguments.model, pending, true);
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 NAP_MILLISECONDS, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
		}
		CHECK_FOR_INTERRUPTS();
		folded = fold_once(arguments.model, false, &pending);
	}
	proc_exit(0);
}

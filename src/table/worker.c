/*
 * worker.c
 *		Refreshes in the background.  A connection counts the rows that its triggers have
 *		hashed; when they are enough, the commit starts a background worker, which refreshes
 *		the column as the table's owner, and exits.
 *
 * One worker runs in a database at a time.  If there is one, or none to be had, nothing is
 * lost: the next commit of the connection asks again, and anybody can call sketcher_refresh.
 */
#include "postgres.h"

#include "access/xact.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

#include "table.h"

/* a connection asks for a worker at most this often */
#define ASK_MILLISECONDS 1000

/* how often, and how many milliseconds apart, a worker tries to be the only one */
#define LOCK_TRIES 20
#define LOCK_NAP 10

/* rows that a refresh changes in one transaction */
#define WORKER_BATCH 1000

/* The rows that this connection has hashed for the model table that it hashed for last. */
typedef struct Count
{
	Oid	  model;
	Oid	  lock; /* what a worker locks to be the only one: the trigger function's oid */
	int64 rows;
	int64 threshold;
} Count;

/* What a worker is told. */
typedef struct WorkerArguments
{
	Oid database;
	Oid owner;
	Oid model;
	Oid lock;
} WorkerArguments;

StaticAssertDecl(sizeof(WorkerArguments) <= BGW_EXTRALEN, "arguments fit");

static Count		   count;
static WorkerArguments wanted; /* model: InvalidOid if none is wanted */
static bool			   in_worker = false;

extern PGDLLEXPORT void unifdiag_worker_main(Datum argument);

/* Counts a row that was hashed; after so many it is time for a refresh. */
void
worker_count_row(const CodeColumn *column, int64 threshold)
{
	uint64 random;

	if (count.model != column->model)
	{
		/* many short connections ask as often as one that stays: each starts somewhere */
		if (!pg_strong_random(&random, sizeof(random)))
			random = 0;
		count.model = column->model;
		count.lock = column->function;
		count.rows = (int64) (random % (uint64) threshold);
	}
	count.threshold = threshold;
	count.rows++;
}

/*
 * Finds out, before the commit, while errors do no harm, whether a worker is wanted.  The
 * lock says that none is running, nor about to be started by somebody else.
 */
static void
choose(void)
{
	static TimestampTz last = 0;
	const TimestampTz  now = GetCurrentTimestamp();

	wanted.model = InvalidOid;
	if (in_worker || !OidIsValid(count.model) || count.rows < count.threshold ||
		!TimestampDifferenceExceeds(last, now, ASK_MILLISECONDS))
		return;
	last = now;
	if (get_rel_name(count.model) != NULL &&
		ConditionalLockRelationOid(count.lock, ShareUpdateExclusiveLock))
	{
		wanted.database = MyDatabaseId;
		wanted.owner = table_owner(count.model);
		wanted.model = count.model;
		wanted.lock = count.lock;
		count.rows = 0;
	}
}

/* Starts a worker.  The transaction has been committed, so nothing in here may fail. */
static void
launch(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "unifdiag", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "unifdiag_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "unifdiag refresh", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "unifdiag refresh", sizeof(worker.bgw_type));
	memcpy(worker.bgw_extra, &wanted, sizeof(wanted));
	(void) RegisterDynamicBackgroundWorker(&worker, NULL);
}

static void
at_transaction(XactEvent event, void *argument pg_attribute_unused())
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			choose();
			break;
		case XACT_EVENT_COMMIT:
			if (OidIsValid(wanted.model))
				launch();
			wanted.model = InvalidOid;
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			wanted.model = InvalidOid;
			break;
		default:
			break;
	}
}

void
worker_init(void)
{
	RegisterXactCallback(at_transaction, NULL);
}

/* Is this the only worker?  It stays so until it lets go of the lock. */
static bool
become_only_worker(LockRelId *lock)
{
	for (int tries = 0; tries < LOCK_TRIES; tries++)
	{
		/* who has started us may still be about to commit */
		if (ConditionalLockRelationOid(lock->relId, ShareUpdateExclusiveLock))
		{
			LockRelationIdForSession(lock, ShareUpdateExclusiveLock);
			return true;
		}
		pg_usleep(LOCK_NAP * 1000L);
	}
	return false;
}

/* Finds the column that belongs to a model table; false if there is none any more. */
static bool
find_work(const WorkerArguments *arguments, Refresh *refresh)
{
	CodeColumn column;
	ModelRow   row;
	Relation   target;
	bool	   found;

	if (get_rel_name(arguments->model) == NULL)
		return false;
	model_row_get(arguments->model, &row);
	target = open_named(DatumGetObjectId(ROW_VALUE(&row, TARGET)), AccessShareLock);
	check_table_owner(target);
	found = !ROW_IS_NULL(&row, AUTO_REFRESH) &&
			find_code_column(target, InvalidAttrNumber, arguments->model, &column);
	if (found)
	{
		get_code_column(target, column.code, &column);
		refresh->target = RelationGetRelid(target);
		refresh->owner = target->rd_rel->relowner;
		refresh->code = column.code;
		refresh->min_drift = DatumGetFloat8(ROW_VALUE(&row, AUTO_REFRESH));
		refresh->batch = WORKER_BATCH;
	}
	table_close(target, AccessShareLock);
	return found;
}

/* Settings of the owner or the database must not keep a refresh from its work. */
static void
set_settings(void)
{
	static const char *const settings[][2] = {{"search_path", ""},
											  {"default_transaction_isolation", "read committed"},
											  {"default_transaction_read_only", "off"},
											  {"statement_timeout", "0"},
											  {"lock_timeout", "10min"},
											  {"idle_in_transaction_session_timeout", "0"}};

	for (int i = 0; i < (int) lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_USERSET, PGC_S_SESSION);
}

void
unifdiag_worker_main(Datum argument pg_attribute_unused())
{
	WorkerArguments arguments;
	LockRelId		lock;
	Refresh			refresh = {0};

	in_worker = true;
	memcpy(&arguments, MyBgworkerEntry->bgw_extra, sizeof(arguments));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	connect_as(arguments.database, arguments.owner);
	set_settings();
	StartTransactionCommand();
	lock.relId = arguments.lock;
	lock.dbId = MyDatabaseId;
	if (become_only_worker(&lock))
	{
		SPI_connect_ext(SPI_OPT_NONATOMIC);
		PushActiveSnapshot(GetTransactionSnapshot());
		if (find_work(&arguments, &refresh))
		{
			PopActiveSnapshot();
			refresh_column(&refresh, arguments.model);
		}
		else
			PopActiveSnapshot();
		SPI_finish();
		UnlockRelationIdForSession(&lock, ShareUpdateExclusiveLock);
	}
	CommitTransactionCommand();
	proc_exit(0);
}

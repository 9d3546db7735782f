/*
 * worker.c
 *		Refreshes in the background.  A connection counts the rows that its triggers have
 *		hashed; when they are enough, the commit starts a background worker, which refreshes
 *		the column as the table's owner, and exits.
 *
 * One worker runs in a database at a time.  If one runs already, or none can be started, nothing
 * is lost: a worker goes on until few rows are new, the next commit of the connection asks again,
 * and the owner can call sketcher_refresh.
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

/* a connection looks at a threshold, and asks for a worker, at most this often */
#define ASK_MILLISECONDS 1000

/* rows that a refresh changes in one transaction */
#define WORKER_BATCH 1000

/* What a worker is told. */
typedef struct WorkerArguments
{
	Oid database;
	Oid owner;
	Oid model;
	Oid lock; /* what it locks to be the only one: the trigger function's oid */
} WorkerArguments;

StaticAssertDecl(sizeof(WorkerArguments) <= BGW_EXTRALEN, "arguments fit");

/* the rows that this connection has hashed for the model table that it hashed for last */
static WorkerArguments worker;
static int64		   rows_hashed;
static int64		   rows_wanted;

static bool wanted = false;
static bool in_worker = false;

extern PGDLLEXPORT void unifdiag_worker_main(Datum argument);

/* Rows to refresh after: a tenth of those that were learnt, and enough for a first model. */
static int64
threshold_of(const ModelRow *row)
{
	int	  bits;
	int64 rows;

	sketcher_peek(ROW_VALUE(row, LEARNING), &bits, &rows);
	return Max(bits, rows / 10);
}

/* The same, remembered for a while: reading it takes longer than making a code. */
int64
worker_threshold(const ModelRow *row)
{
	static Oid		   model = InvalidOid;
	static int64	   threshold;
	static TimestampTz read_at;
	const TimestampTz  now = GetCurrentStatementStartTimestamp();

	if (model != row->model || TimestampDifferenceExceeds(read_at, now, ASK_MILLISECONDS))
	{
		threshold = threshold_of(row);
		model = row->model;
		read_at = now;
	}
	return threshold;
}

/* Counts a row that was hashed; after so many it is time for a refresh. */
void
worker_count_row(const CodeColumn *column, int64 threshold)
{
	uint64 random;

	if (worker.model != column->model)
	{
		/* a random start: many short connections then ask as often as one long one */
		if (!pg_strong_random(&random, sizeof(random)))
			random = 0;
		worker.model = column->model;
		worker.lock = column->function;
		rows_hashed = (int64) (random % (uint64) threshold);
	}
	rows_wanted = threshold;
	rows_hashed++;
}

/*
 * Finds out whether to start a worker: not if one is running.  This is before the commit, when
 * errors do no harm yet.
 */
static bool
is_wanted(void)
{
	static TimestampTz last = 0;
	const TimestampTz  now = GetCurrentTimestamp();

	if (in_worker || !OidIsValid(worker.model) || rows_hashed < rows_wanted ||
		!TimestampDifferenceExceeds(last, now, ASK_MILLISECONDS))
		return false;
	last = now;
	if (!ConditionalLockRelationOid(worker.lock, ShareUpdateExclusiveLock))
		return false;
	UnlockRelationOid(worker.lock, ShareUpdateExclusiveLock);
	/* by locking we have heard of all tables that were dropped */
	if (get_rel_name(worker.model) == NULL)
		return false;
	worker.database = MyDatabaseId;
	worker.owner = table_owner(worker.model);
	rows_hashed = 0;
	return true;
}

/* Starts a worker.  The transaction has been committed, so nothing in here may fail. */
static void
launch(void)
{
	BackgroundWorker process = {0};

	process.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	process.bgw_start_time = BgWorkerStart_RecoveryFinished;
	process.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(process.bgw_library_name, "unifdiag", sizeof(process.bgw_library_name));
	strlcpy(process.bgw_function_name, "unifdiag_worker_main", sizeof(process.bgw_function_name));
	strlcpy(process.bgw_name, "unifdiag refresh", sizeof(process.bgw_name));
	strlcpy(process.bgw_type, "unifdiag refresh", sizeof(process.bgw_type));
	memcpy(process.bgw_extra, &worker, sizeof(worker));
	(void) RegisterDynamicBackgroundWorker(&process, NULL);
}

static void
at_transaction(XactEvent event, void *argument pg_attribute_unused())
{
	if (event == XACT_EVENT_COMMIT && wanted)
		launch();
	wanted = event == XACT_EVENT_PRE_COMMIT && is_wanted();
}

void
worker_init(void)
{
	RegisterXactCallback(at_transaction, NULL);
}

/*
 * Refreshes the column that belongs to a model table, if there still is one; true if so many
 * rows were new that another refresh is due.
 */
static bool
refresh_once(Oid model)
{
	Refresh	   refresh = {.batch = WORKER_BATCH};
	CodeColumn column;
	ModelRow   row;
	Relation   target;
	int64	   threshold;

	if (get_rel_name(model) == NULL)
		return false;
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) model_row_get(model, GetActiveSnapshot(), false, &row);
	threshold = threshold_of(&row);
	PopActiveSnapshot();
	target = open_named(DatumGetObjectId(ROW_VALUE(&row, TARGET)), AccessShareLock);
	if (ROW_IS_NULL(&row, AUTO_REFRESH) ||
		!find_code_column(target, InvalidAttrNumber, model, &column))
	{
		table_close(target, AccessShareLock);
		return false;
	}
	refresh.min_drift = DatumGetFloat8(ROW_VALUE(&row, AUTO_REFRESH));
	refresh_column(&refresh, target, column.code);
	return refresh.learnt >= threshold;
}

/* Settings of the owner or the database must not keep a refresh from its work. */
static void
set_settings(void)
{
	static const char *const settings[][2] = {{"search_path", ""},
											  {"default_transaction_isolation", "read committed"},
											  {"default_transaction_read_only", "off"},
											  {"statement_timeout", "0"},
											  {"transaction_timeout", "0"},
											  {"lock_timeout", "10min"},
											  {"idle_in_transaction_session_timeout", "0"}};

	/* not all servers have each of them */
	for (int i = 0; i < (int) lengthof(settings); i++)
	{
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_USERSET, PGC_S_SESSION);
	}
}

void
unifdiag_worker_main(Datum argument pg_attribute_unused())
{
	LockRelId lock;
	Oid		  model;

	in_worker = true;
	memcpy(&worker, MyBgworkerEntry->bgw_extra, sizeof(worker));
	model = worker.model;
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	connect_as(worker.database, worker.owner);
	set_settings();
	StartTransactionCommand();
	lock.relId = worker.lock;
	lock.dbId = MyDatabaseId;
	if (ConditionalLockRelationOid(lock.relId, ShareUpdateExclusiveLock))
	{
		LockRelationIdForSession(&lock, ShareUpdateExclusiveLock);
		SPI_connect_ext(SPI_OPT_NONATOMIC);
		while (refresh_once(model))
			;
		SPI_finish();
		UnlockRelationIdForSession(&lock, ShareUpdateExclusiveLock);
	}
	CommitTransactionCommand();
	proc_exit(0);
}

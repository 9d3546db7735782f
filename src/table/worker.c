/*
 * worker.c
 *		Refreshes in the background.  A connection counts the rows that its triggers have
 *		hashed; when they are enough, the commit starts a background worker, which refreshes
 *		the column as the table's owner, and exits.
 *
 * For each owner one worker runs in a database at a time, so that nobody can keep the tables of others
 * from being refreshed.  If one runs already, or none can be started, nothing is lost: the next commit
 * of the connection asks again, and the owner can call sketcher_refresh.
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

/* model tables for which a connection counts rows; with more of them, it begins anew now and then */
#define COUNTERS 16

/* What a worker is told. */
typedef struct WorkerArguments
{
	Oid database;
	Oid owner; /* whose oid it locks, to be the only one */
	Oid model;
} WorkerArguments;

StaticAssertDecl(sizeof(WorkerArguments) <= BGW_EXTRALEN, "arguments fit");

/* The rows that this connection has hashed for a model table since it last asked for a worker. */
typedef struct Counter
{
	Oid			model;
	int64		hashed;
	int64		threshold; /* rows after which a refresh is due; 0 if it is not known yet */
	TimestampTz read_at;   /* when that was looked up */
} Counter;

static Counter		   counters[COUNTERS];
static Counter		  *due = NULL; /* for which this commit starts a worker */
static WorkerArguments worker;
static bool			   in_worker = false;

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

/* The counter of a model table; a new one takes the place of another. */
static Counter *
counter_of(Oid model)
{
	static int next = 0;

	for (int i = 0; i < COUNTERS; i++)
	{
		if (counters[i].model == model)
			return &counters[i];
	}
	next = (next + 1) % COUNTERS;
	counters[next] = (Counter) {.model = model};
	return &counters[next];
}

/* Looks up when a refresh will be due, if that was long ago: reading it takes longer than making a code. */
void
worker_expect_rows(const ModelRow *row)
{
	Counter			 *counter = counter_of(row->model);
	const TimestampTz now = GetCurrentStatementStartTimestamp();
	const bool		  is_first = counter->threshold == 0;
	uint64			  random;

	if (!is_first && !TimestampDifferenceExceeds(counter->read_at, now, ASK_MILLISECONDS))
		return;
	counter->threshold = threshold_of(row);
	counter->read_at = now;
	/* a random start: many short connections then ask as often as one long one */
	if (is_first && pg_strong_random(&random, sizeof(random)))
		counter->hashed = (int64) (random % (uint64) counter->threshold);
}

/* Counts a row that was hashed. */
void
worker_count_row(Oid model)
{
	counter_of(model)->hashed++;
}

/* Wants a refresh as soon as the transaction commits. */
void
worker_ask(Oid model)
{
	Counter *counter = counter_of(model);

	counter->hashed = counter->threshold = 1;
}

static bool
is_due(const Counter *counter)
{
	return OidIsValid(counter->model) && counter->threshold > 0 &&
		   counter->hashed >= counter->threshold;
}

/* Prepares what a worker is told; false if the owner has one, or the table is gone or locked. */
static bool
prepare_worker(Counter *counter)
{
	const Oid model = counter->model;

	/* by locking we hear of all tables that were dropped */
	if (!ConditionalLockRelationOid(model, AccessShareLock))
		return false;
	if (get_rel_name(model) == NULL)
	{
		counter->model = InvalidOid;
		return false;
	}
	worker.database = MyDatabaseId;
	worker.owner = table_owner(model);
	worker.model = model;
	if (!ConditionalLockRelationOid(worker.owner, ShareUpdateExclusiveLock))
		return false;
	UnlockRelationOid(worker.owner, ShareUpdateExclusiveLock);
	return true;
}

/* For which model table to start a worker.  This is before the commit, when errors do no harm yet. */
static Counter *
find_due(void)
{
	static TimestampTz last = 0;
	int				   i = 0;

	while (i < COUNTERS && !is_due(&counters[i]))
		i++;
	if (in_worker || i == COUNTERS ||
		!TimestampDifferenceExceeds(last, GetCurrentTimestamp(), ASK_MILLISECONDS))
		return NULL;
	last = GetCurrentTimestamp();
	for (; i < COUNTERS; i++)
	{
		if (is_due(&counters[i]) && prepare_worker(&counters[i]))
			return &counters[i];
	}
	return NULL;
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
	if (RegisterDynamicBackgroundWorker(&process, NULL))
		due->hashed = 0;
}

static void
at_transaction(XactEvent event, void *argument pg_attribute_unused())
{
	if (event == XACT_EVENT_COMMIT && due != NULL)
		launch();
	due = event == XACT_EVENT_PRE_COMMIT ? find_due() : NULL;
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
	lock.relId = worker.owner;
	lock.dbId = MyDatabaseId;
	/* two connections may have asked for a worker at the same time */
	if (lock_for_session(&lock))
	{
		SPI_connect_ext(SPI_OPT_NONATOMIC);
		while (refresh_once(model))
			;
		SPI_finish();
		UnlockRelationIdForSession(&lock, ShareUpdateExclusiveLock);
	}
	CommitTransactionCommand();
	proc_exit(0);
}

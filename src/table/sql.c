/*
 * sql.c
 *		Runs statements through SPI, as the owner of a table, every name qualified.
 */
#include "postgres.h"

#include "storage/lmgr.h"
#include "utils/guc.h"

#include "table.h"

/* how often, and how many milliseconds apart, a lock is tried */
#define LOCK_TRIES 20
#define LOCK_NAP 50

/*
 * What the table's owner has defined (triggers, casts, domains, index expressions) runs with
 * the owner's rights, whoever calls.  So the caller does not choose where names are looked up,
 * and nothing is left behind that would run with the caller's rights: neither deferred triggers
 * nor settings.  An error ends this by itself.
 */
SqlUser
become_user(Oid user)
{
	SqlUser before;

	GetUserIdAndSecContext(&before.user, &before.context);
	before.settings = NewGUCNestLevel();
	/* by RESET ROLE it would be the session's user */
	if (user != before.user || user != GetSessionUserId())
	{
		SetUserIdAndSecContext(user, before.context | SECURITY_LOCAL_USERID_CHANGE |
										 SECURITY_RESTRICTED_OPERATION);
		RestrictSearchPath();
	}
	return before;
}

void
restore_user(SqlUser before)
{
	AtEOXact_GUC(false, before.settings);
	SetUserIdAndSecContext(before.user, before.context);
}

/* The quoted name of a table. */
char *
sql_relation(Oid relation)
{
	const char *name = get_rel_name(relation);

	if (name == NULL)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("table with OID %u does not exist", relation));
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name);
}

/* Runs a statement. */
void
sql_run(const char *statement)
{
	if (SPI_execute(statement, false, 0) < 0)
		elog(ERROR, "could not execute: %s", statement);
}

/* Tries for a while to get a lock that nobody shares, and to keep it from transaction to transaction. */
bool
lock_for_session(LockRelId *lock)
{
	for (int tries = 0; !ConditionalLockRelationOid(lock->relId, ShareUpdateExclusiveLock); tries++)
	{
		if (tries == LOCK_TRIES)
			return false;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(LOCK_NAP * 1000L);
	}
	LockRelationIdForSession(lock, ShareUpdateExclusiveLock);
	return true;
}

/*
 * Commits, and goes on in a transaction that sees at each statement what is committed then,
 * whatever the session's default is: a refresh is made of small changes that stand alone.
 */
void
next_transaction(void)
{
	SPI_commit();
	(void) set_config_option("transaction_isolation", "read committed", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

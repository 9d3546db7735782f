/*
 * sql.c
 *		Runs statements through SPI, as the owner of a table.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "../compat.h"
#include "sql.h"

/*
 * What the table's owner has defined (triggers, casts, index expressions) runs with the
 * owner's rights, whoever calls, and leaves nothing behind that would run with the caller's:
 * neither deferred triggers nor settings.  An error ends this by itself.
 */
SqlUser
sql_become(Oid user)
{
	SqlUser before;

	GetUserIdAndSecContext(&before.user, &before.context);
	before.settings = NewGUCNestLevel();
	if (user != before.user)
		SetUserIdAndSecContext(user, before.context | SECURITY_LOCAL_USERID_CHANGE |
										 SECURITY_RESTRICTED_OPERATION);
	return before;
}

void
sql_become_again(SqlUser before)
{
	AtEOXact_GUC(false, before.settings);
	SetUserIdAndSecContext(before.user, before.context);
}

/* The quoted name of a table. */
char *
sql_relation(Oid relation)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
									  get_rel_name(relation));
}

/* Runs a statement; SPI has its result. */
void
sql_run(const char *format, ...)
{
	StringInfoData statement;
	int			   needed = 1;

	initStringInfo(&statement);
	while (needed > 0)
	{
		va_list arguments;

		va_start(arguments, format);
		needed = appendStringInfoVA(&statement, format, arguments);
		va_end(arguments);
		if (needed > 0)
			enlargeStringInfo(&statement, needed);
	}
	if (SPI_execute(statement.data, false, 0) < 0)
		elog(ERROR, "could not execute: %s", statement.data);
	pfree(statement.data);
}

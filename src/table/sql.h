/*
 * sql.h
 *		Statements that attach and refresh run: as the owner of a table, every name
 *		qualified, so that no search path matters.
 */
#ifndef UNIFDIAG_SQL_H
#define UNIFDIAG_SQL_H

typedef struct SqlUser
{
	Oid user;
	int context;
	int settings; /* the level of nesting */
} SqlUser;

extern SqlUser sql_become(Oid user);
extern void	   sql_become_again(SqlUser before);
extern char	  *sql_relation(Oid relation);
extern void	   sql_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* UNIFDIAG_SQL_H */

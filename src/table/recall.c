/*
 * recall.c
 *		sketcher_recall: how many of the true nearest rows codes find.
 *
 * One statement, with the caller's rights.  Some rows serve as queries.  They are drawn by a hash of
 * their TIDs, so that they are the same each time.  It does not matter which of several rows at the
 * same distance are found, so distances are compared.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"

#include "table.h"

#define MOST 10000

/* %1 table, %2 vector column, %3 code column, %4 the extension's schema, %5 ONLY or nothing */
static const char statement[] =
	"WITH queries AS MATERIALIZED (SELECT r.tableoid AS t, r.ctid AS c, r.%2$s::real[] AS v, "
	"r.%3$s AS "
	"code FROM %5$s%1$s AS r "
	"WHERE r.%2$s IS NOT NULL AND r.%3$s IS NOT NULL "
	"ORDER BY pg_catalog.hashtextextended(pg_catalog.concat(r.tableoid, r.ctid), 20180415) LIMIT "
	"$3) "
	"SELECT pg_catalog.sum(LEAST(found, known))::float8 OPERATOR(pg_catalog./) "
	"NULLIF(pg_catalog.sum(known), 0)::float8 FROM queries AS q "
	"CROSS JOIN LATERAL (SELECT pg_catalog.count(*) AS known, pg_catalog.max(d) AS farthest FROM ("
	"SELECT %4$s.real_l2_distance(r.%2$s::real[], q.v) AS d FROM %5$s%1$s AS r "
	"WHERE r.%2$s IS NOT NULL "
	"AND (r.tableoid OPERATOR(pg_catalog.<>) q.t OR r.ctid OPERATOR(pg_catalog.<>) q.c) ORDER BY 1 "
	"LIMIT $1) AS near) AS truth "
	"CROSS JOIN LATERAL (SELECT pg_catalog.count(*) AS found FROM (SELECT r.%2$s AS v "
	"FROM %5$s%1$s AS r WHERE r.%3$s IS NOT NULL AND r.%2$s IS NOT NULL "
	"AND (r.tableoid OPERATOR(pg_catalog.<>) q.t OR r.ctid OPERATOR(pg_catalog.<>) q.c) "
	"ORDER BY r.%3$s OPERATOR(%4$s.<~>) q.code LIMIT $2) AS candidate "
	"WHERE %4$s.real_l2_distance(candidate.v::real[], q.v) OPERATOR(pg_catalog.<=) truth.farthest) "
	"AS candidates";

static Datum
checked_number(FunctionCallInfo fcinfo, int argument, const char *name)
{
	const int32 number = PG_GETARG_INT32(argument);

	if (number < 1 || number > MOST)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s must be between 1 and %d", name, MOST));
	return Int32GetDatum(number);
}

PG_FUNCTION_INFO_V1(sketcher_recall);
Datum
sketcher_recall(PG_FUNCTION_ARGS)
{
	Relation	target = open_named(PG_GETARG_OID(0), AccessShareLock);
	const char *vector = NameStr(*PG_GETARG_NAME(1));
	const char *code = NameStr(*PG_GETARG_NAME(2));
	const char *schema =
		quote_identifier(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid)));
	char *query = psprintf(statement, sql_relation(RelationGetRelid(target)),
						   quote_identifier(vector), quote_identifier(code), schema,
						   target->rd_rel->relkind == RELKIND_RELATION ? "ONLY " : "");
	Oid	  types[] = {INT4OID, INT4OID, INT4OID};
	Datum values[] = {checked_number(fcinfo, 3, "k"), checked_number(fcinfo, 4, "candidates"),
					  checked_number(fcinfo, 5, "queries")};
	bool  is_null;
	Datum share;

	(void) column_number(target, vector);
	(void) column_number(target, code);
	table_close(target, NoLock);
	SPI_connect();
	if (SPI_execute_with_args(query, lengthof(types), types, values, NULL, true, 1) !=
			SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not execute: %s", query);
	share = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
	/* a copy outlives what SPI_finish frees, also where it is no value by itself */
	share = is_null ? share : SPI_datumTransfer(share, FLOAT8PASSBYVAL, sizeof(float8));
	SPI_finish();
	if (is_null)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(share);
}

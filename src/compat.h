/*
 * compat.h
 *		Every difference between the PostgreSQL versions that we support, 14 to 19.
 *
 * Other files are written for the newest version; this one makes up for what the
 * older ones lack.  No other file looks at PG_VERSION_NUM.
 */
#ifndef UNIFDIAG_COMPAT_H
#define UNIFDIAG_COMPAT_H

#if PG_VERSION_NUM < 140000
#error "unifdiag needs PostgreSQL 14 or later"
#endif

#if PG_VERSION_NUM >= 160000
/* varatt.h was split off postgres.h */
#include "varatt.h"
#else
/* 16 declares this one itself */
extern PGDLLEXPORT void _PG_init(void);

/* 16 brought input errors that a caller may ask to be reported softly */
struct Node;
#define ereturn(context, dummy_value, ...) \
	do \
	{ \
		(void) (context); \
		ereport(ERROR, __VA_ARGS__); \
		return dummy_value; \
	} while (0)
#endif

/* 16 has one function for owners of all kinds of objects */
#if PG_VERSION_NUM >= 160000
#define owns_relation(relation, role) object_ownercheck(RelationRelationId, relation, role)
#else
#define owns_relation(relation, role) pg_class_ownercheck(relation, role)
#endif

/* 16 renamed what names a relation's files */
#if PG_VERSION_NUM >= 160000
#define relation_locator(relation) ((relation)->rd_locator)
#else
#define relation_locator(relation) ((relation)->rd_node)
#endif

/* 16 brought a way to extend a relation that locks as little as it has to; the page is locked */
#if PG_VERSION_NUM >= 160000
#define extend_relation(relation, fork, buffer) \
	(*(buffer) = ExtendBufferedRel(BMR_REL(relation), fork, NULL, EB_LOCK_FIRST))
#else
#define extend_relation(relation, fork, buffer) \
	do \
	{ \
		LockRelationForExtension(relation, ExclusiveLock); \
		*(buffer) = ReadBufferExtended(relation, fork, P_NEW, RBM_NORMAL, NULL); \
		LockBuffer(*(buffer), BUFFER_LOCK_EXCLUSIVE); \
		UnlockRelationForExtension(relation, ExclusiveLock); \
	} while (0)
#endif

/* 16 lets the caller of this say whether it wants a copy of its own; numbers need none */
#if PG_VERSION_NUM >= 160000
#define get_sorted_number(state, value, isnull) \
	tuplesort_getdatum(state, true, false, value, isnull, NULL)
#else
#define get_sorted_number(state, value, isnull) tuplesort_getdatum(state, true, value, isnull, NULL)
#endif

/* 17 brought this: what runs with the rights of an owner sees no schema that its caller has chosen */
#if PG_VERSION_NUM < 170000
#define RestrictSearchPath() \
	((void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, \
							  GUC_ACTION_SAVE, true, 0, false))
#endif

/*
 * The versions with which src/index was tested to use what is not meant for extensions: the form of
 * generic WAL records (log.c), and where buffers are in memory (recent.c).  With others it does
 * without, and so it does everywhere if unifdiag.private_interfaces is off.
 */
#define PRIVATE_INTERFACES_TESTED (PG_VERSION_NUM < 200000)

/* 17 brought a way to read pages ahead, and one to write the pages of a new relation */
#if PG_VERSION_NUM >= 170000
#define HAVE_READ_STREAM
#define HAVE_BULK_WRITE
#endif

/* 18 brought this specifier, tells the delays of VACUUM and ANALYZE apart, counts searches */
#if PG_VERSION_NUM >= 180000
#define vacuum_pause() vacuum_delay_point(false)
#define count_index_scan(scan) \
	do \
	{ \
		pgstat_count_index_scan((scan)->indexRelation); \
		if ((scan)->instrument != NULL) \
			(scan)->instrument->nsearches++; \
	} while (0)
#else
#define pg_noreturn pg_attribute_noreturn()
#define vacuum_pause() vacuum_delay_point()
#define count_index_scan(scan) pgstat_count_index_scan((scan)->indexRelation)
#endif

/* 19 keeps the pointer that an access method's handler returns; before, it was freed */
#if PG_VERSION_NUM >= 190000
#define return_am_routine(routine) PG_RETURN_POINTER(&(routine))
#else
#define return_am_routine(routine) \
	PG_RETURN_POINTER(memcpy(palloc(sizeof(routine)), &(routine), sizeof(routine)))
#endif

/* the bytes that base64.h encodes were char before 18 */
#if PG_VERSION_NUM >= 180000
typedef uint8 Base64Byte;
#else
typedef char Base64Byte;
#endif

/* 18 lets the caller of this count what it does */
#if PG_VERSION_NUM >= 180000 && PG_VERSION_NUM < 190000
#define begin_ordered_scan(table, index, snapshot) \
	index_beginscan(table, index, snapshot, NULL, 0, 1)
#elif PG_VERSION_NUM < 180000
#define begin_ordered_scan(table, index, snapshot) index_beginscan(table, index, snapshot, 0, 1)
#endif

/* 19 lets the caller of these add flags */
#if PG_VERSION_NUM >= 190000
#define begin_index_fetch(table) table_index_fetch_begin(table, SO_NONE)
#define begin_tidrange_scan(relation, snapshot, first, last) \
	table_beginscan_tidrange(relation, snapshot, first, last, SO_NONE)
#define begin_ordered_scan(table, index, snapshot) \
	index_beginscan(table, index, snapshot, NULL, 0, 1, SO_NONE)
#else
#define begin_index_fetch(table) table_index_fetch_begin(table)
#define begin_tidrange_scan(relation, snapshot, first, last) \
	table_beginscan_tidrange(relation, snapshot, first, last)
#endif

/*
 * A background worker connects as a role, which need not be allowed to log in.  Before 17 that
 * takes a connection without a role, which becomes that role, and stays it; become_user keeps what
 * the role has defined from becoming more.
 */
#if PG_VERSION_NUM >= 170000
#define connect_as(database, role) \
	BackgroundWorkerInitializeConnectionByOid(database, role, BGWORKER_BYPASS_ROLELOGINCHECK)
#else
#define connect_as(database, role) \
	do \
	{ \
		BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0); \
		SetUserIdAndSecContext(role, 0); \
	} while (0)
#endif

#if PG_VERSION_NUM < 150000
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/sortsupport.h"

/* 15 brought this for functions that return a set, whole */
static inline void
InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags pg_attribute_unused())
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext  caller;

	if (result == NULL || !IsA(result, ReturnSetInfo) ||
		(result->allowedModes & SFRM_Materialize) == 0)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("set-valued function called in context that cannot accept a set"));
	caller = MemoryContextSwitchTo(result->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &result->setDesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	result->returnMode = SFRM_Materialize;
	result->setResult = tuplestore_begin_heap((result->allowedModes & SFRM_Materialize_Random) != 0,
											  false, work_mem);
	MemoryContextSwitchTo(caller);
}

#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)

/* 15 brought this comparator of abbreviated keys, for which it sorts faster */
static inline int
ssup_datum_unsigned_cmp(Datum x, Datum y, SortSupport ssup pg_attribute_unused())
{
	return (x > y) - (x < y);
}
#endif

#endif /* UNIFDIAG_COMPAT_H */

/*
 * compat.h
 *		Every difference between the PostgreSQL versions that we support, 14 to 18.
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

/* the bytes that base64.h encodes were char before 18 */
#if PG_VERSION_NUM >= 180000
typedef uint8 Base64Byte;
#else
typedef char Base64Byte;
#endif

/* 16 has one function for the owners of all kinds of objects */
#if PG_VERSION_NUM < 160000
#define object_ownercheck(class, object, role) pg_class_ownercheck(object, role)
#endif

/* processes are known by another number since 17 */
#if PG_VERSION_NUM >= 170000
#define virtual_transaction_process(vxid) ProcNumberGetProc((vxid).procNumber)
#else
#define virtual_transaction_process(vxid) BackendIdGetProc((vxid).backendId)
#endif

#if PG_VERSION_NUM < 150000
#include "utils/sortsupport.h"

#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)

/* 15 brought this comparator of abbreviated keys, for which it sorts faster */
static inline int
ssup_datum_unsigned_cmp(Datum x, Datum y, SortSupport ssup pg_attribute_unused())
{
	return (x > y) - (x < y);
}
#endif

#endif /* UNIFDIAG_COMPAT_H */

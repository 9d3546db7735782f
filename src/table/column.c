/*
 * column.c
 *		The vector column: an array of numbers, or a type with a cast to real[], which is how
 *		pgvector's types come in.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "../compat.h"
#include "table.h"

/* Finds out how to read a column of the type; what it needs is kept in the context. */
void
vector_column_init(VectorColumn *column, Oid type, const char *name, MemoryContext context)
{
	const Oid base = getBaseType(type);
	Oid		  cast;

	column->by_cast = base != FLOAT4ARRAYOID && base != FLOAT8ARRAYOID;
	if (!column->by_cast)
		return;
	if (type_is_array(base) ||
		find_coercion_pathway(FLOAT4ARRAYOID, base, COERCION_EXPLICIT, &cast) != COERCION_PATH_FUNC)
		ereport(
			ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("column \"%s\" has type %s, which is not a vector", name, format_type_be(type)),
			errhint("Vectors are real[], double precision[], or a type with a cast to real[]."));
	fmgr_info_cxt(cast, &column->cast, context);
}

/* A value that is not null, in the current memory context. */
Vector
vector_column_read(VectorColumn *column, Datum datum)
{
	/* casts may ask for a type modifier, and whether they are explicit; those that do not, ignore
	 * it */
	if (column->by_cast)
		datum = FunctionCall3(&column->cast, datum, Int32GetDatum(-1), BoolGetDatum(true));
	return vector_read(DatumGetArrayTypeP(datum));
}

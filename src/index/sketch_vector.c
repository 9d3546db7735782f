/*
 * sketch_vector.c
 *		The values of a sketch index as vectors.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/pg_opfamily.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "../compat.h"
#include "sketch.h"

/*
 * The distance of the index's operator class: that of the only operator that it has.  The class of double
 * precision[] has none.
 */
SketchMetric
sketch_metric(Relation index)
{
	const Oid family = index->rd_opfamily[0];
	const Oid type = index->rd_opcintype[0];

	if (OidIsValid(get_opfamily_member(family, type, type, SKETCH_L2_STRATEGY)))
		return SKETCH_L2;
	if (OidIsValid(get_opfamily_member(family, type, type, SKETCH_COSINE_STRATEGY)))
		return SKETCH_COSINE;
	if (OidIsValid(get_opfamily_member(family, type, type, SKETCH_IP_STRATEGY)))
		return SKETCH_IP;
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("access method \"sketch\" does not support columns of type %s",
				   format_type_be(type)),
			errhint("Make the index on an expression, as in USING sketch ((v::real[])), and order "
					"by the same expression, as in v::real[] <-> $1."));
}

/* Memory is the current context's, as is that of the vectors that will be read. */
void
sketch_reader_init(SketchReader *reader, Relation index)
{
	memset(reader, 0, sizeof(*reader));
	reader->metric = sketch_metric(index);
	reader->has_proc = OidIsValid(index_getprocid(index, 1, SKETCH_VECTOR_PROC));
	if (reader->has_proc)
		fmgr_info_copy(&reader->proc, index_getprocinfo(index, 1, SKETCH_VECTOR_PROC),
					   CurrentMemoryContext);
}

/* The value as an array, whatever its type is. */
static ArrayType *
read_array(SketchReader *reader, Datum value)
{
	if (reader->has_proc)
		value = FunctionCall3(&reader->proc, value, Int32GetDatum(-1), BoolGetDatum(false));
	return DatumGetArrayTypeP(value);
}

/* Vectors of which only the direction counts are scaled to length 1, in a copy. */
static Vector
normalised(SketchReader *reader, Vector vector)
{
	float *copy;

	if (reader->metric != SKETCH_COSINE)
		return vector;
	copy = palloc(sizeof(float) * vector.dims);
	memcpy(copy, vector.values, sizeof(float) * vector.dims);
	sketch_normalise(copy, vector.dims);
	vector.values = copy;
	return vector;
}

/* A vector of finite numbers as sketches want it; memory is the current context's. */
Vector
sketch_read_vector(SketchReader *reader, Datum value)
{
	return normalised(reader, vector_read(read_array(reader, value)));
}

/* The same of a value that may be none; false if it is not. */
bool
sketch_try_read_vector(SketchReader *reader, Datum value, Vector *vector)
{
	if (!vector_try_read(read_array(reader, value), vector))
		return false;
	*vector = normalised(reader, *vector);
	return true;
}

/* An error if a vector has not as many dimensions as those of the index; 0 if it has none. */
void
sketch_check_dims(Relation index, Vector vector, int dims, bool is_built)
{
	if (dims != 0 && vector.dims != dims)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("vector has %d dimensions, but index \"%s\" holds vectors of %d dimensions",
					   vector.dims, RelationGetRelationName(index), dims),
				is_built ? errhint("To change that, delete all vectors of %d dimensions, then run "
								   "VACUUM (INDEX_CLEANUP on) on the table.",
								   dims)
						 : 0);
}

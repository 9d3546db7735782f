/*
 * sketcher_use.c
 *		Using a model in SQL: codes of vectors, and what the model knows.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "../code/bithash.h"
#include "../compat.h"
#include "projector.h"
#include "sketcher.h"

/*
 * What tells whether a model is the one of the row before, without reading it.
 *
 * An expanded object's identity is never used again, and its rows grow whenever it changes.  The
 * number of an out of line value comes from a counter of 2^32 that the server does not reset: it
 * outlasts every expression, and whoever keeps a plan for longer.  A stored header has the sums and
 * the checksum of all the rest.
 */
typedef struct ModelKey
{
	enum
	{
		KEY_OBJECT,
		KEY_TOAST,
		KEY_HEADER
	} kind;
	union
	{
		struct
		{
			uint64 identity;
			int64  rows;
		} object;
		struct varatt_external toast;
		char				   header[SKETCHER_HEADER_SIZE];
	} of;
} ModelKey;

/*
 * A model made ready for hashing, kept for as long as the query's expression: rows of a
 * query nearly always come with the same model, and reading it takes longer than a hundred
 * codes.
 */
struct HashPlan
{
	ModelKey	  key;
	MemoryContext context;
	Model		 *model;
	Projector	 *projector;
	float		 *signs;
};

static void
model_key(Datum datum, ModelKey *key)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(datum);
	Sketcher	   *sketcher = sketcher_object(datum);

	/* keys are compared byte by byte */
	memset(key, 0, sizeof(*key));
	if (sketcher != NULL)
	{
		key->kind = KEY_OBJECT;
		key->of.object.identity = sketcher->identity;
		key->of.object.rows = sketcher->model->rows;
	}
	else if (VARATT_IS_EXTERNAL_ONDISK(value))
	{
		key->kind = KEY_TOAST;
		memcpy(&key->of.toast, VARDATA_EXTERNAL(value), sizeof(key->of.toast));
	}
	else
	{
		struct varlena *front = PG_DETOAST_DATUM_SLICE(datum, 0, SKETCHER_HEADER_SIZE);

		key->kind = KEY_HEADER;
		memcpy(key->of.header, VARDATA_ANY(front),
			   Min(VARSIZE_ANY_EXHDR(front), SKETCHER_HEADER_SIZE));
		if (front != value)
			pfree(front);
	}
}

static HashPlan *
make_plan(Datum datum, MemoryContext parent)
{
	/* below the current context, with which it goes should an error occur */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "unifdiag hash plan",
												  ALLOCSET_START_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	HashPlan	 *plan = palloc0(sizeof(HashPlan));
	Model		 *model = sketcher_model(datum);

	sketcher_check_rows(model);
	plan->context = context;
	/* an expanded object may be gone, or have learnt more, by the next call */
	plan->model = sketcher_object(datum) != NULL ? model_copy(model) : model;
	plan->projector = projector_create(plan->model);
	plan->signs = palloc(sizeof(float) * model->config.bits);
	model_key(datum, &plan->key);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(context, parent);
	return plan;
}

/* Makes *plan one of this model, below the parent context, unless it is that already. */
void
hash_plan_prepare(HashPlan **plan, Datum datum, MemoryContext parent)
{
	ModelKey key;

	model_key(datum, &key);
	if (*plan != NULL && memcmp(&(*plan)->key, &key, sizeof(key)) == 0)
		return;
	hash_plan_free(plan);
	*plan = make_plan(datum, parent);
}

void
hash_plan_free(HashPlan **plan)
{
	HashPlan *old = *plan;

	*plan = NULL;
	if (old != NULL)
		MemoryContextDelete(old->context);
}

/* The options of the plan's model. */
const ModelConfig *
hash_plan_config(const HashPlan *plan)
{
	return &plan->model->config;
}

/* The code of a vector, in the current memory context. */
BitHash *
hash_plan_code(HashPlan *plan, Vector vector)
{
	vector_check_dims(vector, plan->model->config.dims);
	projector_signs(plan->projector, vector.values, plan->signs);
	return bithash_of_signs(plan->signs, plan->model->config.bits);
}

PG_FUNCTION_INFO_V1(sketcher_hash);
Datum
sketcher_hash(PG_FUNCTION_ARGS)
{
	HashPlan **plan = (HashPlan **) &fcinfo->flinfo->fn_extra;

	hash_plan_prepare(plan, PG_GETARG_DATUM(0), fcinfo->flinfo->fn_mcxt);
	PG_RETURN_POINTER(hash_plan_code(*plan, PG_GETARG_VECTOR(1)));
}

PG_FUNCTION_INFO_V1(sketcher_info);
Datum
sketcher_info(PG_FUNCTION_ARGS)
{
	Model			  *model = PG_GETARG_MODEL(0);
	const ModelConfig *config = &model->config;
	Datum			   values[12];
	bool			   nulls[12] = {false};
	TupleDesc		   descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int32GetDatum(config->dims);
	values[1] = Int32GetDatum(config->bits);
	values[2] = Int64GetDatum(model->rows);
	values[3] = CStringGetTextDatum(config->tracker->name);
	values[4] = CStringGetTextDatum(config->rotation->name);
	values[5] = BoolGetDatum(config->stable);
	values[6] = BoolGetDatum(config->center);
	values[7] = Float8GetDatum(config->forgetting);
	values[8] = Int64GetDatum(config->seed);
	/* without rows there is no variance to speak of */
	nulls[9] = nulls[10] = model->rows == 0;
	values[9] = Float8GetDatum(nulls[9] ? 0.0 : model_explained_variance(model));
	values[10] = Float8GetDatum(nulls[10] ? 0.0 : model_balance(model));
	values[11] = Int64GetDatum((int64) (VARHDRSZ + format_size(model, NULL)));
	descriptor = BlessTupleDesc(descriptor);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/* An array of rows x columns, or of one dimension if rows is 0; type is real or double. */
static Datum
make_array(const void *numbers, int rows, int columns, Oid type)
{
	const int	  count = Max(rows, 1) * columns;
	const float	 *floats = numbers;
	const double *doubles = numbers;
	Datum		 *elements = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Datum) * count);
	int			  dims[2] = {rows, columns};
	int			  lower[2] = {1, 1};
	const int	  first = rows > 0 ? 0 : 1;

	for (int i = 0; i < count; i++)
		elements[i] = type == FLOAT4OID ? Float4GetDatum(floats[i]) : Float8GetDatum(doubles[i]);
	return PointerGetDatum(construct_md_array(
		elements, NULL, 2 - first, dims + first, lower, type, type == FLOAT4OID ? 4 : 8,
		type == FLOAT4OID || FLOAT8PASSBYVAL, type == FLOAT4OID ? TYPALIGN_INT : TYPALIGN_DOUBLE));
}

/* The same with numbers in double precision that are returned in single. */
static Datum
make_real_array(const double *numbers, int rows, int columns)
{
	const int count = Max(rows, 1) * columns;
	float	 *floats = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(float) * count);

	for (int i = 0; i < count; i++)
		floats[i] = (float) numbers[i];
	return make_array(floats, rows, columns, FLOAT4OID);
}

static Model *
get_taught_model(FunctionCallInfo fcinfo, int n)
{
	Model *model = PG_GETARG_MODEL(n);

	sketcher_check_rows(model);
	return model;
}

PG_FUNCTION_INFO_V1(sketcher_mean);
Datum
sketcher_mean(PG_FUNCTION_ARGS)
{
	Model *model = get_taught_model(fcinfo, 0);

	PG_RETURN_DATUM(make_real_array(model->mean, 0, model->config.dims));
}

PG_FUNCTION_INFO_V1(sketcher_basis);
Datum
sketcher_basis(PG_FUNCTION_ARGS)
{
	Model	 *model = get_taught_model(fcinfo, 0);
	const int bits = model->config.bits;
	const int dims = model->config.dims;
	float	 *basis = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(float) * bits * dims);

	model_basis(model, basis);
	PG_RETURN_DATUM(make_array(basis, bits, dims, FLOAT4OID));
}

PG_FUNCTION_INFO_V1(sketcher_rotation);
Datum
sketcher_rotation(PG_FUNCTION_ARGS)
{
	Model	 *model = get_taught_model(fcinfo, 0);
	const int bits = model->config.bits;
	double	 *rotation = model->rotation;

	/* of a random basis there is none */
	if (rotation == NULL)
	{
		rotation = MemoryContextAllocExtended(CurrentMemoryContext, sizeof(double) * bits * bits,
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		for (int i = 0; i < bits; i++)
			rotation[(Size) i * bits + i] = 1.0;
	}
	PG_RETURN_DATUM(make_real_array(rotation, bits, bits));
}

/* The sums, divided by the weight, at the vectors' own scale. */
PG_FUNCTION_INFO_V1(sketcher_covariance);
Datum
sketcher_covariance(PG_FUNCTION_ARGS)
{
	Model	  *model = get_taught_model(fcinfo, 0);
	const int  bits = model->config.bits;
	const Size size = (Size) bits * bits;
	double	  *covariance = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(double) * size);

	model_covariance(model, covariance);
	for (Size i = 0; i < size; i++)
		covariance[i] = ldexp(covariance[i] / model->weight, 2 * model->exponent);
	PG_RETURN_DATUM(make_array(covariance, bits, bits, FLOAT8OID));
}

PG_FUNCTION_INFO_V1(sketcher_drift);
Datum
sketcher_drift(PG_FUNCTION_ARGS)
{
	Model *before = get_taught_model(fcinfo, 0);
	Model *after = get_taught_model(fcinfo, 1);

	if (before->config.dims != after->config.dims || before->config.bits != after->config.bits)
		ereport(ERROR, errcode(ERRCODE_DATA_EXCEPTION),
				errmsg("cannot compare models of %d bits for %d dimensions and of %d bits for %d",
					   before->config.bits, before->config.dims, after->config.bits,
					   after->config.dims));
	PG_RETURN_FLOAT8(model_drift(before, after));
}

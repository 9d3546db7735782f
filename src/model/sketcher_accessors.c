/*
 * sketcher_accessors.c
 *		What a model knows: its options and quality, its arrays, its drift from another one.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "../compat.h"
#include "../math/rows.h"
#include "sketcher.h"

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

	float *mean = palloc(sizeof(float) * model->config.dims);

	copy_single(model->mean, mean, model->config.dims);
	PG_RETURN_DATUM(make_array(mean, 0, model->config.dims, FLOAT4OID));
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
	float	 *rotation = model->rotation;

	/* a random basis is not rotated */
	if (rotation == NULL)
	{
		rotation = MemoryContextAllocExtended(CurrentMemoryContext, sizeof(float) * bits * bits,
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		for (int i = 0; i < bits; i++)
			rotation[(Size) i * bits + i] = 1.0F;
	}
	PG_RETURN_DATUM(make_array(rotation, bits, bits, FLOAT4OID));
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

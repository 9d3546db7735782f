/*
 * selectivity.c
 *		How many rows the planner should expect of hamming_within(a, b, radius).
 *
 * The most common values and the histogram that ANALYZE keeps of a code column are a
 * sample of its codes.  Their distances to the query (or, if that is not known yet, to
 * each other) show what share lies within the radius; where the sample is too small to
 * contain any, the tail of the normal distribution with the same mean and variance
 * stands in.  Without statistics the bits are taken as fair coins.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "../compat.h"
#include "ball.h"
#include "code_type.h"
#include "distance.h"

/* samples larger than this are thinned out before they are compared pair by pair */
#define MAX_CODES_IN_PAIRS 100

/* What is known of one argument of hamming_within. */
typedef struct CodeSample
{
	int			 count;			  /* 0 if the codes are not known */
	BitHashView *codes;			  /* they point into the slots, or the constant */
	double		*weights;		  /* the share of the non-null rows each stands for */
	int			 exact;			  /* the first of them, which stand for themselves: a
								   * constant, common values; the rest are a sample */
	int			 nbits;			  /* their length; not positive if not known */
	double		 not_null;		  /* the share of rows that are not null */
	bool		 from_statistics; /* codes of a column, not a constant */
	AttStatsSlot common;
	AttStatsSlot histogram;
} CodeSample;

static void
sample_constant(CodeSample *sample, Const *constant)
{
	sample->count = 1;
	sample->exact = 1;
	sample->codes = palloc(sizeof(BitHashView));
	sample->codes[0] = code_view(code_type_of(constant->consttype), constant->constvalue);
	sample->weights = palloc(sizeof(double));
	sample->weights[0] = 1.0;
	sample->nbits = sample->codes[0].nbits;
}

static void
sample_statistics(CodeSample *sample, VariableStatData *variable, Oid function)
{
	const CodeType type = code_type_of(variable->vartype);
	double		   rest;

	sample->nbits = code_type_bits(variable->vartype, variable->atttypmod);
	if (!HeapTupleIsValid(variable->statsTuple))
		return;
	sample->not_null = 1.0 - ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;

	/* codes the user may not see must not show in error messages or estimates */
	if (sample->not_null <= 0.0 || !statistic_proc_security_check(variable, function))
		return;
	get_attstatsslot(&sample->common, variable->statsTuple, STATISTIC_KIND_MCV, InvalidOid,
					 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
	get_attstatsslot(&sample->histogram, variable->statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid,
					 ATTSTATSSLOT_VALUES);

	sample->exact = sample->common.nvalues;
	sample->count = sample->exact + sample->histogram.nvalues;
	sample->codes = palloc(sizeof(BitHashView) * Max(sample->count, 1));
	sample->weights = palloc(sizeof(double) * Max(sample->count, 1));
	rest = 1.0;
	for (int i = 0; i < sample->exact; i++)
	{
		sample->codes[i] = code_view(type, sample->common.values[i]);
		sample->weights[i] = sample->common.numbers[i] / sample->not_null;
		rest -= sample->weights[i];
	}
	for (int i = sample->exact; i < sample->count; i++)
	{
		sample->codes[i] = code_view(type, sample->histogram.values[i - sample->exact]);
		sample->weights[i] = Max(rest, 0.0) / sample->histogram.nvalues;
	}
	if (sample->count > 0)
	{
		sample->from_statistics = true;
		sample->nbits = sample->codes[0].nbits;
	}
}

/* Collects what is known of an argument; false if it is a constant NULL. */
static bool
take_sample(CodeSample *sample, SupportRequestSelectivity *request, Node *argument)
{
	Node			*value = estimate_expression_value(request->root, argument);
	VariableStatData variable;

	memset(sample, 0, sizeof(*sample));
	sample->nbits = -1;
	sample->not_null = 1.0;
	if (IsA(value, Const))
	{
		if (((Const *) value)->constisnull)
			return false;
		sample_constant(sample, (Const *) value);
		return true;
	}
	examine_variable(request->root, argument, request->varRelid, &variable);
	sample_statistics(sample, &variable, request->funcid);
	ReleaseVariableStats(variable);
	return true;
}

static void
release_sample(CodeSample *sample)
{
	free_attstatsslot(&sample->common);
	free_attstatsslot(&sample->histogram);
}

/* P(distance <= radius) if distances are normal; half a bit more, as they are whole. */
static double
normal_tail(double mean, double variance, int radius)
{
	return 0.5 * erfc((mean - radius - 0.5) / sqrt(2.0 * variance));
}

/* The share of pairs of codes, one from each sample, that lie within the radius. */
static double
share_within(const CodeSample *a, const CodeSample *b, int radius)
{
	const bool pairs = a->count > 1 && b->count > 1;
	const int  step_a = pairs ? (a->count - 1) / MAX_CODES_IN_PAIRS + 1 : 1;
	const int  step_b = pairs ? (b->count - 1) / MAX_CODES_IN_PAIRS + 1 : 1;
	double	   exact = 0.0; /* weight of the pairs of codes that are no sample */
	double	   exact_within = 0.0;
	double	   sampled = 0.0; /* weight of the other pairs, and their distances */
	double	   sampled_within = 0.0;
	double	   sum = 0.0;
	double	   sum_of_squares = 0.0;

	for (int i = 0; i < a->count; i += step_a)
	{
		for (int j = 0; j < b->count; j += step_b)
		{
			const double weight = a->weights[i] * b->weights[j];
			double		 distance;

			/* a sampled code stands for others like it, not for itself */
			if (a == b && i == j && i >= a->exact)
				continue;
			if (a->codes[i].nbits != b->codes[j].nbits)
				continue;
			distance = hamming_distance_views(a->codes[i], b->codes[j]);
			if (i < a->exact && j < b->exact)
			{
				exact += weight;
				exact_within += distance <= radius ? weight : 0.0;
			}
			else
			{
				sampled += weight;
				sampled_within += distance <= radius ? weight : 0.0;
				sum += weight * distance;
				sum_of_squares += weight * distance * distance;
			}
		}
	}
	if (exact + sampled <= 0.0)
		return 0.0;
	if (sampled > 0.0)
	{
		const double mean = sum / sampled;
		const double variance = sum_of_squares / sampled - mean * mean;

		/* below this all distances are equal, and the difference above is rounding */
		if (variance > 1e-6)
			sampled_within = Max(sampled_within, sampled * normal_tail(mean, variance, radius));
	}
	return (exact_within + sampled_within) / (exact + sampled);
}

/* of bigint codes the radius is bigint, too */
static int
radius_of(const Const *constant)
{
	if (constant->consttype != INT8OID)
		return DatumGetInt32(constant->constvalue);
	return (int) Max(Min(DatumGetInt64(constant->constvalue), BITHASH_MAX_BITS), -1);
}

static double
estimate(SupportRequestSelectivity *request, Node *left, Node *right, Node *radius_argument)
{
	Node	  *radius = estimate_expression_value(request->root, radius_argument);
	CodeSample a;
	CodeSample b;
	double	   share = DEFAULT_EQ_SEL;

	if (IsA(radius, Const) && ((Const *) radius)->constisnull)
		return 0.0;
	if (!take_sample(&a, request, left) || !take_sample(&b, request, right))
		return 0.0;
	if (IsA(radius, Const))
	{
		const int within = radius_of((Const *) radius);
		const int nbits = Max(a.nbits, b.nbits);

		/* a query of which nothing is known is taken to be like the codes */
		if (within < 0)
			share = 0.0;
		else if (a.from_statistics || b.from_statistics)
			share = share_within(a.count > 0 ? &a : &b, b.count > 0 ? &b : &a, within);
		else if (nbits > 0)
			share = normal_tail(nbits / 2.0, nbits / 4.0, within);
	}
	share *= a.not_null * b.not_null;
	release_sample(&a);
	release_sample(&b);
	return share;
}

PG_FUNCTION_INFO_V1(hamming_within_support);
Datum
hamming_within_support(PG_FUNCTION_ARGS)
{
	Node *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSelectivity))
	{
		SupportRequestSelectivity *selectivity = (SupportRequestSelectivity *) request;
		double					   share = estimate(selectivity, linitial(selectivity->args),
													lsecond(selectivity->args), lthird(selectivity->args));

		CLAMP_PROBABILITY(share);
		selectivity->selectivity = share;
		PG_RETURN_POINTER(request);
	}
	if (IsA(request, SupportRequestIndexCondition))
		PG_RETURN_POINTER(hamming_within_condition((SupportRequestIndexCondition *) request));
	PG_RETURN_POINTER(NULL);
}

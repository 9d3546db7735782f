/*
 * distance.c
 *		The Hamming distance in SQL, and the setting that chooses its kernel.
 */
#include "postgres.h"

#include "utils/guc.h"

#include "../compat.h"
#include "distance.h"
#include "vector_distance.h"

#define KERNEL_AUTO (-1)

const HammingKernel *hamming_kernel;
const SketchKernel	*sketch_kernel;

static int kernel_setting = KERNEL_AUTO;

static const HammingKernel *
kernel_for(int setting)
{
	return setting == KERNEL_AUTO ? hamming_kernel_best() : hamming_kernels[setting];
}

static bool
check_kernel(int *setting, void **extra pg_attribute_unused(),
			 GucSource source pg_attribute_unused())
{
	if (!kernel_for(*setting)->supported())
	{
		GUC_check_errdetail("This CPU or operating system does not support kernel \"%s\".",
							kernel_for(*setting)->name);
		return false;
	}
	return true;
}

static void
assign_kernel(int setting, void *extra pg_attribute_unused())
{
	hamming_kernel = kernel_for(setting);
	vector_distance_use(setting == KERNEL_AUTO ? NULL : hamming_kernel->name);
	sketch_kernel =
		setting == KERNEL_AUTO ? sketch_kernel_best() : sketch_kernel_named(hamming_kernel->name);
}

/*
 * Chooses the best kernel, and defines the setting with which tests force another.
 * All kernels give the same answers, those for vectors but for rounding, so that users have no
 * reason to see it.
 */
void
distance_init(void)
{
	/* "auto", the kernels, and an end mark; the server keeps a pointer to it */
	static struct config_enum_entry options[8] = {{"auto", KERNEL_AUTO, false}};

	Assert(hamming_kernel_count + 2 <= lengthof(options));
	for (size_t i = 0; i < hamming_kernel_count; i++)
	{
		options[i + 1].name = hamming_kernels[i]->name;
		options[i + 1].val = (int) i;
	}
	DefineCustomEnumVariable("unifdiag.kernel", "Distance kernel to use.",
							 "For tests: all kernels give the same distances.", &kernel_setting,
							 KERNEL_AUTO, options, PGC_USERSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							 check_kernel, assign_kernel, NULL);
}

/* There is no distance between codes of different lengths. */
void
hamming_check_lengths(int a, int b)
{
	if (a != b)
		ereport(ERROR, errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
				errmsg("codes have different lengths: %d and %d bits", a, b));
}

/* The number of bits in which two codes differ; an error if their lengths differ. */
int32
hamming_distance_views(BitHashView a, BitHashView b)
{
	hamming_check_lengths(a.nbits, b.nbits);
	return (int32) hamming_kernel->distance(a.bits, b.bits, BITHASH_BYTES(a.nbits));
}

PG_FUNCTION_INFO_V1(hamming_distance);
Datum
hamming_distance(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(hamming_distance_views(PG_GETARG_BITHASH_VIEW(0), PG_GETARG_BITHASH_VIEW(1)));
}

PG_FUNCTION_INFO_V1(hamming_within);
Datum
hamming_within(PG_FUNCTION_ARGS)
{
	const int32 distance =
		hamming_distance_views(PG_GETARG_BITHASH_VIEW(0), PG_GETARG_BITHASH_VIEW(1));

	PG_RETURN_BOOL(distance <= PG_GETARG_INT32(2));
}

/*
 * sketch_kernels.c
 *		The table of kernels that rank sketches, and the choice among them.
 */
#include "sketch_kernels.h"

const SketchKernel *const sketch_kernels[] = {
	&sketch_kernel_portable,
#if defined(__x86_64__)
	&sketch_kernel_avx2,
	&sketch_kernel_avx512,
#elif defined(__aarch64__)
	&sketch_kernel_neon,
#endif
};

const size_t sketch_kernel_count = sizeof(sketch_kernels) / sizeof(sketch_kernels[0]);

const SketchKernel *
sketch_kernel_best(void)
{
	const SketchKernel *best = sketch_kernels[0];

	for (size_t i = 1; i < sketch_kernel_count; i++)
	{
		if (sketch_kernels[i]->supported())
			best = sketch_kernels[i];
	}
	return best;
}

const SketchKernel *
sketch_kernel_named(const char *name)
{
	for (size_t i = 1; i < sketch_kernel_count; i++)
	{
		if (strcmp(sketch_kernels[i]->name, name) == 0 && sketch_kernels[i]->supported())
			return sketch_kernels[i];
	}
	return sketch_kernels[0];
}

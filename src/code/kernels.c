/*
 * kernels.c
 *		The table of distance kernels, and the choice among them.
 */
#include "kernels.h"

const HammingKernel *const hamming_kernels[] = {
	&hamming_kernel_portable,
#if defined(__x86_64__)
	&hamming_kernel_avx2,
	&hamming_kernel_avx512,
#elif defined(__aarch64__)
	&hamming_kernel_neon,
#endif
};

const size_t hamming_kernel_count = sizeof(hamming_kernels) / sizeof(hamming_kernels[0]);

const HammingKernel *
hamming_kernel_best(void)
{
	const HammingKernel *best = hamming_kernels[0];

	for (size_t i = 1; i < hamming_kernel_count; i++)
	{
		if (hamming_kernels[i]->supported())
			best = hamming_kernels[i];
	}
	return best;
}

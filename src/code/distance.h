/*
 * distance.h
 *		Distances between codes, as the server computes them.
 */
#ifndef UNIFDIAG_DISTANCE_H
#define UNIFDIAG_DISTANCE_H

#include "bithash.h"
#include "kernels.h"
#include "sketch_kernels.h"

/* the kernel in use; set when the library is loaded and by unifdiag.kernel */
extern const HammingKernel *hamming_kernel;
extern const SketchKernel  *sketch_kernel;

extern void	 distance_init(void);
extern void	 hamming_check_lengths(int a, int b);
extern int32 hamming_distance_views(BitHashView a, BitHashView b);

#endif /* UNIFDIAG_DISTANCE_H */

/*
 * vector_kernel_neon.c
 *		Vector kernel for 64-bit ARM: four floats at a time.
 */
#include "vector_kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define LANES 4

static float
squared_distance(const float *a, const float *b, size_t dims)
{
	float32x4_t even = vdupq_n_f32(0.0F);
	float32x4_t odd = vdupq_n_f32(0.0F);
	float		rest = 0.0F;
	size_t		i = 0;

	for (; i + 2 * LANES <= dims; i += 2 * LANES)
	{
		const float32x4_t first = vsubq_f32(vld1q_f32(a + i), vld1q_f32(b + i));
		const float32x4_t second = vsubq_f32(vld1q_f32(a + i + LANES), vld1q_f32(b + i + LANES));

		even = vfmaq_f32(even, first, first);
		odd = vfmaq_f32(odd, second, second);
	}
	for (; i < dims; i++)
		rest += (a[i] - b[i]) * (a[i] - b[i]);
	return vaddvq_f32(vaddq_f32(even, odd)) + rest;
}

static float
inner_product(const float *a, const float *b, size_t dims)
{
	float32x4_t even = vdupq_n_f32(0.0F);
	float32x4_t odd = vdupq_n_f32(0.0F);
	float		rest = 0.0F;
	size_t		i = 0;

	for (; i + 2 * LANES <= dims; i += 2 * LANES)
	{
		even = vfmaq_f32(even, vld1q_f32(a + i), vld1q_f32(b + i));
		odd = vfmaq_f32(odd, vld1q_f32(a + i + LANES), vld1q_f32(b + i + LANES));
	}
	for (; i < dims; i++)
		rest += a[i] * b[i];
	return vaddvq_f32(vaddq_f32(even, odd)) + rest;
}

static VectorProducts
products(const float *a, const float *b, size_t dims)
{
	const VectorProducts result = {
		.ab = inner_product(a, b, dims),
		.aa = inner_product(a, a, dims),
		.bb = inner_product(b, b, dims),
	};

	return result;
}

static bool
supported(void)
{
	return true;
}

const VectorKernel vector_kernel_neon = {
	.name = "neon",
	.supported = supported,
	.squared_distance = squared_distance,
	.inner_product = inner_product,
	.products = products,
};

#endif /* __aarch64__ */

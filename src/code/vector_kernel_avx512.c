/*
 * vector_kernel_avx512.c
 *		Vector kernel for x86-64 with AVX-512: sixteen floats at a time.
 */
#include "vector_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f")))

#define LANES ((size_t) 16)

/* The rest of a row, fewer than LANES floats, and zeros. */
TARGET static inline __m512
load_rest(const float *from, size_t count)
{
	return _mm512_maskz_loadu_ps((__mmask16) ((1U << count) - 1), from);
}

TARGET static float
squared_distance(const float *a, const float *b, size_t dims)
{
	__m512 even = _mm512_setzero_ps();
	__m512 odd = _mm512_setzero_ps();
	__m512 difference;
	size_t i = 0;

	for (; i + 2 * LANES <= dims; i += 2 * LANES)
	{
		difference = _mm512_sub_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
		even = _mm512_fmadd_ps(difference, difference, even);
		difference = _mm512_sub_ps(_mm512_loadu_ps(a + i + LANES), _mm512_loadu_ps(b + i + LANES));
		odd = _mm512_fmadd_ps(difference, difference, odd);
	}
	if (i + LANES <= dims)
	{
		difference = _mm512_sub_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
		even = _mm512_fmadd_ps(difference, difference, even);
		i += LANES;
	}
	difference = _mm512_sub_ps(load_rest(a + i, dims - i), load_rest(b + i, dims - i));
	odd = _mm512_fmadd_ps(difference, difference, odd);
	return _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
}

TARGET static float
inner_product(const float *a, const float *b, size_t dims)
{
	__m512 even = _mm512_setzero_ps();
	__m512 odd = _mm512_setzero_ps();
	size_t i = 0;

	for (; i + 2 * LANES <= dims; i += 2 * LANES)
	{
		even = _mm512_fmadd_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i), even);
		odd = _mm512_fmadd_ps(_mm512_loadu_ps(a + i + LANES), _mm512_loadu_ps(b + i + LANES), odd);
	}
	if (i + LANES <= dims)
	{
		even = _mm512_fmadd_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i), even);
		i += LANES;
	}
	odd = _mm512_fmadd_ps(load_rest(a + i, dims - i), load_rest(b + i, dims - i), odd);
	return _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
}

/* All three in one pass, which reads each vector once. */
TARGET static VectorProducts
products(const float *a, const float *b, size_t dims)
{
	__m512		   ab = _mm512_setzero_ps();
	__m512		   aa = _mm512_setzero_ps();
	__m512		   bb = _mm512_setzero_ps();
	VectorProducts result;

	for (size_t i = 0; i < dims; i += LANES)
	{
		const bool	 whole = i + LANES <= dims;
		const __m512 x = whole ? _mm512_loadu_ps(a + i) : load_rest(a + i, dims - i);
		const __m512 y = whole ? _mm512_loadu_ps(b + i) : load_rest(b + i, dims - i);

		ab = _mm512_fmadd_ps(x, y, ab);
		aa = _mm512_fmadd_ps(x, x, aa);
		bb = _mm512_fmadd_ps(y, y, bb);
	}
	result.ab = _mm512_reduce_add_ps(ab);
	result.aa = _mm512_reduce_add_ps(aa);
	result.bb = _mm512_reduce_add_ps(bb);
	return result;
}

static bool
supported(void)
{
	/* this also asks whether the operating system saves the wide registers */
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f");
}

const VectorKernel vector_kernel_avx512 = {
	.name = "avx512",
	.supported = supported,
	.squared_distance = squared_distance,
	.inner_product = inner_product,
	.products = products,
};

#endif /* __x86_64__ */

/*
 * vector_kernel_avx2.c
 *		Vector kernel for x86-64 with AVX2 and fused multiplication: eight floats at a time.
 */
#include "vector_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))

#define LANES ((size_t) 8)

TARGET static inline float
sum_of(__m256 sums)
{
	const __m128 four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
	const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));

	return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* The rest of a row, fewer than LANES floats, and zeros. */
TARGET static inline __m256
load_rest(const float *from, size_t count)
{
	const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

	return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(_mm256_set1_epi32((int) count), lanes));
}

TARGET static float
squared_distance(const float *a, const float *b, size_t dims)
{
	__m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
					  _mm256_setzero_ps()};
	__m256 rest;
	size_t i = 0;

	for (; i + 4 * LANES <= dims; i += 4 * LANES)
	{
		for (int part = 0; part < 4; part++)
		{
			const __m256 difference = _mm256_sub_ps(_mm256_loadu_ps(a + i + part * LANES),
													_mm256_loadu_ps(b + i + part * LANES));

			sums[part] = _mm256_fmadd_ps(difference, difference, sums[part]);
		}
	}
	for (; i + LANES <= dims; i += LANES)
	{
		const __m256 difference = _mm256_sub_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));

		sums[0] = _mm256_fmadd_ps(difference, difference, sums[0]);
	}
	rest = _mm256_sub_ps(load_rest(a + i, dims - i), load_rest(b + i, dims - i));
	sums[1] = _mm256_fmadd_ps(rest, rest, sums[1]);
	return sum_of(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
}

TARGET static float
inner_product(const float *a, const float *b, size_t dims)
{
	__m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
					  _mm256_setzero_ps()};
	size_t i = 0;

	for (; i + 4 * LANES <= dims; i += 4 * LANES)
	{
		for (int part = 0; part < 4; part++)
			sums[part] = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + part * LANES),
										 _mm256_loadu_ps(b + i + part * LANES), sums[part]);
	}
	for (; i + LANES <= dims; i += LANES)
		sums[0] = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), sums[0]);
	sums[1] = _mm256_fmadd_ps(load_rest(a + i, dims - i), load_rest(b + i, dims - i), sums[1]);
	return sum_of(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
}

/* All three in one pass, which reads each vector once. */
TARGET static VectorProducts
products(const float *a, const float *b, size_t dims)
{
	__m256		   ab = _mm256_setzero_ps();
	__m256		   aa = _mm256_setzero_ps();
	__m256		   bb = _mm256_setzero_ps();
	VectorProducts result;

	for (size_t i = 0; i < dims; i += LANES)
	{
		const bool	 whole = i + LANES <= dims;
		const __m256 x = whole ? _mm256_loadu_ps(a + i) : load_rest(a + i, dims - i);
		const __m256 y = whole ? _mm256_loadu_ps(b + i) : load_rest(b + i, dims - i);

		ab = _mm256_fmadd_ps(x, y, ab);
		aa = _mm256_fmadd_ps(x, x, aa);
		bb = _mm256_fmadd_ps(y, y, bb);
	}
	result.ab = sum_of(ab);
	result.aa = sum_of(aa);
	result.bb = sum_of(bb);
	return result;
}

static bool
supported(void)
{
	/* this also asks whether the operating system saves the wide registers */
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const VectorKernel vector_kernel_avx2 = {
	.name = "avx2",
	.supported = supported,
	.squared_distance = squared_distance,
	.inner_product = inner_product,
	.products = products,
};

#endif /* __x86_64__ */

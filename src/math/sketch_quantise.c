/*
 * sketch_quantise.c
 *		Rounding projections to a few bits each: a row's to those of its code, a query's to those
 *		of its weights.
 */
#include <math.h>

#include "../wide.h"
#include "sketch_parts.h"

/* numbers that are looked at side by side */
#define LANES 8

/* steps that are tried, and how far each is from the next */
#define STEPS 9
#define STEP_RATIO 1.1

/* The products are those of absolute values. */
WIDE SketchProducts
quantise_signs(const float *numbers, int count)
{
	float lanes[LANES] = {0.0F};
	int	  i = 0;

	for (; i + LANES <= count; i += LANES)
	{
		for (int l = 0; l < LANES; l++)
			lanes[l] += fabsf(numbers[i + l]);
	}
	for (; i < count; i++)
		lanes[0] += fabsf(numbers[i]);
	for (int l = 1; l < LANES; l++)
		lanes[0] += lanes[l];
	return (SketchProducts) {.with_numbers = lanes[0], .with_themselves = count};
}

/* What a number's absolute value is rounded to: 1, 3, ... in steps, of which inverse is that of
 * two. */
static inline float
round_to_odd(float number, float inverse, float most)
{
	const float half = fminf(fabsf(number) * inverse, most);

	return (float) (2 * (int32_t) half + 1);
}

/* Products of numbers rounded with some step. */
WIDE static SketchProducts
try_step(const float *numbers, int count, float inverse, float most)
{
	float with_numbers[LANES] = {0.0F};
	float with_themselves[LANES] = {0.0F};
	int	  i = 0;

	for (; i + LANES <= count; i += LANES)
	{
		for (int l = 0; l < LANES; l++)
		{
			const float odd = round_to_odd(numbers[i + l], inverse, most);

			with_numbers[l] += odd * fabsf(numbers[i + l]);
			with_themselves[l] += odd * odd;
		}
	}
	for (; i < count; i++)
	{
		const float odd = round_to_odd(numbers[i], inverse, most);

		with_numbers[0] += odd * fabsf(numbers[i]);
		with_themselves[0] += odd * odd;
	}
	for (int l = 1; l < LANES; l++)
	{
		with_numbers[0] += with_numbers[l];
		with_themselves[0] += with_themselves[l];
	}
	return (SketchProducts) {.with_numbers = with_numbers[0],
							 .with_themselves = with_themselves[0]};
}

SketchProducts
quantise(const float *numbers, int count, int levels, uint8_t *rounded)
{
	/* of normal deviates: half of the best distance between two of 4, 8, 16, 32 or 64 numbers */
	static const double steps[] = {0.498, 0.293, 0.168, 0.094, 0.052};
	const int			middle = 1 << (levels - 1);
	const float			most = (float) (middle - 1) + 0.5F;
	double				square = 0.0;
	float				inverse = 0.0F;
	SketchProducts		best = {0.0, 1.0};

	for (int i = 0; i < count; i++)
		square += (double) numbers[i] * numbers[i];
	for (int k = -STEPS / 2; k <= STEPS / 2 && square > 0.0; k++)
	{
		const double		 step = steps[levels - 2] * sqrt(square / count) * pow(STEP_RATIO, k);
		const float			 trial = (float) (0.5 / step);
		const SketchProducts products = try_step(numbers, count, trial, most);

		/* the larger of two cosines */
		if (products.with_numbers * products.with_numbers * best.with_themselves >
			best.with_numbers * best.with_numbers * products.with_themselves)
		{
			best = products;
			inverse = trial;
		}
	}
	for (int i = 0; i < count; i++)
	{
		const int half = (int) fminf(fabsf(numbers[i]) * inverse, most);

		rounded[i] = (uint8_t) (numbers[i] >= 0.0F ? middle + half : middle - 1 - half);
	}
	return best;
}

/*
 * rows.c
 *		Loops over the elements of a row: sums in double precision, and centring.
 *
 * Sums have four lanes, since the compiler may not reorder the terms of a sum by itself.
 */
#include "rows.h"

#include "../wide.h"

/* Four of the differences between a row and the mean; without a mean, of the row itself. */
static inline void
load_differences(Double4 *to, const float *row, const double *mean, int k)
{
	load4(to, row + k);
	if (mean != NULL)
	{
		Double4 centre;

		memcpy(&centre, mean + k, sizeof(centre));
		*to -= centre;
	}
}

/* direction . (row - mean); without a direction, the squared length of row - mean */
static inline double
sum_products(const float *direction, const float *row, const double *mean, int dims)
{
	Double4 sums = {0.0};
	double	rest = 0.0;
	int		k = 0;

	for (; k + 4 <= dims; k += 4)
	{
		Double4 differences;
		Double4 weights;

		load_differences(&differences, row, mean, k);
		if (direction != NULL)
			load4(&weights, direction + k);
		else
			weights = differences;
		sums += weights * differences;
	}
	for (; k < dims; k++)
	{
		const double difference = mean != NULL ? row[k] - mean[k] : row[k];

		rest += (direction != NULL ? direction[k] : difference) * difference;
	}
	return sum4(&sums) + rest;
}

WIDE double
squared_length(const float *row, int dims)
{
	return sum_products(NULL, row, NULL, dims);
}

WIDE double
product_of_rows(const float *a, const float *b, int dims)
{
	return sum_products(a, b, NULL, dims);
}

WIDE double
squared_distance(const float *row, const double *mean, int dims)
{
	return sum_products(NULL, row, mean, dims);
}

WIDE double
product_with_difference(const float *direction, const float *row, const double *mean, int dims)
{
	return sum_products(direction, row, mean, dims);
}

WIDE double
centre_row(const float *row, double *mean, float *centred, int dims, double scale, double step)
{
	Double4 sums = {0.0};
	double	rest = 0.0;
	int		k = 0;

	for (; k + 4 <= dims; k += 4)
	{
		Double4 numbers;
		Double4 old;
		Float4	scaled;

		load4(&numbers, row + k);
		memcpy(&old, mean + k, sizeof(old));
		numbers -= old;
		old += step * numbers;
		memcpy(mean + k, &old, sizeof(old));
		numbers *= scale;
		scaled = __builtin_convertvector(numbers, Float4);
		memcpy(centred + k, &scaled, sizeof(scaled));
		/* of what is left after rounding: it may be nothing */
		numbers = __builtin_convertvector(scaled, Double4);
		sums += numbers * numbers;
	}
	for (; k < dims; k++)
	{
		const double difference = row[k] - mean[k];

		mean[k] += step * difference;
		centred[k] = (float) (scale * difference);
		rest += (double) centred[k] * centred[k];
	}
	return sum4(&sums) + rest;
}

WIDE void
subtract_mean(const float *row, const double *mean, float *centred, int dims, double scale)
{
	for (int k = 0; k < dims; k++)
		centred[k] = (float) (scale * (row[k] - mean[k]));
}

WIDE void
copy_single(const double *from, float *to, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = (float) from[i];
}

WIDE void
copy_double(const float *from, double *to, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = from[i];
}

/*
 * orthogonal.c
 *		Small steps among orthogonal matrices.
 */
#include "linalg.h"

#include <math.h>
#include <string.h>

#include "memory.h"

/* a matrix whose products of rows are this far from an orthogonal one's needs one step more */
#define TOLERANCE 1e-7
#define MAX_STEPS 8

/*
 * Newton and Schulz: R <- R - (R R' - I)/2 R squares the distance from orthogonal each time,
 * if it was small, and ends at the nearest orthogonal matrix.
 */
void
restore_orthogonal(int n, double *a)
{
	const size_t size = (size_t) n * (size_t) n;
	double		*skew = math_alloc(size, sizeof(double));
	double		*change = math_alloc(size, sizeof(double));

	for (int step = 0; step < MAX_STEPS; step++)
	{
		double largest = 0.0;

		multiply_d(false, true, n, n, n, 1.0, a, a, 0.0, skew);
		for (int i = 0; i < n; i++)
			skew[(size_t) i * (size_t) n + i] -= 1.0;
		for (size_t i = 0; i < size; i++)
			largest = fmax(largest, fabs(skew[i]));
		multiply_d(false, false, n, n, n, 0.5, skew, a, 0.0, change);
		for (size_t i = 0; i < size; i++)
			a[i] -= change[i];
		if (largest <= TOLERANCE)
			break;
	}
	math_free(skew);
	math_free(change);
}

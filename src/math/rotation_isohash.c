/*
 * rotation_isohash.c
 *		IsoHash by lift and projection: in turn, the diagonal is set to its mean and the
 *		spectrum to that of the covariance, until both hold.
 *
 * It starts from the rotation there is, and from a random one before that.
 */
#include <math.h>
#include <string.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"

/* the diagonal is uniform enough, and the turns it may take */
#define TOLERANCE 0.01
#define MAX_TURNS 50

/* The largest relative distance of a diagonal element from the mean. */
static double
imbalance(const double *matrix, int n, double mean)
{
	double worst = 0.0;

	for (int i = 0; i < n; i++)
		worst = fmax(worst, fabs(matrix[(size_t) i * (size_t) n + i] - mean));
	return worst / mean;
}

/*
 * One turn, with Z = R C R', C = U' L U: its diagonal becomes the mean, and of the result's
 * eigenvectors V, in the order of C's and with the signs of R's, a new R = V' U is made.
 */
static bool
turn(double *rotation, double *rotated, const double *vectors, const double *values, int n,
	 double mean)
{
	const size_t size = (size_t) n * (size_t) n;
	double		*lifted = math_alloc(size, sizeof(double));
	double		*found = math_alloc((size_t) n, sizeof(double));
	double		*product = math_alloc(size, sizeof(double));
	bool		 solved;

	memcpy(lifted, rotated, size * sizeof(double));
	for (int i = 0; i < n; i++)
		lifted[(size_t) i * (size_t) n + i] = mean;
	solved = symmetric_eigen(n, lifted, found);
	if (solved)
	{
		/* R U': by rows, R times the eigenvectors of C */
		multiply_d(false, true, n, n, n, 1.0, vectors, rotation, 0.0, product);
		for (int i = 0; i < n; i++)
		{
			double *row = lifted + (size_t) i * (size_t) n;

			if (dot_d(n, row, product + (size_t) i * (size_t) n) < 0.0)
			{
				for (int j = 0; j < n; j++)
					row[j] = -row[j];
			}
		}
		multiply_d(true, false, n, n, n, 1.0, lifted, vectors, 0.0, rotation);
		for (int i = 0; i < n; i++)
		{
			for (int j = 0; j < n; j++)
				product[(size_t) i * (size_t) n + j] =
					values[i] * lifted[(size_t) i * (size_t) n + j];
		}
		multiply_d(true, false, n, n, n, 1.0, lifted, product, 0.0, rotated);
	}
	math_free(lifted);
	math_free(found);
	math_free(product);
	return solved;
}

static void
adapt(Model *model, double *rotation)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * (size_t) bits;
	double		*vectors = math_alloc(size, sizeof(double));
	double		*values = math_alloc((size_t) bits, sizeof(double));
	double		*product = math_alloc(size, sizeof(double));
	double		*rotated = math_alloc(size, sizeof(double));
	double		 mean = 0.0;

	for (int i = 0; i < bits; i++)
		mean += model->covariance[(size_t) i * (size_t) bits + i] / bits;
	memcpy(vectors, model->covariance, size * sizeof(double));
	if (mean > 0.0 && symmetric_eigen(bits, vectors, values))
	{
		multiply_d(false, false, bits, bits, bits, 1.0, rotation, model->covariance, 0.0, product);
		multiply_d(false, true, bits, bits, bits, 1.0, product, rotation, 0.0, rotated);
		for (int turns = 0; turns < MAX_TURNS && imbalance(rotated, bits, mean) > TOLERANCE;
			 turns++)
		{
			if (!turn(rotation, rotated, vectors, values, bits, mean))
				break;
		}
		restore_orthogonal(bits, rotation);
	}
	math_free(vectors);
	math_free(values);
	math_free(product);
	math_free(rotated);
}

const Rotation rotation_isohash = {
	.name = "isohash",
	.stored = true,
	.start = rotation_start_random,
	.adapt = adapt,
};

/*
 * rotation_unifdiag.c
 *		UnifDiag: Givens rotations that give all bits the same variance.
 *
 * Algorithm 1 of the paper, and the stable form of it that keeps R close to what it was;
 * src/math/README.md says how they differ and why.
 */
#include <math.h>

#include "linalg.h"
#include "memory.h"
#include "model.h"

/* the stable form leaves variances alone that are this near to their mean */
#define STABLE_TOLERANCE 0.05
#define PAPER_TOLERANCE 1e-9

/* small turns that it tries before Givens rotations; with more bits than this there are none */
#define CORRECTIONS 3
#define MAX_TURNED_BITS 128

/* the two bits to turn next: target gets the mean variance, partner the difference */
typedef struct Pair
{
	int target;
	int partner;
} Pair;

/* Algorithm 1: the first bit below the mean with the first one above. */
static bool
first_pair(const double *covariance, int bits, double mean, Pair *pair)
{
	pair->target = pair->partner = -1;
	for (int i = bits - 1; i >= 0; i--)
	{
		const double variance = covariance[(size_t) i * bits + i];

		if (variance < mean - PAPER_TOLERANCE * fabs(mean))
			pair->target = i;
		else if (variance > mean + PAPER_TOLERANCE * fabs(mean))
			pair->partner = i;
	}
	return pair->target >= 0 && pair->partner >= 0;
}

/*
 * The stable form: the lowest with the highest, if either is too far off.  Of the two the
 * one nearer to the mean gets it: the other way round the rotation would all but swap them.
 */
static bool
outermost_pair(const double *covariance, int bits, double mean, Pair *pair)
{
	int	   lowest = 0;
	int	   highest = 0;
	double below;
	double above;

	for (int i = 1; i < bits; i++)
	{
		const double variance = covariance[(size_t) i * bits + i];

		if (variance < covariance[(size_t) lowest * bits + lowest])
			lowest = i;
		if (variance > covariance[(size_t) highest * bits + highest])
			highest = i;
	}
	below = mean - covariance[(size_t) lowest * bits + lowest];
	above = covariance[(size_t) highest * bits + highest] - mean;
	if (below <= STABLE_TOLERANCE * fabs(mean) && above <= STABLE_TOLERANCE * fabs(mean))
		return false;
	pair->target = below <= above ? lowest : highest;
	pair->partner = below <= above ? highest : lowest;
	return true;
}

static void
turn_rows(double *matrix, int bits, Pair pair, double cosine, double sine)
{
	double *target = matrix + (size_t) pair.target * bits;
	double *partner = matrix + (size_t) pair.partner * bits;

	for (int k = 0; k < bits; k++)
	{
		const double t = target[k];
		const double p = partner[k];

		target[k] = cosine * t + sine * p;
		partner[k] = cosine * p - sine * t;
	}
}

static void
turn_columns(double *matrix, int bits, Pair pair, double cosine, double sine)
{
	for (int k = 0; k < bits; k++)
	{
		double		*row = matrix + (size_t) k * bits;
		const double t = row[pair.target];
		const double p = row[pair.partner];

		row[pair.target] = cosine * t + sine * p;
		row[pair.partner] = cosine * p - sine * t;
	}
}

/*
 * Turns the plane of the pair by the angle t that makes the target's variance the mean.
 * With a, d the variances of target and partner and b their covariance it becomes
 * (a + d)/2 + (a - d)/2 cos 2t + b sin 2t: two solutions, 2t = first + second and
 * 2t = first - second.  The paper takes the sum; the stable form what turns less.
 */
static void
turn(double *covariance, double *rotation, int bits, double mean, Pair pair, bool stable)
{
	const double a = covariance[(size_t) pair.target * bits + pair.target];
	const double d = covariance[(size_t) pair.partner * bits + pair.partner];
	const double b = covariance[(size_t) pair.target * bits + pair.partner];
	const double radius = hypot((a - d) / 2.0, b);
	const double first = atan2(b, (a - d) / 2.0);
	/* rounding may push the quotient out of the range of cosines */
	const double second = acos(fmin(fmax((mean - (a + d) / 2.0) / radius, -1.0), 1.0));
	double		 twice = stable && first >= 0.0 ? first - second : first + second;

	twice = atan2(sin(twice), cos(twice));
	turn_rows(covariance, bits, pair, cos(twice / 2.0), sin(twice / 2.0));
	turn_columns(covariance, bits, pair, cos(twice / 2.0), sin(twice / 2.0));
	turn_rows(rotation, bits, pair, cos(twice / 2.0), sin(twice / 2.0));
	/* exactly, or the bit might be turned again */
	covariance[(size_t) pair.target * bits + pair.target] = mean;
}

/*
 * Uniformizes the diagonal of a symmetric matrix, in place, and multiplies the rotations
 * onto R from the left.  Each sets one variance for good, so bits - 1 are enough.
 */
int
unifdiag(double *covariance, double *rotation, int bits, bool stable)
{
	double mean = 0.0;
	int	   turns = 0;
	Pair   pair;

	for (int i = 0; i < bits; i++)
		mean += covariance[(size_t) i * bits + i] / bits;
	while (turns < bits - 1 && (stable ? outermost_pair(covariance, bits, mean, &pair)
									   : first_pair(covariance, bits, mean, &pair)))
	{
		math_check_cancelled();
		turn(covariance, rotation, bits, mean, pair, stable);
		turns++;
	}
	return turns;
}

static void
set_identity(double *rotation, int bits)
{
	for (int i = 0; i < bits; i++)
	{
		for (int j = 0; j < bits; j++)
			rotation[(size_t) i * bits + j] = i == j;
	}
}

/* The stable form starts from a random rotation, which is nearly uniform already. */
static void
start(const Model *model, double *rotation)
{
	if (model->config.stable)
		rotation_start_random(model, rotation);
	else
		set_identity(rotation, model->config.bits);
}

/* Uniformizes the diagonal of R C R', C the covariance, by turning R. */
static void
balance(const Model *model, double *rotation)
{
	const int	 bits = model->config.bits;
	const size_t size = (size_t) bits * bits;
	double		*product = math_alloc(size, sizeof(double));
	double		*rotated = math_alloc(size, sizeof(double));

	multiply_d(false, false, bits, bits, bits, 1.0, rotation, model->covariance, 0.0, product);
	multiply_d(false, true, bits, bits, bits, 1.0, product, rotation, 0.0, rotated);
	unifdiag(rotated, rotation, bits, model->config.stable);
	math_free(product);
	math_free(rotated);
}

/* Is the rotation turned by small angles too, or by Givens rotations only? */
static bool
is_turned(const Model *model)
{
	return model->config.stable && model->config.bits <= MAX_TURNED_BITS;
}

/*
 * The set of rotations that make the diagonal uniform is large: while the stable form is young
 * it moves within it to where neighbours stay together.
 */
static void
adapt(Model *model, double *rotation)
{
	if (!model->config.stable)
		set_identity(rotation, model->config.bits);
	if (is_turned(model))
	{
		neighbours_turn(model, rotation, true);
		/* many small turns, where there are any to build on, rather than a few large ones */
		for (int i = 0; i < CORRECTIONS && model->rotated_rows > 0 &&
						rotation_balance(model, rotation) > STABLE_TOLERANCE;
			 i++)
			diagonal_balance(model, rotation);
	}
	balance(model, rotation);
}

static void
note(Model *model, const double *projected, int rows)
{
	if (is_turned(model))
		neighbours_note(model, projected, rows);
}

const Rotation rotation_unifdiag = {
	.name = "unifdiag",
	.stored = true,
	.recent = NEIGHBOUR_ROWS,
	.start = start,
	.adapt = adapt,
	.note = note,
};

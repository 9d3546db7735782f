/*
 * test_unifdiag.c
 *		UnifDiag on thousands of symmetric matrices: the theorem of the paper.
 */
#include "data.h"

enum
{
	INDEFINITE,
	POSITIVE,
	DIAGONAL,
	UNIFORM,
	NEARLY_SINGULAR,
	KINDS
};

static const char *const kind_names[] = {"indefinite", "positive", "diagonal", "uniform",
										 "nearly singular"};

static void
make_symmetric(double *matrix, int n, int kind, uint64_t *state)
{
	memset(matrix, 0, (size_t) n * (size_t) n * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		for (int j = 0; j <= i; j++)
		{
			const double value = next_normal(state);

			if (kind == DIAGONAL && i != j)
				continue;
			matrix[i * n + j] = matrix[j * n + i] =
				kind == UNIFORM && i == j					  ? 2.0
				: kind == POSITIVE && i == j				  ? fabs(value) + 2.0 * n
				: kind == NEARLY_SINGULAR && (i > 0 || j > 0) ? value * 1e-9
				: kind == DIAGONAL							  ? value * value
															  : value;
		}
	}
}

/* What is wrong with one uniformization; NULL if nothing is. */
static const char *
check(int n, int kind, bool stable, uint64_t *state)
{
	const size_t size = (size_t) n * (size_t) n;
	double		*matrix = math_alloc(size, sizeof(double));
	double		*turned = math_alloc(size, sizeof(double));
	double		*rotation = math_alloc(size, sizeof(double));
	double		*product = math_alloc(size, sizeof(double));
	const char	*wrong = NULL;
	double		 mean = 0.0;
	double		 scale = 0.0;

	make_symmetric(matrix, n, kind, state);
	memcpy(turned, matrix, size * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		rotation[i * n + i] = 1.0;
		mean += matrix[i * n + i] / n;
	}
	for (size_t i = 0; i < size; i++)
		scale = fmax(scale, fabs(matrix[i]));
	if (unifdiag(turned, rotation, n, stable) > n - 1)
		wrong = "too many rotations";
	if (rotation_skew(rotation, n) > 1e-9)
		wrong = "rotation not orthogonal";

	/* R A R' by its definition */
	multiply_d(false, false, n, n, n, 1.0, rotation, matrix, 0.0, product);
	multiply_d(false, true, n, n, n, 1.0, product, rotation, 0.0, matrix);
	for (int i = 0; i < n; i++)
	{
		const double tolerance = (stable ? 0.05 : 1e-9) * fabs(mean) + 1e-9 * scale;

		if (!(fabs(matrix[i * n + i] - mean) <= tolerance))
			wrong = "diagonal not uniform";
	}
	for (size_t i = 0; i < size; i++)
	{
		if (!(fabs(matrix[i] - turned[i]) <= 1e-9 * scale * n))
			wrong = "matrix is not R A R'";
	}
	free(matrix);
	free(turned);
	free(rotation);
	free(product);
	return wrong;
}

int
main(void)
{
	const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 64, 100, 128, 256, 512};
	uint64_t  state = 5;

	require_linalg();
	for (int kind = 0; kind < KINDS; kind++)
	{
		for (int stable = 0; stable <= 1; stable++)
		{
			int matrices = 0;
			int wrong = 0;

			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			{
				for (int repeat = 0; repeat < (sizes[i] <= 32	 ? 100
											   : sizes[i] <= 128 ? 10
																 : 1);
					 repeat++)
				{
					const char *problem = check(sizes[i], kind, stable, &state);

					if (problem != NULL && wrong++ < 3)
						printf("# size %d: %s\n", sizes[i], problem);
					matrices++;
				}
			}
			ok(wrong == 0, "%d %s matrices, %s form", matrices, kind_names[kind],
			   stable ? "stable" : "the paper's");
		}
	}
	return done_testing();
}

/*
 * test_cancel.c
 *		Cancelled queries: how long the mathematics goes on before it looks for one, and what a
 *		model is after it.
 *
 * UNIFDIAG_BITS is the size of the models for the first, which have twice as many dimensions.
 */
#include <setjmp.h>
#include <time.h>

#include "../../src/math/projector.h"
#include "data.h"

/* the longest processor time without a look; UNIFDIAG_BITS asks for other models than of so many bits */
#define SECONDS 0.2
#define BITS 1024

/* rows that are learnt once the basis is full */
#define MORE_ROWS 300

static double last_look;
static double longest;

/* of this process alone: what else the machine does is not counted */
static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static void
look(void)
{
	const double now = seconds();

	longest = fmax(longest, now - last_look);
	last_look = now;
}

static void
start_watching(void)
{
	on_look = look;
	longest = 0.0;
	last_look = seconds();
}

static void
stop_watching(const char *what)
{
	look();
	on_look = NULL;
	ok(longest <= SECONDS, "%s: %.3f s without a look", what, longest);
}

/* Everything that is done to models of this size, but for what needs LAPACK's eigenvectors. */
static void
test_looks(int bits)
{
	const int	dims = 2 * bits;
	const int	rows = bits + MORE_ROWS;
	float	   *data = math_alloc((size_t) rows * (size_t) dims, sizeof(float));
	double	   *covariance = math_alloc((size_t) bits * (size_t) bits, sizeof(double));
	float	   *basis = math_alloc((size_t) bits * (size_t) dims, sizeof(float));
	ModelConfig config = make_config(dims, bits);
	uint64_t	seed = 14;
	Model	   *early;
	Model	   *model;
	Projector  *projector;

	for (size_t i = 0; i < (size_t) rows * (size_t) dims; i++)
		data[i] = (float) next_normal(&seed);
	config.rotation = &rotation_neighbour;

	start_watching();
	early = learn_rows(&config, 0, data, 0, bits / 2);
	stop_watching("learning the first rows");
	start_watching();
	model = model_copy(early);
	for (int t = bits / 2; t < rows; t++)
		model_learn(model, data + (size_t) t * (size_t) dims);
	model_sync(model);
	stop_watching("learning");
	start_watching();
	ok(isfinite(model_balance(model)) && isfinite(model_explained_variance(model)),
	   "what is known of it");
	model_covariance(model, covariance);
	stop_watching("looking at a model");
	start_watching();
	ok(isfinite(model_drift(early, model)), "its drift");
	stop_watching("drift");
	start_watching();
	projector = projector_create(model);
	projector_signs(projector, data, basis);
	projector_free(projector);
	stop_watching("hashing");
	model_free(early);
	model_free(model);

	config.rotation = &rotation_unifdiag;
	start_watching();
	model_free(learn_rows(&config, 0, data, 0, bits + 2));
	stop_watching("unifdiag");
	config.rotation = &rotation_none;
	config.tracker = &tracker_hadamard;
	start_watching();
	model = learn_rows(&config, 0, data, 0, 2);
	model_basis(model, basis);
	stop_watching("hadamard");
	model_free(model);
	config.tracker = &tracker_lsh;
	start_watching();
	model_free(learn_rows(&config, 0, data, 0, 2));
	stop_watching("lsh");
	free(data);
	free(covariance);
	free(basis);
}

static jmp_buf cancelled;
static int	   looks_left;

static void
cancel(void)
{
	if (looks_left-- == 0)
		longjmp(cancelled, 1);
}

/* Looks at a copy of the model, cancelled at that look; false if it has ended before. */
static bool
sync_cancelled(Model *model, int looks)
{
	const bool first = setjmp(cancelled) == 0;

	if (first)
	{
		looks_left = looks;
		on_look = cancel;
		model_sync(model);
	}
	on_look = NULL;
	looks_held = 0;
	return !first;
}

/* Of the basis the one that was cancelled may keep the rounding that the other has removed. */
static bool
same_model(const Model *a, const Model *b)
{
	const size_t size = (size_t) a->config.bits * (size_t) a->config.bits;
	double		 worst = 0.0;

	for (int i = 0; i < a->config.bits * a->config.dims; i++)
		worst = fmax(worst, fabs((double) a->basis[i] - b->basis[i]));
	return worst < 1e-5 && a->waiting == b->waiting && a->rank == b->rank &&
		   memcmp(a->covariance, b->covariance, size * sizeof(double)) == 0 &&
		   memcmp(a->rotation, b->rotation, size * sizeof(*a->rotation)) == 0 &&
		   (a->signs == NULL || memcmp(a->signs, b->signs, size * sizeof(double)) == 0);
}

/* A look at a model that was cancelled, and tried again, is as good as one that was not. */
static void
test_looking(const Tracker *tracker, const Rotation *rotation, int rows)
{
	const int	dims = 40;
	ModelConfig config = make_config(dims, 16);
	float	   *data = make_rows(1100, dims, dims, 15);
	Model	   *model = model_create(&config, 0);
	Model	   *expected;
	int			looks = 0;
	bool		same = true;

	model->config.tracker = tracker;
	model->config.rotation = rotation;
	for (int t = 0; t < rows; t++)
		model_learn(model, data + (size_t) t * (size_t) dims);
	expected = model_copy(model);
	model_sync(expected);
	for (bool again = true; again; looks++)
	{
		Model *copy = model_copy(model);

		again = sync_cancelled(copy, looks);
		model_sync(copy);
		same &= same_model(copy, expected);
		model_free(copy);
	}
	ok(same, "%s, %s, %d rows: a look that was cancelled at any of %d places counts no row twice",
	   tracker->name, rotation->name, rows, looks - 1);
	model_free(model);
	model_free(expected);
	free(data);
}

int
main(void)
{
	const char *size = getenv("UNIFDIAG_BITS");
	const int	counts[] = {10, 520, 1051};

	require_linalg();
	for (int i = 0; i < 3; i++)
	{
		test_looking(&tracker_opast, &rotation_neighbour, counts[i]);
		test_looking(&tracker_opast, &rotation_unifdiag, counts[i]);
		test_looking(&tracker_opast, &rotation_itq, counts[i]);
		test_looking(&tracker_osh, &rotation_itq, counts[i]);
	}
	test_looks(size != NULL ? (int) strtol(size, NULL, 10) : BITS);
	return done_testing();
}

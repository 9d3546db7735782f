/*
 * model.h
 *		A model in memory: what has been learnt of a stream of vectors, and how to turn
 *		a vector into a code with it.
 *
 * The code of x is the signs of R W (x - mean): W, the basis, spans the subspace in which
 * the vectors vary most, and R, the rotation, spreads the variance over the bits.  A
 * tracker learns W, a rotation method R; formulae are in src/math/README.md.
 *
 * Vectors are learnt in blocks.  The rows that wait for a full block are not yet in W, nor
 * in the covariance; model_sync takes them in, and everything that looks at those calls it
 * first.
 */
#ifndef UNIFDIAG_MODEL_H
#define UNIFDIAG_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_MAX_DIMS 16000

/* counts of rows are exact in double precision */
#define MODEL_MAX_ROWS (INT64_C(1) << 53)

/* exponents of differences of floats, with some to spare at each end */
#define MODEL_MIN_EXPONENT (-160)
#define MODEL_MAX_EXPONENT 160

/* squared length above which a row needs a larger exponent */
#define MAX_SQUARED_LENGTH 0x1p60

typedef struct Tracker	Tracker;
typedef struct Rotation Rotation;

typedef struct ModelConfig
{
	int				dims;
	int				bits;
	const Tracker  *tracker;
	const Rotation *rotation;
	bool			stable;		/* keep the rotation close to what it was */
	bool			center;		/* subtract the mean */
	double			forgetting; /* weight of a row after one more has come; 1 keeps all */
	int64_t			seed;
	bool			normalize; /* rows have length 1; the caller scales them */
} ModelConfig;

typedef struct Model
{
	ModelConfig config;
	int64_t		rows;
	double		weight;		   /* sum of the rows' weights; rows, if nothing is forgotten */
	double		scatter;	   /* weighted sum of squared distances from the mean */
	int			exponent;	   /* basis, covariance and scatter see vectors times 2^-exponent */
	int			rank;		   /* basis rows learnt; the others only complete the basis */
	int64_t		rotated_rows;  /* rows when the rotation was last adapted */
	double	   *mean;		   /* dims; the vectors' own scale */
	float	   *basis;		   /* bits x dims, orthonormal rows */
	double	   *covariance;	   /* bits x bits, sums, of the projected vectors */
	float	   *rotation;	   /* bits x bits, orthogonal */
	double	   *signs;		   /* bits x bits, sums of sign(R y) y', or NULL */
	int8_t	   *recent;		   /* the last projected rows, bits each; NULL if there are none */
	float	   *recent_scales; /* what each one's numbers are to be multiplied by */
	int			recent_rows;   /* how many there are */
	int			waiting;	   /* rows of the block that the tracker has not taken in */

	/* what only learning needs, and what is not stored */
	double *inverse; /* of the covariance; NULL if it is not known */
	float  *block;	 /* the waiting rows, centred and scaled; NULL if there was none */
	double *norms;	 /* their squared lengths */
	int		block_size;
	bool	complete;		/* all rows of the basis are orthonormal */
	int64_t refreshed_rows; /* rows when basis and inverse were last cleaned */
	int64_t looked_rows;	/* rows when the rotation was made for a look, before it was due */
	float  *first_rotation; /* what it starts from, until it is due; NULL if not made */
} Model;

/* A tracker learns the basis and the covariance. */
struct Tracker
{
	const char *name;
	bool		random;	 /* so is the basis, from the seed: no covariance, no rotation */
	bool		patient; /* takes rows in by full blocks only; they wait in the stored form too */
	bool		shrinks; /* the variance of the first direction left out is taken from all */
	/* takes the waiting rows in; NULL if only their mean and scatter count */
	void (*learn)(Model *model);
	/* makes what the seed determines; NULL if nothing is */
	void (*start)(Model *model);
	/*
	 * For a tracker that stores no matrix W: the number of floats that start makes instead, W x,
	 * and W itself.
	 */
	size_t (*basis_size)(const ModelConfig *config);
	void (*project)(const Model *model, const float *centred, float *projected);
	void (*expand)(const Model *model, float *basis);
	/* rows in a block; NULL if it does not matter */
	int (*block_size)(const ModelConfig *config);
};

/* A rotation method makes R. */
struct Rotation
{
	const char *name;
	bool		stored; /* with the model; else start makes it again */
	bool		signs;	/* needs the sums of sign(R y) y' */
	int			recent; /* needs this many of the last projected rows */
	/* R of a model without any row; it comes as zeros */
	void (*start)(const Model *model, double *rotation);
	/* R after the covariance has changed; NULL if it does not follow */
	void (*adapt)(Model *model, double *rotation);
	/* records projected rows before R is adapted; NULL if it needs none */
	void (*note)(Model *model, const double *projected, int rows);
};

/* a random basis is as good as any rotation of it */
static inline bool
rotation_makes_sense(const Tracker *tracker, const Rotation *rotation)
{
	return !tracker->random || (!rotation->stored && rotation->adapt == NULL);
}

extern const Tracker *const	 trackers[];
extern const int			 tracker_count;
extern const Rotation *const rotations[];
extern const int			 rotation_count;

extern const Tracker  tracker_hadamard;
extern const Tracker  tracker_lsh;
extern const Tracker  tracker_opast;
extern const Tracker  tracker_osh;
extern const Rotation rotation_isohash;
extern const Rotation rotation_itq;
extern const Rotation rotation_neighbour;
extern const Rotation rotation_none;
extern const Rotation rotation_random;
extern const Rotation rotation_unifdiag;

/* a model without any row, with room to learn blocks of block_size rows; 0 chooses */
extern Model *model_create(const ModelConfig *config, int block_size);
extern void	  model_prepare(Model *model);
extern void	  model_prepare_block(Model *model);
extern Model *model_copy(const Model *model);
extern void	  model_assign(Model *to, const Model *from);
extern void	  model_free(Model *model);

/* one row of finite numbers */
extern void model_learn(Model *model, const float *row);
extern void model_sync(Model *model);

/* merges both into a; keeps the orientation of a, or else of the one with more rows */
extern void model_merge(Model *a, Model *b, bool anchored);

/* R W, bits x dims; the model must be in sync */
extern void model_projection(const Model *model, float *projection);

/* R W (row - mean) of one row; projector.h has what is faster for many */
extern void model_project(const Model *model, const float *row, float *centred, float *projected);

/* W, bits x dims */
extern void model_basis(const Model *model, float *basis);

/* the covariance of W (row - mean), bits x bits, as sums */
extern void model_covariance(const Model *model, double *covariance);

/* the share of the variance in the subspace; the largest deviation of a bit's from the mean */
extern double model_explained_variance(const Model *model);
extern double model_balance(const Model *model);

/* the expected share of bits that differ between codes of the two */
extern double model_drift(const Model *before, const Model *after);

/* max |diag(R C R')/mean - 1| of another rotation R */
extern double rotation_balance(const Model *model, const double *rotation);

/* a random rotation from the seed; rotation_random.c */
extern void rotation_start_random(const Model *model, double *rotation);

/* turns the rotation, during the first rows, so that near rows get near codes; neighbours.c */
#define NEIGHBOUR_ROWS 960
extern void neighbours_note(Model *model, const double *projected, int rows);
extern void neighbours_turn(Model *model, double *rotation, bool balanced);

/* the last projected rows; recent_rows.c */
extern void recent_prepare(Model *model);
extern void recent_forget(Model *model);
extern void recent_keep(Model *model, const double *projected, int rows, int most);
extern bool recent_read(const Model *model, float *rows);

/* small rotations of R, and the diagonal of R C R'; diagonal.c */
extern void
diagonal_keep(const Model *model, const double *rotation, double *change, double *correction);
extern void	  diagonal_balance(const Model *model, double *rotation);
extern double rotation_factor(const double *change, int bits, double angle, bool at_most);
extern void	  rotation_apply(double *rotation, const double *change, int bits);

/* Givens rotations that make the diagonal uniform, and how many; rotation_unifdiag.c */
extern int unifdiag(double *covariance, double *rotation, int bits, bool stable);

/* for trackers and merging */
extern double model_memory(const ModelConfig *config);
extern void	  model_complete_basis(Model *model);
extern void	  model_assign_rotation(Model *to, const Model *from);
extern void	  model_settle(Model *model);
extern void	  model_note_projections(Model *model, const double *projected, int rows);
extern void	  model_start_rotation(Model *model);
extern void	  model_adapt_rotation(Model *model);
extern void	  model_invert(Model *model);
extern void	  model_forget_inverse(Model *model);
extern void	  model_refresh(Model *model);
extern void	  model_rescale(Model *model, int exponent);

/* the power of two below which all differences between row and mean are */
extern int model_row_exponent(const Model *model, const float *row);

extern void orthonormalise_row(const float *basis, int dims, int row, float *target);

#endif /* UNIFDIAG_MODEL_H */

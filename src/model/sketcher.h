/*
 * sketcher.h
 *		The sketcher type: a model as a value.
 *
 * Stored form, version 1.  Numbers are in network byte order; floating point is IEEE 754.
 * Offsets count from the end of the varlena header, and are those of the binary wire format too;
 * the text form is the same bytes in base64.
 *
 * offset  size  field         meaning
 *      0     4  magic         "UDSK"
 *      4     2  version       1
 *      6     2  flags         1 stable, 2 centred, 4 a base follows, 8 normalized; others zero
 *      8     4  checksum      CRC-32C of all other bytes
 *     12     4  dims          1 to 16000
 *     16     4  bits          1 to dims
 *     20     1  tracker       its number in methods.c
 *     21     1  rotation      its number in methods.c
 *     22     2  reserved      zero
 *     24     8  seed
 *     32     8  forgetting    above 0, at most 1
 *     40     8  rows          at most 2^53
 *     48     8  weight        sum of the rows' weights, each above 0 and at most 1
 *     56     8  scatter       weighted sum of squared distances from the mean
 *     64     4  exponent      of the power of two that vectors were divided by
 *     68     4  rank          basis rows that were learnt
 *     72     8  rotated_rows  rows when the rotation was last adapted
 *     80     4  waiting       rows that a patient tracker has not taken in
 *     84     4  recent        projected rows that the rotation remembers
 *     88        if rows > 0:  mean, dims doubles; basis, bits x dims floats, unless the
 *                             tracker has none but from the seed.  That is all if the basis is
 *                             random; else covariance, the lower triangle by rows, doubles;
 *                             rotation, if it is stored, bits x bits floats; signs, if the
 *                             rotation needs them, bits x bits doubles; waiting rows, waiting
 *                             x dims floats; recent rows' scales, recent floats;
 *                             their numbers, recent x bits signed bytes
 *               with a base:  another such value, to the end
 *
 * In memory a sketcher is an expanded object around a Model.  A base is the model that
 * sketcher_learn started from, in a partial aggregate: each worker learns its rows into a model
 * of their own, so that the base is counted once when they are combined.  To all other functions
 * such a value is the model that it stands for, the two merged.  The code of its last row is
 * part of a state of sketcher_stream; it is not stored.
 */
#ifndef UNIFDIAG_SKETCHER_H
#define UNIFDIAG_SKETCHER_H

#include "fmgr.h"
#include "utils/expandeddatum.h"

#include "../code/bithash.h"
#include "../compat.h"
#include "../math/model.h"
#include "../vectors.h"

StaticAssertDecl(MODEL_MAX_DIMS == VECTOR_MAX_DIMS, "a model takes every vector");

#define SKETCHER_HEADER_SIZE 88

typedef struct Sketcher
{
	ExpandedObjectHeader header;
	uint64				 identity; /* no other object of this process ever has it */
	Model				*model;
	Model				*base; /* or NULL */
	BitHash				*code; /* or NULL */
} Sketcher;

/* sketcher.c: values in memory */
extern void		 sketcher_require_linalg(void);
extern Sketcher *sketcher_create(const ModelConfig *config, MemoryContext parent);
extern Sketcher *sketcher_object(Datum datum);
extern Sketcher *sketcher_state(Datum datum, MemoryContext parent);
extern Sketcher *sketcher_writable(Datum datum, MemoryContext parent);
extern Model	*sketcher_model(Datum datum);
extern void		 sketcher_check_room(const Model *model, int64 rows);
extern bool		 sketcher_same_options(const ModelConfig *a, const ModelConfig *b);
extern void		 sketcher_peek(Datum datum, int *bits, int64 *rows);
extern void		 sketcher_merge_into(Model *model, Model *other, bool anchored);
extern void		 sketcher_absorb(Sketcher *sketcher, Model *other, bool anchored);
extern void		 sketcher_check_rows(const Model *model);

/* sketcher_options.c: options */
extern ModelConfig sketcher_default_config(int32 dims, int32 bits);
extern ModelConfig sketcher_config(int32 dims, int32 bits, text *tracker, text *rotation,
								   bool stable, bool center, double forgetting, int64 seed);
extern ModelConfig sketcher_config_for(const ModelConfig *config, int32 dims);

/* sketcher_learn.c: learning */
extern Vector sketcher_vector(const ModelConfig *config, Vector vector, float **room);
extern void	  sketcher_learn_prepared(Sketcher *sketcher, Vector vector);
extern void	  sketcher_learn_row(Sketcher *sketcher, Vector vector);
extern void	  sketcher_absorb_copy(Sketcher *sketcher, Sketcher *copy);

/* hash_plan.c: a model made ready for hashing */
typedef struct HashPlan HashPlan;
typedef struct HashPin	HashPin;

extern HashPlan			 *hash_plan_pin(HashPin **pin, Datum model, MemoryContext context);
extern const ModelConfig *hash_plan_config(const HashPlan *plan);
extern BitHash			 *hash_plan_code(HashPlan *plan, Vector vector);
extern BitHash			 *hash_argument(FunctionCallInfo fcinfo, Datum model);

#define SketcherGetDatum(s) EOHPGetRWDatum(&(s)->header)
#define PG_RETURN_SKETCHER(s) PG_RETURN_DATUM(SketcherGetDatum(s))
#define PG_GETARG_MODEL(n) sketcher_model(PG_GETARG_DATUM(n))

/* a vector, of a function that keeps nothing else from call to call */
#define PG_GETARG_VECTOR(n) vector_argument(fcinfo, n, (VectorCast **) &fcinfo->flinfo->fn_extra)

/* An argument whose model will be used up: never the caller's own object. */
#define GETARG_COPY(n, get) \
	get(MakeExpandedObjectReadOnly(PG_GETARG_DATUM(n), false, -1), CurrentMemoryContext)

/* sketcher_format.c: stored values */
extern void	  sketcher_check_size(const ModelConfig *config);
extern Size	  format_size(const Model *model, const Model *base);
extern void	  format_write(const Model *model, const Model *base, char *out, Size size);
extern Model *format_read(const char *data, Size size, Model **base);
extern void	  format_peek(const char *header, int *bits, int64 *rows);

/* sketcher_check.c: damage */
pg_noreturn extern void report_damage(const char *what);
extern void				sketcher_check_counts(const Model *model);
extern void				sketcher_check_arrays(const Model *model);
extern void				sketcher_check_angles(const Model *model);

#endif /* UNIFDIAG_SKETCHER_H */

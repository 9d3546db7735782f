/*
 * projector.h
 *		A model made ready to give the codes of many vectors.
 */
#ifndef UNIFDIAG_PROJECTOR_H
#define UNIFDIAG_PROJECTOR_H

#include "model.h"

typedef struct Projector Projector;

/* the model must be in sync, and outlive the projector unchanged */
extern Projector *projector_create(const Model *model);
extern void		  projector_free(Projector *projector);

/* bits numbers with the signs of R W (row - mean); row has finite numbers */
extern void projector_signs(Projector *projector, const float *row, float *signs);

#endif /* UNIFDIAG_PROJECTOR_H */

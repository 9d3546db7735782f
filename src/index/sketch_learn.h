/*
 * sketch_learn.h
 *		Learning the model of a sketch index from some of its rows.
 *
 * Memory is that of the context in which the learner was made.
 */
#ifndef UNIFDIAG_SKETCH_LEARN_H
#define UNIFDIAG_SKETCH_LEARN_H

#include "sketch.h"

typedef struct SketchLearner SketchLearner;

/* a learner of about so many rows */
extern SketchLearner *sketch_learner_create(SketchShape shape, SketchMetric metric, int64 rows);
extern void			  sketch_learner_add(SketchLearner *learner, const float *row);

/* rows that have been added */
extern int64 sketch_learner_rows(const SketchLearner *learner);

/* the model, and the share of the rows' variance in it; the learner has learnt enough then */
extern SketchModel *sketch_learner_finish(SketchLearner *learner, float *explained);

/* a calibration of that model by rows that it has not learnt, for blocks of so many rows */
extern SketchCalibration *
sketch_learner_calibration(const SketchLearner *learner, const SketchModel *model, int block);

/* rows that it takes to learn codes of this shape */
extern int64 sketch_least_rows(const SketchShape *shape);

#endif /* UNIFDIAG_SKETCH_LEARN_H */

/*
 * sketch_model.h
 *		Storing the model of a sketch index.
 */
#ifndef UNIFDIAG_SKETCH_MODEL_H
#define UNIFDIAG_SKETCH_MODEL_H

#include "sketch.h"

/* Where pages of a model come from, and where they go. */
typedef struct ModelPageWriter
{
	void *state;
	Page (*new_page)(void *state, BlockNumber *block);
	void (*write_page)(void *state, BlockNumber block, Page page);
} ModelPageWriter;

extern uint32	   sketch_new_id(void);
extern BlockNumber sketch_model_pages(const SketchShape *shape);
extern BlockNumber
sketch_write_model(const SketchModel *model, uint32 id, const ModelPageWriter *writer, uint32 *crc);
extern SketchMeta *sketch_checked_meta(Relation index, Page page);

#endif /* UNIFDIAG_SKETCH_MODEL_H */

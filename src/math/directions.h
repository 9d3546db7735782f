/*
 * directions.h
 *		Weighted directions, stacked, and the principal ones among them.
 *
 * A few directions with their variances stand for many rows.  Stacked with other directions, of
 * another model or of single rows, they are a small matrix (factor times the directions), whose
 * principal directions are the basis of all.
 */
#ifndef UNIFDIAG_DIRECTIONS_H
#define UNIFDIAG_DIRECTIONS_H

#include "model.h"

typedef struct Stack
{
	int			  dims;
	int			  count;
	const float **rows;	  /* the directions */
	double		 *factor; /* count x count; starts as zero */
} Stack;

extern Stack stack_create(int dims, int count);
extern void	 stack_free(Stack *stack);

/*
 * Adds the directions that a model has learnt, from the offset on, with their variances times
 * the weight; returns the offset after them.
 */
extern int stack_add_model(Stack *stack, int offset, const Model *model, double weight);

/* Adds one direction, of that length. */
extern int stack_add_row(Stack *stack, int offset, const float *row, double length);

/*
 * The principal directions become the model's basis, their variances its covariance; should they
 * not be found, it keeps what it has.  It changes at the end, when nothing can be cancelled.  Within
 * the subspace the basis is as near as possible to the directions given by nearest, in that
 * order; a number below zero stands for the opposite of direction -1 - number.
 */
extern void stack_principal(const Stack *stack, const int *nearest, Model *model);

#endif /* UNIFDIAG_DIRECTIONS_H */

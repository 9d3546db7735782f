/*
 * rows.h
 *		Loops over the elements of a row: sums in double precision, and centring.
 */
#ifndef UNIFDIAG_ROWS_H
#define UNIFDIAG_ROWS_H

#include <stddef.h>

/* row . row */
extern double squared_length(const float *row, int dims);

/* a . b */
extern double product_of_rows(const float *a, const float *b, int dims);

/* (row - mean) . (row - mean) */
extern double squared_distance(const float *row, const double *mean, int dims);

/* direction . (row - mean) */
extern double
product_with_difference(const float *direction, const float *row, const double *mean, int dims);

/* centred = scale (row - mean) */
extern void
subtract_mean(const float *row, const double *mean, float *centred, int dims, double scale);

/* The same with the mean of before; mean += step (row - mean).  Returns centred . centred. */
extern double
centre_row(const float *row, double *mean, float *centred, int dims, double scale, double step);

extern void copy_single(const double *from, float *to, size_t count);
extern void copy_double(const float *from, double *to, size_t count);

#endif /* UNIFDIAG_ROWS_H */

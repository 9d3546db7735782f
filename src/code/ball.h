/*
 * ball.h
 *		All codes within a radius of a centre: the right-hand side of code <@ ball.
 *
 * offset  size  field    meaning
 *      0     4  vl_len_  varlena header
 *      4     4  radius   in bits; a ball of a negative radius is empty
 *      8     2  nbits    length of the centre, 1 to 64000
 *     10     n  bits     the centre, as in a bithash
 */
#ifndef UNIFDIAG_BALL_H
#define UNIFDIAG_BALL_H

#include "bithash.h"

typedef struct HammingBall
{
	int32  vl_len_;
	int32  radius;
	uint16 nbits;
	uint8  bits[FLEXIBLE_ARRAY_MEMBER];
} HammingBall;

#define DatumGetHammingBall(d) ((HammingBall *) PG_DETOAST_DATUM(d))

static inline BitHashView
ball_center(const HammingBall *ball)
{
	const BitHashView view = {.nbits = ball->nbits, .bits = ball->bits};

	return view;
}

extern HammingBall *make_ball(BitHashView center, int32 radius);

/* for the planner: hamming_within as an index condition */
struct SupportRequestIndexCondition;
extern struct List *hamming_within_condition(struct SupportRequestIndexCondition *request);

#endif /* UNIFDIAG_BALL_H */

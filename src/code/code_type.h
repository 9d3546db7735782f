/*
 * code_type.h
 *		The types of columns that hold codes: bithash, core's bit and bit varying, and bigint.
 */
#ifndef UNIFDIAG_CODE_TYPE_H
#define UNIFDIAG_CODE_TYPE_H

#include "bithash.h"

/* of a bigint */
#define INT8_BITS 64

typedef enum CodeType
{
	CODE_BITHASH,
	CODE_BIT,  /* bit and bit varying, which are stored alike */
	CODE_INT8, /* 64 bits, the highest of the number first */
} CodeType;

extern CodeType code_type_of(Oid type);
extern int		code_type_bits(Oid type, int32 typmod);

/*
 * A value as a code to be read, in the value itself or in the current memory context.  Of bit
 * strings it may have more bits than a bithash, or none.
 */
extern BitHashView code_view(CodeType type, Datum value);

/* a value of the type, in the current memory context */
extern Datum code_datum(CodeType type, BitHashView code);

#endif /* UNIFDIAG_CODE_TYPE_H */

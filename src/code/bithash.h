/*
 * bithash.h
 *		A binary code of 1 to 64000 bits: how it is stored, and how it is read.
 *
 * offset  size  field    meaning
 *      0     4  vl_len_  varlena header (1 byte when stored short)
 *      4     2  nbits    number of bits, 1 to 64000, in the server's byte order
 *      6     n  bits     ceil(nbits / 8) bytes; the first bit is the highest bit of
 *                        the first byte; the unused low bits of the last are zero
 *
 * The last rule makes equality bytewise, and together with the order of the bits it
 * makes bytewise order the order of the text forms.
 */
#ifndef UNIFDIAG_BITHASH_H
#define UNIFDIAG_BITHASH_H

#include "fmgr.h"

#include "../compat.h"

#define BITHASH_MAX_BITS 64000

typedef struct BitHash
{
	int32  vl_len_;
	uint16 nbits;
	uint8  bits[FLEXIBLE_ARRAY_MEMBER];
} BitHash;

StaticAssertDecl(offsetof(BitHash, nbits) == 4, "nbits follows the varlena header");
StaticAssertDecl(offsetof(BitHash, bits) == 6, "bits follow nbits without a gap");
StaticAssertDecl(BITHASH_MAX_BITS <= PG_UINT16_MAX, "nbits holds every length");

#define BITHASH_BYTES(nbits) (((nbits) + 7) / 8)
#define BITHASH_SIZE(nbits) (offsetof(BitHash, bits) + BITHASH_BYTES(nbits))

/* the bits of the last byte that lie beyond the end of a code */
#define BITHASH_PADDING(nbits) ((uint8) ((1 << (7 - ((nbits) + 7) % 8)) - 1))

/*
 * A code to be read where it lies: a short header leaves nbits and the bits at any
 * address.  It points into the datum, or into the copy that detoasting made.
 */
typedef struct BitHashView
{
	int			 nbits;
	const uint8 *bits;
} BitHashView;

static inline BitHashView
bithash_view(struct varlena *packed)
{
	const char *data = VARDATA_ANY(packed);
	uint16		nbits;
	BitHashView view;

	memcpy(&nbits, data, sizeof(nbits));
	view.nbits = nbits;
	view.bits = (const uint8 *) data + sizeof(nbits);
	Assert(VARSIZE_ANY_EXHDR(packed) == sizeof(nbits) + BITHASH_BYTES(nbits));
	return view;
}

#define DatumGetBitHashView(d) bithash_view(PG_DETOAST_DATUM_PACKED(d))
#define PG_GETARG_BITHASH_VIEW(n) DatumGetBitHashView(PG_GETARG_DATUM(n))

extern PGDLLEXPORT Datum bithash_in(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bithash_out(PG_FUNCTION_ARGS);

extern BitHash *bithash_make(int nbits);
extern BitHash *bithash_of_signs(const float *numbers, int count);
extern bool		bithash_check_length(int64 nbits, int too_short_code, struct Node *escontext);
extern bool		bithash_check_typmod(int nbits, int32 typmod, struct Node *escontext);
extern bool		bithash_padding_is_zero(int nbits, const uint8 *bits);

#endif /* UNIFDIAG_BITHASH_H */

/*
 * sketcher_io.c
 *		The sketcher type's text and binary forms: the stored bytes, in base64 or as they are.
 */
#include "postgres.h"

#include "common/base64.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "sketcher.h"

/* bytes that become text, or are made of it, between two looks for a cancelled query: whole threes */
#define PART_SIZE (3 << 20)

/* Base64 of the bytes; false if there is no room. */
static bool
encode(const char *bytes, int size, char *text, int room)
{
	for (int done = 0; done < size; done += PART_SIZE)
	{
		const int length = pg_b64_encode((const Base64Byte *) bytes + done,
										 Min(size - done, PART_SIZE), text, room);

		CHECK_FOR_INTERRUPTS();
		if (length < 0)
			return false;
		text += length;
		room -= length;
	}
	*text = '\0';
	return true;
}

/* The bytes that base64 stands for; -1 if it is something else. */
static int
decode(const char *text, int length, char *bytes, int room)
{
	const int part = PART_SIZE / 3 * 4;
	int		  size = 0;

	for (int done = 0; done < length; done += part)
	{
		const int made = pg_b64_decode(text + done, Min(length - done, part),
									   (Base64Byte *) bytes + size, room - size);

		CHECK_FOR_INTERRUPTS();
		/* padding is at the end only */
		if (made < 0 || (made < PART_SIZE && length - done > part))
			return -1;
		size += made;
	}
	return size;
}

/* A stored value of these bytes, which may be anything. */
static struct varlena *
checked_value(struct varlena *value, int size)
{
	MemoryContext scratch =
		AllocSetContextCreate(CurrentMemoryContext, "unifdiag check", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(scratch);
	Model		 *base;
	Model		 *model = format_read(VARDATA(value), (Size) size, &base);

	sketcher_check_angles(model);
	if (base != NULL)
		sketcher_check_angles(base);
	SET_VARSIZE(value, VARHDRSZ + size);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	return value;
}

PG_FUNCTION_INFO_V1(sketcher_in);
Datum
sketcher_in(PG_FUNCTION_ARGS)
{
	const char	   *text = PG_GETARG_CSTRING(0);
	const int		length = (int) strlen(text);
	const int		room = length / 4 * 3 + 3; /* pg_b64_dec_len overflows */
	struct varlena *value = palloc(VARHDRSZ + room);
	const int		size = decode(text, length, VARDATA(value), room);

	if (size < 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				errmsg("invalid input syntax for type sketcher"),
				errdetail("The text of a sketcher is base64."));
	PG_RETURN_POINTER(checked_value(value, size));
}

PG_FUNCTION_INFO_V1(sketcher_out);
Datum
sketcher_out(PG_FUNCTION_ARGS)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	const int		size = (int) VARSIZE_ANY_EXHDR(value);
	const int		room = pg_b64_enc_len(size);
	char		   *text = palloc(room + 1);

	if (!encode(VARDATA_ANY(value), size, text, room))
		elog(ERROR, "could not encode a sketcher");
	PG_RETURN_CSTRING(text);
}

PG_FUNCTION_INFO_V1(sketcher_recv);
Datum
sketcher_recv(PG_FUNCTION_ARGS)
{
	StringInfo		message = (StringInfo) PG_GETARG_POINTER(0);
	const int		size = message->len - message->cursor;
	struct varlena *value = palloc(VARHDRSZ + size);

	pq_copymsgbytes(message, VARDATA(value), size);
	PG_RETURN_POINTER(checked_value(value, size));
}

PG_FUNCTION_INFO_V1(sketcher_send);
Datum
sketcher_send(PG_FUNCTION_ARGS)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	StringInfoData	message;

	pq_begintypsend(&message);
	pq_sendbytes(&message, VARDATA_ANY(value), (int) VARSIZE_ANY_EXHDR(value));
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

/*
 * sketcher_format.c
 *		Reads and writes the stored form of a sketcher, which sketcher.h specifies.
 *
 * Whatever comes in may be garbage: nothing is allocated before the header has been found
 * consistent with the size, and no number is used before it has been checked.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "port/pg_crc32c.h"
#include "utils/memutils.h"

#include "../compat.h"
#include "../math/rows.h"
#include "sketcher.h"

#define MAGIC 0x5544534bU /* "UDSK" */
#define VERSION 1
#define CHECKSUM_OFFSET 8
#define BITS_OFFSET 16
#define ROWS_OFFSET 40

#define FLAG_STABLE 1
#define FLAG_CENTER 2
#define FLAG_BASE 4
#define FLAG_NORMALIZE 8

/* base64 makes four characters of three bytes; and it ends with a zero */
#define MAX_MODEL_SIZE ((MaxAllocSize - 1) / 4 * 3)

static char *
write_16(char *out, uint16 value)
{
	value = pg_hton16(value);
	memcpy(out, &value, sizeof(value));
	return out + sizeof(value);
}

static char *
write_32(char *out, uint32 value)
{
	value = pg_hton32(value);
	memcpy(out, &value, sizeof(value));
	return out + sizeof(value);
}

static char *
write_64(char *out, uint64 value)
{
	value = pg_hton64(value);
	memcpy(out, &value, sizeof(value));
	return out + sizeof(value);
}

static char *
write_double(char *out, double value)
{
	uint64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return write_64(out, bits);
}

static char *
write_doubles(char *out, const double *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out = write_double(out, values[i]);
	return out;
}

static char *
write_float(char *out, float value)
{
	uint32 bits;

	memcpy(&bits, &value, sizeof(bits));
	return write_32(out, bits);
}

static char *
write_floats(char *out, const float *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out = write_float(out, values[i]);
	return out;
}

static uint16
read_16(const char *data)
{
	uint16 value;

	memcpy(&value, data, sizeof(value));
	return pg_ntoh16(value);
}

static uint32
read_32(const char *data)
{
	uint32 value;

	memcpy(&value, data, sizeof(value));
	return pg_ntoh32(value);
}

static uint64
read_64(const char *data)
{
	uint64 value;

	memcpy(&value, data, sizeof(value));
	return pg_ntoh64(value);
}

static double
read_double(const char *data)
{
	const uint64 bits = read_64(data);
	double		 value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static const char *
read_doubles(const char *data, double *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		values[i] = read_double(data + sizeof(double) * i);
		if (!isfinite(values[i]))
			report_damage("a number is not finite");
	}
	return data + sizeof(double) * count;
}

static float
read_float(const char *data)
{
	const uint32 bits = read_32(data);
	float		 value;

	memcpy(&value, &bits, sizeof(value));
	if (!isfinite(value))
		report_damage("a number is not finite");
	return value;
}

static const char *
read_floats(const char *data, float *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] = read_float(data + sizeof(float) * i);
	return data + sizeof(float) * count;
}

/* Bytes of one model that has rows, without a base. */
static Size
body_size(const ModelConfig *config, Size waiting, Size recent)
{
	const Size dims = (Size) config->dims;
	const Size bits = (Size) config->bits;
	Size	   size = SKETCHER_HEADER_SIZE + dims * sizeof(double);

	if (config->tracker->expand == NULL)
		size += bits * dims * sizeof(float);
	if (config->tracker->random)
		return size;
	size += bits * (bits + 1) / 2 * sizeof(double);
	if (config->rotation->stored)
		size += bits * bits * sizeof(float);
	if (config->rotation->signs)
		size += bits * bits * sizeof(double);
	return size + waiting * dims * sizeof(float) + recent * (sizeof(float) + bits);
}

static Size
model_size(const Model *model)
{
	if (model->rows == 0)
		return SKETCHER_HEADER_SIZE;
	return body_size(&model->config, (Size) model->waiting, (Size) model->recent_rows);
}

/*
 * The most rows that a model may keep beside what it has learnt.  A tracker that is not patient
 * has taken all in when it is stored.
 */
static Size
most_waiting(const ModelConfig *config)
{
	return config->tracker->patient ? (Size) config->tracker->block_size(config) : 0;
}

/* Refuses a model that could not be stored, or not be written as text. */
void
sketcher_check_size(const ModelConfig *config)
{
	if (body_size(config, most_waiting(config), (Size) config->rotation->recent) > MAX_MODEL_SIZE)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				errmsg("model of %d bits for %d dimensions is too large", config->bits,
					   config->dims),
				errdetail("The text form of a model takes less than a gigabyte."));
}

Size
format_size(const Model *model, const Model *base)
{
	return model_size(model) + (base != NULL ? model_size(base) : 0);
}

static uint32
checksum(const char *data, Size size)
{
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, data, CHECKSUM_OFFSET);
	COMP_CRC32C(crc, data + CHECKSUM_OFFSET + sizeof(uint32),
				size - CHECKSUM_OFFSET - sizeof(uint32));
	FIN_CRC32C(crc);
	return crc;
}

static int
number_of_tracker(const Tracker *tracker)
{
	int number = 0;

	while (trackers[number] != tracker)
		number++;
	return number;
}

static int
number_of_rotation(const Rotation *rotation)
{
	int number = 0;

	while (rotations[number] != rotation)
		number++;
	return number;
}

static char *
write_body(const Model *model, char *out)
{
	const size_t dims = (size_t) model->config.dims;
	const size_t bits = (size_t) model->config.bits;

	if (model->rows == 0)
		return out;
	out = write_doubles(out, model->mean, dims);
	if (model->config.tracker->expand == NULL)
		out = write_floats(out, model->basis, bits * dims);
	if (model->config.tracker->random)
		return out;
	for (size_t i = 0; i < bits; i++)
		out = write_doubles(out, model->covariance + i * bits, i + 1);
	if (model->config.rotation->stored)
		out = write_floats(out, model->rotation, bits * bits);
	if (model->config.rotation->signs)
		out = write_doubles(out, model->signs, bits * bits);
	out = write_floats(out, model->block, (size_t) model->waiting * dims);
	out = write_floats(out, model->recent_scales, (size_t) model->recent_rows);
	if (model->recent_rows > 0)
		memcpy(out, model->recent, (size_t) model->recent_rows * bits);
	return out + (size_t) model->recent_rows * bits;
}

/* Writes a model that is in sync, and its base; size is what format_size said. */
void
format_write(const Model *model, const Model *base, char *out, Size size)
{
	const ModelConfig *config = &model->config;
	char			  *next = out;

	next = write_32(next, MAGIC);
	next = write_16(next, VERSION);
	next = write_16(
		next, (uint16) ((config->stable ? FLAG_STABLE : 0) | (config->center ? FLAG_CENTER : 0) |
						(base != NULL ? FLAG_BASE : 0) | (config->normalize ? FLAG_NORMALIZE : 0)));
	next = write_32(next, 0);
	next = write_32(next, (uint32) config->dims);
	next = write_32(next, (uint32) config->bits);
	*next++ = (char) number_of_tracker(config->tracker);
	*next++ = (char) number_of_rotation(config->rotation);
	next = write_16(next, 0);
	next = write_64(next, (uint64) config->seed);
	next = write_double(next, config->forgetting);
	next = write_64(next, (uint64) model->rows);
	next = write_double(next, model->weight);
	next = write_double(next, model->scatter);
	next = write_32(next, (uint32) model->exponent);
	next = write_32(next, (uint32) model->rank);
	next = write_64(next, (uint64) model->rotated_rows);
	next = write_32(next, (uint32) model->waiting);
	next = write_32(next, (uint32) model->recent_rows);
	Assert(next == out + SKETCHER_HEADER_SIZE);
	next = write_body(model, next);
	if (base != NULL)
	{
		format_write(base, NULL, next, model_size(base));
		next += model_size(base);
	}
	Assert(next == out + size);
	write_32(out + CHECKSUM_OFFSET, checksum(out, size));
}

static void
read_config(const char *data, ModelConfig *config)
{
	const uint16 flags = read_16(data + 6);
	const uint32 dims = read_32(data + 12);
	const uint32 bits = read_32(data + 16);
	const uint8	 tracker = (uint8) data[20];
	const uint8	 rotation = (uint8) data[21];

	if ((flags & ~(FLAG_STABLE | FLAG_CENTER | FLAG_BASE | FLAG_NORMALIZE)) != 0 ||
		read_16(data + 22) != 0)
		report_damage("reserved bits are set");
	if (dims < 1 || dims > MODEL_MAX_DIMS || bits < 1 || bits > dims)
		report_damage("impossible number of dimensions or bits");
	if (tracker >= tracker_count || rotation >= rotation_count)
		report_damage("unknown tracker or rotation");
	config->dims = (int) dims;
	config->bits = (int) bits;
	config->tracker = trackers[tracker];
	config->rotation = rotations[rotation];
	if (!rotation_makes_sense(config->tracker, config->rotation))
		report_damage("its tracker takes no such rotation");
	config->stable = (flags & FLAG_STABLE) != 0;
	config->center = (flags & FLAG_CENTER) != 0;
	config->normalize = (flags & FLAG_NORMALIZE) != 0;
	sketcher_check_size(config);
	config->seed = (int64) read_64(data + 24);
	config->forgetting = read_double(data + 32);
	if (!(config->forgetting > 0.0 && config->forgetting <= 1.0))
		report_damage("impossible forgetting factor");
}

static void
read_counts(const char *data, Model *model)
{
	model->rows = (int64) read_64(data + 40);
	model->weight = read_double(data + 48);
	model->scatter = read_double(data + 56);
	model->exponent = (int32) read_32(data + 64);
	model->rank = (int32) read_32(data + 68);
	model->rotated_rows = (int64) read_64(data + 72);
	model->waiting = (int32) read_32(data + 80);
	model->recent_rows = (int32) read_32(data + 84);
	sketcher_check_counts(model);
}

static const char *
read_covariance(const char *data, double *covariance, size_t bits)
{
	for (size_t i = 0; i < bits; i++)
	{
		data = read_doubles(data, covariance + i * bits, i + 1);
		for (size_t j = 0; j < i; j++)
			covariance[j * bits + i] = covariance[i * bits + j];
	}
	return data;
}

static void
read_body(const char *data, Model *model)
{
	const Tracker  *tracker = model->config.tracker;
	const Rotation *rotation = model->config.rotation;
	const size_t	dims = (size_t) model->config.dims;
	const size_t	bits = (size_t) model->config.bits;

	data = read_doubles(data, model->mean, dims);
	if (tracker->expand != NULL)
		tracker->start(model);
	else
		data = read_floats(data, model->basis, bits * dims);
	model->complete = true;
	if (tracker->random)
		return;
	data = read_covariance(data, model->covariance, bits);
	/* else it is the same at each start */
	if (rotation->stored)
		data = read_floats(data, model->rotation, bits * bits);
	else
		model_start_rotation(model);
	/* there was none to make since */
	model->looked_rows = model->rows;
	if (rotation->signs)
		data = read_doubles(data, model->signs, bits * bits);
	if (model->waiting > 0)
		model_prepare_block(model);
	data = read_floats(data, model->block, (size_t) model->waiting * dims);
	for (int t = 0; t < model->waiting; t++)
		model->norms[t] = squared_length(model->block + (size_t) t * dims, (int) dims);
	if (model->recent_rows > 0)
	{
		recent_prepare(model);
		data = read_floats(data, model->recent_scales, (size_t) model->recent_rows);
		memcpy(model->recent, data, (size_t) model->recent_rows * bits);
	}
}

/* One model, from the front of a value; what follows it must be a base, if anything does. */
static Model *
read_model(const char *data, Size size, Size *used)
{
	ModelConfig config;
	Model	   *model;
	Size		expected;
	int64		rows;
	uint32		waiting;
	uint32		recent;
	bool		has_base;

	if (size < SKETCHER_HEADER_SIZE || read_32(data) != MAGIC)
		ereport(ERROR, errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				errmsg("value is not a sketcher"));
	if (read_16(data + 4) != VERSION)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("sketcher has format version %d", read_16(data + 4)),
				errdetail("This version of unifdiag reads format version %d.", VERSION));
	read_config(data, &config);
	rows = (int64) read_64(data + 40);
	waiting = read_32(data + 80);
	recent = read_32(data + 84);
	/* fewer than a block, as the block is taken in at once */
	if (waiting > 0 && (rows == 0 || waiting >= most_waiting(&config)))
		report_damage("impossible number of waiting rows");
	if (recent > 0 && (rows == 0 || recent > (uint32) config.rotation->recent))
		report_damage("impossible number of recent rows");
	has_base = (read_16(data + 6) & FLAG_BASE) != 0;
	expected = rows == 0 ? SKETCHER_HEADER_SIZE : body_size(&config, waiting, recent);
	if (rows < 0 || (has_base ? size <= expected : size != expected))
		report_damage("its size does not match its contents");
	if (checksum(data, size) != read_32(data + CHECKSUM_OFFSET))
		report_damage("its checksum does not match its contents");

	CHECK_FOR_INTERRUPTS();
	sketcher_require_linalg();
	model = model_create(&config, 0);
	read_counts(data, model);
	if (rows > 0)
	{
		model_prepare(model);
		read_body(data + SKETCHER_HEADER_SIZE, model);
		CHECK_FOR_INTERRUPTS();
		sketcher_check_arrays(model);
	}
	*used = expected;
	return model;
}

/* A model, and its base or NULL, in the current memory context. */
Model *
format_read(const char *data, Size size, Model **base)
{
	Size   used;
	Size   rest;
	Model *model = read_model(data, size, &used);

	*base = NULL;
	if (used < size)
	{
		*base = read_model(data + used, size - used, &rest);
		if (rest < size - used)
			report_damage("its base has a base");
		if (!sketcher_same_options(&model->config, &(*base)->config))
			report_damage("its base has other options");
	}
	return model;
}

/* The numbers of bits and rows, from a header that was checked when it came in. */
void
format_peek(const char *header, int *bits, int64 *rows)
{
	uint32 stored_bits;
	uint64 stored_rows;

	memcpy(&stored_bits, header + BITS_OFFSET, sizeof(stored_bits));
	memcpy(&stored_rows, header + ROWS_OFFSET, sizeof(stored_rows));
	*bits = (int) pg_ntoh32(stored_bits);
	*rows = (int64) pg_ntoh64(stored_rows);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result/document_parts.h"
#include "result/read.h"

/* A document of a day's soak has some tens of MB. */
enum { MAX_BYTES = 256 << 20 };

static const struct {
	const char *unit;
	int direction;
	double floor;
} units[] = {
	{ "frames/s", 1, 1 },
	{ "bit/s", 1, 1 },
	{ "frames", 1, 1 },
	{ "connections/s", 1, 1 },
	{ "connections", 1, 1 },
	{ "ns", -1, 1 },
	{ "ns/frame", -1, 0 },
	{ "cycles/frame", -1, 0 },
	{ "s", -1, 1e-9 },
	{ "ratio", -1, 1e-9 },
	{ "frames lost", -1, FLOOR_FRAMES },
};

int unit_direction(const char *unit)
{
	for (uint32_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(units[i].unit, unit) == 0)
			return units[i].direction;
	return 0;
}

double unit_floor(const char *unit)
{
	for (uint32_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(units[i].unit, unit) == 0)
			return units[i].floor;
	return 0;
}

const char *json_text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

double json_number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

__attribute__((format(printf, 3, 4))) static int
wrong(const char *name, struct mr_reason *why, const char *format, ...)
{
	va_list args;
	int n;

	n = snprintf(why->text, sizeof(why->text), "%.120s: ", name);
	va_start(args, format);
	vsnprintf(why->text + n, sizeof(why->text) - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

/* An array of objects that have these members, of these types. */
struct shape {
	const char *array;
	const char *texts[4], *numbers[8], *objects[4];
};

static const struct shape net_shapes[] = {
	{ .array = "rows",
	  .texts = { "goal", "unit" },
	  .numbers = { "frame_bytes", "value", "low", "high" } },
	{ .array = "trials",
	  .numbers = { "frame_bytes", "asked_pps", "start_s", "duration_s" },
	  .objects = { "tx", "rx", "percentiles", "histogram" } },
	{ .array = "series",
	  .numbers = { "frame_bytes", "start_s", "tx_pps", "rx_pps" } },
	{ .array = "selftest", .numbers = { "frame_bytes", "ceiling_pps" } },
	{ .array = "ports", .texts = { "name", "mode" } },
};

static const struct shape mem_shapes[] = {
	{ .array = "rows", .texts = { "workload", "name", "unit" } },
};

static int check_member(const char *name, const struct shape *shape, size_t i,
			const json_t *entry, struct mr_reason *why)
{
	static const char cure[] =
		"it was changed since mr-bench wrote it: measure again";

	if (!json_is_object(entry))
		return wrong(name, why, "%s[%zu] is no object; %s",
			     shape->array, i, cure);
	for (uint32_t k = 0; k < 4 && shape->texts[k] != NULL; k++)
		if (!json_is_string(json_object_get(entry, shape->texts[k])))
			return wrong(name, why, "%s[%zu].%s is no text; %s",
				     shape->array, i, shape->texts[k], cure);
	for (uint32_t k = 0; k < 8 && shape->numbers[k] != NULL; k++)
		if (!json_is_number(json_object_get(entry, shape->numbers[k])))
			return wrong(name, why, "%s[%zu].%s is no number; %s",
				     shape->array, i, shape->numbers[k], cure);
	for (uint32_t k = 0; k < 4 && shape->objects[k] != NULL; k++)
		if (!json_is_object(json_object_get(entry, shape->objects[k])))
			return wrong(name, why, "%s[%zu].%s is no object; %s",
				     shape->array, i, shape->objects[k], cure);
	return 0;
}

static int check_shapes(const char *name, const json_t *root,
			const struct shape *shapes, uint32_t n_shapes,
			struct mr_reason *why)
{
	if (!json_is_object(json_object_get(root, "machine")))
		return wrong(name, why, "it has no \"machine\"; measure again");
	for (uint32_t s = 0; s < n_shapes; s++) {
		const json_t *array = json_object_get(root, shapes[s].array);
		const json_t *entry;
		size_t i;

		if (!json_is_array(array))
			return wrong(name, why,
				     "it has no \"%s\"; measure again",
				     shapes[s].array);
		json_array_foreach(array, i, entry)
		{
			const int ret =
				check_member(name, &shapes[s], i, entry, why);

			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

/* Units that documents before November 2026 spell differently. */
static void rename_unit(json_t *row)
{
	const char *unit = json_text_of(row, "unit");

	if (strcmp(unit, "frame/s") == 0)
		json_object_set_new(row, "unit", json_string("frames/s"));
	else if (strcmp(unit, "connection/s") == 0)
		json_object_set_new(row, "unit", json_string("connections/s"));
}

static int check_units(const char *name, const json_t *root,
		       struct mr_reason *why)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "rows"), i, row)
		rename_unit(row);
	json_array_foreach(
		json_object_get(root, "rows"), i,
		row) if (unit_direction(json_text_of(row, "unit")) ==
			 0) return wrong(name, why,
					 "rows[%zu].unit \"%.40s\" is unknown "
					 "to this program; measure again",
					 i, json_text_of(row, "unit"));
	return 0;
}

static int check(struct read_document *document, struct mr_reason *why)
{
	const char *schema = json_text_of(document->root, "schema");
	const char *command = json_text_of(document->root, "command");
	const double v = json_number_of(document->root, "v");
	const char *name = document->name;
	int ret;

	if (strcmp(schema, DOCUMENT_SCHEMA) == 0)
		document->schema = SCHEMA_NET;
	else if (schema[0] == '\0' &&
		 (strcmp(command, "mem") == 0 || strcmp(command, "flow") == 0 ||
		  strcmp(command, "fwd") == 0))
		document->schema = SCHEMA_MEM;
	else
		return wrong(name, why,
			     "no document of mr-bench; it takes those that "
			     "--json prints");
	if (v != DOCUMENT_VERSION)
		return wrong(name, why,
			     "version %.0f of the schema, and this program "
			     "reads %d; use the mr-bench that wrote it (%.20s)",
			     v, DOCUMENT_VERSION,
			     json_text_of(document->root, "millrace"));
	if (document->schema == SCHEMA_MEM)
		return check_shapes(name, document->root, mem_shapes, 1, why);
	ret = check_shapes(name, document->root, net_shapes,
			   sizeof(net_shapes) / sizeof(*net_shapes), why);
	return ret == 0 ? check_units(name, document->root, why) : ret;
}

int document_read_bytes(const char *name, const void *bytes, size_t n_bytes,
			struct read_document *ret, struct mr_reason *why)
{
	json_error_t error;
	int status;

	*ret = (struct read_document){ .name = strdup(name) };
	ret->root = json_loadb(bytes, n_bytes, JSON_REJECT_DUPLICATES, &error);
	if (ret->name == NULL)
		abort();
	if (ret->root == NULL)
		status = wrong(name, why,
			       "line %d: %.80s; it is truncated or not JSON: "
			       "measure again",
			       error.line, error.text);
	else
		status = check(ret, why);
	if (status < 0)
		read_document_free(ret);
	return status;
}

/* All of a stream; NULL with errno. */
static char *read_all(FILE *from, size_t *ret_n)
{
	size_t n = 0, room = 1 << 16;
	char *bytes = NULL;

	errno = 0;
	for (;;) {
		char *more = realloc(bytes, room);

		if (more == NULL)
			break;
		bytes = more;
		n += fread(bytes + n, 1, room - n, from);
		if (n < room && !ferror(from)) {
			*ret_n = n;
			return bytes;
		}
		if (ferror(from) || room >= MAX_BYTES)
			break;
		room *= 2;
	}
	errno = errno != 0 ? errno : EFBIG;
	free(bytes);
	return NULL;
}

int document_read(const char *path, struct read_document *ret,
		  struct mr_reason *why)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	FILE *from = is_stdin ? stdin : fopen(path, "re");
	char *bytes = NULL;
	size_t n_bytes = 0;
	int status;

	if (from != NULL)
		bytes = read_all(from, &n_bytes);
	if (bytes == NULL) {
		status = -errno;
		snprintf(why->text, sizeof(why->text), "%.180s: %s", path,
			 strerror(errno));
	} else {
		status = document_read_bytes(is_stdin ? "standard input" : path,
					     bytes, n_bytes, ret, why);
	}
	free(bytes);
	if (from != NULL && !is_stdin)
		fclose(from);
	return status;
}

void read_document_free(struct read_document *document)
{
	json_decref(document->root);
	free(document->name);
	*document = (struct read_document){ 0 };
}

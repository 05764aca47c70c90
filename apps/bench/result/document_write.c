/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents as files: written beside the name and renamed, so that a reader
 * never sees half of one. */
#include <stdio.h>
#include <string.h>

#include "result/document_parts.h"
#include "result/file.h"
#include "result/hdr.h"

enum { WHOLE = JSON_REAL_PRECISION(10) | JSON_ENCODE_ANY };

/* Entries of arrays, which are many, are a line each. */
static bool write_member(json_t *value, FILE *to)
{
	const size_t n = json_array_size(value);
	bool is_good = true;

	if (n == 0)
		return json_dumpf(value, to, WHOLE | JSON_INDENT(2)) == 0;
	for (size_t i = 0; i < n && is_good; i++) {
		fputs(i == 0 ? "[\n  " : ",\n  ", to);
		is_good = json_dumpf(json_array_get(value, i), to,
				     WHOLE | JSON_COMPACT) == 0;
	}
	fputs("\n ]", to);
	return is_good;
}

static bool write_json(const void *opaque, FILE *to)
{
	const struct document *document = opaque;
	const char *separator = "{\n", *key;
	bool is_good = true;
	json_t *value;

	json_object_foreach(document->root, key, value)
	{
		fprintf(to, "%s \"%s\": ", separator, key);
		is_good = is_good && write_member(value, to);
		separator = ",\n";
	}
	fputs("\n}\n", to);
	return is_good;
}

int document_write(const struct document *document, const char *path,
		   struct mr_reason *why)
{
	return file_write(path, write_json, document, why);
}

bool document_write_line(const struct document *document, FILE *to)
{
	return json_dumpf(document->root, to, WHOLE | JSON_COMPACT) == 0 &&
	       fputc('\n', to) != EOF && fflush(to) == 0;
}

/* A cell; in quotes where it needs them (RFC 4180). */
static void cell(const char *text, FILE *to)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		fputs(text, to);
		return;
	}
	fputc('"', to);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static void csv_rows(const json_t *root, FILE *to)
{
	const json_t *row;
	size_t i;

	fputs("kind,label,date,frame_bytes,goal,value,unit,low,high,"
	      "is_limited_by_tester,note\n",
	      to);
	json_array_foreach(json_object_get(root, "rows"), i, row)
	{
		cell(string(root, "kind"), to);
		fputc(',', to);
		cell(string(root, "label"), to);
		fprintf(to, ",%s,%.0f,", string(root, "date"),
			number(row, "frame_bytes"));
		cell(string(row, "goal"), to);
		fprintf(to, ",%.10g,%s,%.10g,%.10g,%d,", number(row, "value"),
			string(row, "unit"), number(row, "low"),
			number(row, "high"),
			json_is_true(
				json_object_get(row, "is_limited_by_tester")));
		cell(string(row, "note"), to);
		fputc('\n', to);
	}
}

static void csv_trials(const json_t *root, FILE *to)
{
	static const char *const of_tx[] = { "due",   "sent", "unsent",
					     "bytes", "pps",  NULL };
	static const char *const of_rx[] = {
		"received", "unique",  "lost",  "duplicates", "reordered",
		"too_old",  "foreign", "bytes", "pps",        NULL
	};
	static const char *const of_time[] = { "min",   "mean", "p50",
					       "p90",   "p99",  "p999",
					       "p9999", "max",  NULL };
	const struct {
		const char *key;
		const char *const *of;
	} parts[] = { { "tx", of_tx },
		      { "rx", of_rx },
		      { "lateness", of_time },
		      { "latency", of_time } };
	const json_t *trial;
	size_t i;

	fputs("frame_bytes,asked_pps,start_s,duration_s", to);
	for (uint32_t p = 0; p < 4; p++)
		for (uint32_t k = 0; parts[p].of[k] != NULL; k++)
			fprintf(to, ",%s_%s", parts[p].key, parts[p].of[k]);
	fputc('\n', to);
	json_array_foreach(json_object_get(root, "trials"), i, trial)
	{
		fprintf(to, "%.0f,%.10g,%.10g,%.10g",
			number(trial, "frame_bytes"),
			number(trial, "asked_pps"), number(trial, "start_s"),
			number(trial, "duration_s"));
		for (uint32_t p = 0; p < 4; p++) {
			const json_t *part =
				json_object_get(trial, parts[p].key);

			for (uint32_t k = 0; parts[p].of[k] != NULL; k++)
				if (json_is_object(part))
					/* Bytes of an hour are exact. */
					fprintf(to, ",%.15g",
						number(part, parts[p].of[k]));
				else
					fputc(',', to);
		}
		fputc('\n', to);
	}
}

static bool write_csv(const void *opaque, FILE *to)
{
	const struct document *document = opaque;

	if (json_array_size(json_object_get(document->root, "rows")) > 0)
		csv_rows(document->root, to);
	else
		csv_trials(document->root, to);
	return true;
}

int document_write_csv(const struct document *document, const char *path,
		       struct mr_reason *why)
{
	return file_write(path, write_csv, document, why);
}

static bool write_log(const void *opaque, FILE *to)
{
	const struct document *document = opaque;

	hdr_log_head(document->start_s, to);
	for (uint32_t i = 0; i < document->n_hdr; i++)
		if (document->hdr[i].log_line != NULL)
			fputs(document->hdr[i].log_line, to);
	return true;
}

static bool write_text(const void *opaque, FILE *to)
{
	return fputs(opaque, to) != EOF;
}

int document_write_hdr(const struct document *document, const char *path,
		       struct mr_reason *why)
{
	int ret = file_write(path, write_log, document, why);

	for (uint32_t i = 0; ret == 0 && i < document->n_hdr; i++) {
		char name[FILE_PATH_BYTES];

		if (document->hdr[i].percentiles == NULL)
			continue;
		snprintf(name, sizeof(name), "%s.%u.hgrm", path, i);
		ret = file_write(name, write_text, document->hdr[i].percentiles,
				 why);
	}
	return ret;
}

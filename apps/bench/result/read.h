/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents, read back from files that people keep, edit and cut off. */
#ifndef RESULT_READ_H
#define RESULT_READ_H

#include <stdint.h>

#include <jansson.h>

#include <millrace/error.h>

/* A difference of this many lost frames may be chance. */
enum { FLOOR_FRAMES = 10 };

enum document_schema {
	SCHEMA_NET, /* of the commands that send and receive */
	SCHEMA_MEM, /* of ./mr bench mem and flow */
};

struct read_document {
	char *name; /* the file's */
	enum document_schema schema;
	json_t *root;
};

/*
 * Read a file ("-": standard input), or bytes that came from one. Everything
 * that a reader of such a document relies on was looked at: arrays are arrays
 * of objects, rows have a goal, a unit and a number. Returns 0, or -errno with
 * one line: the file, what is wrong, and the cure.
 */
int document_read(const char *path, struct read_document *ret,
		  struct mr_reason *why);
int document_read_bytes(const char *name, const void *bytes, size_t n_bytes,
			struct read_document *ret, struct mr_reason *why);

void read_document_free(struct read_document *document);

/* Of members that are missing or of another type: "" and 0. */
const char *json_text_of(const json_t *object, const char *key);
double json_number_of(const json_t *object, const char *key);

/* 1: more of it is better; -1: less; 0: no such unit. */
int unit_direction(const char *unit);
/* Changes up to this count as none, whatever their share: 10 frames lost. */
double unit_floor(const char *unit);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of a field, as "10.0.0.0/16", "1024-65535:random", "53,80:zipf=1.2".
 */
#ifndef STREAM_VALUES_H
#define STREAM_VALUES_H

#include "stream/compiled.h"

enum value_kind { VALUE_NUMBER, VALUE_MAC, VALUE_IP, VALUE_FLAGS };

enum {
	VALUES_SET_MAX = 1 << 20,  /* values of a set, which is a table */
	VALUES_ZIPF_MAX = 1 << 16, /* of which one is drawn by a table */
};

/*
 * Read the values of the field key; numbers are 0..max. Returns 0, -EINVAL or
 * -ENOMEM with a line.
 */
int values_parse(const char *key, const char *text, enum value_kind kind,
		 uint32_t max, struct values *ret, struct mr_reason *why);
void values_free(struct values *values);

/* A whole number, 0..max, and nothing behind it. */
bool number_parse(const char *text, uint64_t max, uint64_t *ret);

#endif

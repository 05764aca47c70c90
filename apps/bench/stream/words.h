/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a stream, as parsed by the front end. */
#ifndef STREAM_WORDS_H
#define STREAM_WORDS_H

#include <jansson.h>

#include "stream/compiled.h"

enum { SIZES_MAX = 64, GIVEN_MAX = 32, FRAME_BYTES_MAX = 65535 };

enum value_kind { VALUE_NUMBER, VALUE_MAC, VALUE_IP };

enum layer { LAYER_ETH, LAYER_QINQ, LAYER_VLAN, LAYER_IP, LAYER_L4 };

/* Where the variable part of a field is in its layer. */
struct place {
	uint16_t at;
	uint8_t n_bytes; /* 1, 2 or 4; 0: there is no such field */
	uint32_t mask;   /* the field's bits in them */
	uint8_t shift;
};

struct field_row {
	const char *name;
	enum layer layer;
	struct place place, v6; /* v6: of IP over IPv6 */
	enum value_kind kind;   /* VALUE_IP is in the pseudo-header, too */
	uint8_t proto;          /* LAYER_L4: of these fields */
};

struct given {
	const struct field_row *row;
	struct values values;
};

struct words {
	char *text;
	struct given given[GIVEN_MAX]; /* in the text's order */
	uint32_t n_given;
	struct {
		uint32_t n_bytes, weight;
	} sizes[SIZES_MAX];
	uint32_t n_sizes; /* 0: not given */
	uint32_t weight;
	char *capture; /* NULL: none */
	uint8_t proto; /* IPPROTO_*; 0: not given */
	bool is_ipv6, is_raw, is_vlan, is_qinq, is_csum_off;
	uint8_t n_option_bytes;
};

/*
 * stream: as in mr-bench-engine.schema.json. Returns 0, -EINVAL (it is invalid)
 * or -ENOMEM, with a reason.
 */
int words_read(const json_t *stream, struct words *ret, struct mr_reason *why);
void words_free(struct words *words);

/* The values given for the field, or NULL. */
const struct values *words_values(const struct words *words, const char *name);

#endif

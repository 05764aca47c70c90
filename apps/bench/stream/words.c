/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a stream, from the front end, and the table of fields. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "stream/words.h"
#include "support/json_text.h"
#include "support/specs.h"

#define BITS32 UINT32_MAX

/* Sources: IEEE 802.3, 802.1Q; RFC 791, 8200, 768, 9293, 792, 4443. */
static const struct field_row rows[] = {
	{ "eth.src", LAYER_ETH, { 8, 4, BITS32, 0 }, .kind = VALUE_MAC },
	{ "eth.dst", LAYER_ETH, { 2, 4, BITS32, 0 }, .kind = VALUE_MAC },
	{ "eth.type", LAYER_ETH, .place = { 12, 2, 0xffff, 0 } },
	{ "qinq.id", LAYER_QINQ, .place = { 0, 2, 0xfff, 0 } },
	{ "qinq.pcp", LAYER_QINQ, .place = { 0, 2, 0xe000, 13 } },
	{ "vlan.id", LAYER_VLAN, .place = { 0, 2, 0xfff, 0 } },
	{ "vlan.pcp", LAYER_VLAN, .place = { 0, 2, 0xe000, 13 } },
	{ "ip.src",
	  LAYER_IP,
	  { 12, 4, BITS32, 0 },
	  { 20, 4, BITS32, 0 },
	  .kind = VALUE_IP },
	{ "ip.dst",
	  LAYER_IP,
	  { 16, 4, BITS32, 0 },
	  { 36, 4, BITS32, 0 },
	  .kind = VALUE_IP },
	{ "ip.tos", LAYER_IP, .place = { 1, 1, 0xff, 0 },
	  .v6 = { 0, 4, 0xff00000, 20 } },
	{ "ip.dscp", LAYER_IP, .place = { 1, 1, 0xfc, 2 },
	  .v6 = { 0, 4, 0xfc00000, 22 } },
	{ "ip.ttl", LAYER_IP, { 8, 1, 0xff, 0 }, .v6 = { 7, 1, 0xff, 0 } },
	{ "ip.id", LAYER_IP, .place = { 4, 2, 0xffff, 0 } },
	{ "ip.flow", LAYER_IP, .v6 = { 0, 4, 0xfffff, 0 } },
	{ "ip.proto", LAYER_IP, { 9, 1, 0xff, 0 }, .v6 = { 6, 1, 0xff, 0 } },
	{ "udp.src", LAYER_L4, { 0, 2, 0xffff, 0 }, .proto = IPPROTO_UDP },
	{ "udp.dst", LAYER_L4, { 2, 2, 0xffff, 0 }, .proto = IPPROTO_UDP },
	{ "tcp.src", LAYER_L4, { 0, 2, 0xffff, 0 }, .proto = IPPROTO_TCP },
	{ "tcp.dst", LAYER_L4, { 2, 2, 0xffff, 0 }, .proto = IPPROTO_TCP },
	{ "tcp.seq", LAYER_L4, { 4, 4, BITS32, 0 }, .proto = IPPROTO_TCP },
	{ "tcp.ack", LAYER_L4, { 8, 4, BITS32, 0 }, .proto = IPPROTO_TCP },
	{ "tcp.flags", LAYER_L4, { 13, 1, 0xff, 0 }, .proto = IPPROTO_TCP },
	{ "tcp.window", LAYER_L4, { 14, 2, 0xffff, 0 }, .proto = IPPROTO_TCP },
	{ "icmp.type", LAYER_L4, { 0, 1, 0xff, 0 }, .proto = IPPROTO_ICMP },
	{ "icmp.id", LAYER_L4, { 4, 2, 0xffff, 0 }, .proto = IPPROTO_ICMP },
	{ "icmp.seq", LAYER_L4, { 6, 2, 0xffff, 0 }, .proto = IPPROTO_ICMP },
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static uint64_t count_at(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static bool is_at(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* Member i of an array of two. */
static uint64_t number_of(const json_t *pair, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(pair, i));
}

static const struct field_row *row_of(const json_t *field)
{
	const char *name = json_string_value(json_object_get(field, "name"));

	for (uint32_t i = 0; name != NULL && i < N_ROWS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* Make a table of several contiguous pieces; a single one needs none. */
static bool fill_table(const json_t *pieces, struct values *values)
{
	const json_t *piece;
	uint32_t *to;
	size_t i;

	if (json_array_size(pieces) < 2)
		return true;
	to = values->table = calloc(values->n, sizeof(to[0]));
	if (to == NULL)
		return false;
	json_array_foreach(pieces, i, piece)
	{
		const uint32_t first = (uint32_t)number_of(piece, 0);

		for (uint32_t k = 0; k < number_of(piece, 1); k++)
			*to++ = first + k * values->step;
	}
	return true;
}

static bool read_values(const json_t *field, struct values *ret)
{
	static const char *const orders[] = { "seq", "random", "zipf" };
	const char *order = json_string_value(json_object_get(field, "order"));
	const json_t *pieces = json_object_get(field, "pieces");
	const json_t *high = json_object_get(field, "high");
	size_t i;

	*ret = (struct values){
		.first = (uint32_t)number_of(json_array_get(pieces, 0), 0),
		.step = (uint32_t)count_at(field, "step"),
		.exponent =
			json_number_value(json_object_get(field, "exponent")),
		.is_ipv6 = is_at(field, "is_ipv6"),
	};
	for (i = ORDER_SEQUENCE; order != NULL && i <= ORDER_ZIPF; i++)
		if (strcmp(order, orders[i]) == 0)
			ret->order = (enum field_order)i;
	for (i = 0; i < 3; i++) {
		const uint32_t word = htonl((uint32_t)number_of(high, i));

		memcpy(&ret->high[4 * i], &word, sizeof(word));
	}
	for (i = 0; i < json_array_size(pieces); i++)
		ret->n += number_of(json_array_get(pieces, i), 1);
	return fill_table(pieces, ret);
}

int words_read(const json_t *stream, struct words *ret, struct mr_reason *why)
{
	const json_t *fields = json_object_get(stream, "fields"), *field;
	const json_t *sizes = json_object_get(stream, "sizes"), *size;
	int err = -EINVAL;
	size_t i;

	*ret = (struct words){
		.text = json_bytes(json_object_get(stream, "text")),
		.capture = json_bytes(json_object_get(stream, "capture")),
		.weight = (uint32_t)count_at(stream, "weight"),
		.proto = (uint8_t)count_at(stream, "proto"),
		.n_option_bytes = (uint8_t)count_at(stream, "option_bytes"),
		.is_ipv6 = is_at(stream, "is_ipv6"),
		.is_raw = is_at(stream, "is_raw"),
		.is_vlan = is_at(stream, "is_vlan"),
		.is_qinq = is_at(stream, "is_qinq"),
		.is_csum_off = is_at(stream, "is_csum_off"),
	};
	if (ret->text == NULL || ret->weight == 0 ||
	    json_array_size(fields) > GIVEN_MAX ||
	    json_array_size(sizes) > SIZES_MAX)
		goto fail;
	json_array_foreach(sizes, i, size)
	{
		ret->sizes[i].n_bytes = (uint32_t)number_of(size, 0);
		ret->sizes[i].weight = (uint32_t)number_of(size, 1);
	}
	ret->n_sizes = (uint32_t)i;
	json_array_foreach(fields, i, field)
	{
		struct given *given = &ret->given[ret->n_given++];

		given->row = row_of(field);
		if (given->row == NULL)
			goto fail;
		if (!read_values(field, &given->values)) {
			err = -ENOMEM;
			goto fail;
		}
		if (given->values.n == 0)
			goto fail;
	}
	return 0;
fail:
	words_free(ret);
	return fail_with(why, err, "%s",
			 err == -ENOMEM ? "no memory for a stream" :
					  "not as the front end writes it");
}

void words_free(struct words *words)
{
	for (uint32_t i = 0; i < words->n_given; i++)
		free(words->given[i].values.table);
	free(words->capture);
	free(words->text);
	*words = (struct words){ .n_given = 0 };
}

const struct values *words_values(const struct words *words, const char *name)
{
	for (uint32_t i = 0; i < words->n_given; i++)
		if (strcmp(words->given[i].row->name, name) == 0)
			return &words->given[i].values;
	return NULL;
}

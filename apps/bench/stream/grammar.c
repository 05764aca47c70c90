/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the words of a stream, and whether they go together. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream/grammar.h"
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
	{ "ip.tos",
	  LAYER_IP,
	  .place = { 1, 1, 0xff, 0 },
	  .v6 = { 0, 4, 0xff00000, 20 } },
	{ "ip.dscp",
	  LAYER_IP,
	  .place = { 1, 1, 0xfc, 2 },
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
	{ "tcp.flags",
	  LAYER_L4,
	  { 13, 1, 0xff, 0 },
	  .kind = VALUE_FLAGS,
	  .proto = IPPROTO_TCP },
	{ "tcp.window", LAYER_L4, { 14, 2, 0xffff, 0 }, .proto = IPPROTO_TCP },
	{ "icmp.type", LAYER_L4, { 0, 1, 0xff, 0 }, .proto = IPPROTO_ICMP },
	{ "icmp.id", LAYER_L4, { 4, 2, 0xffff, 0 }, .proto = IPPROTO_ICMP },
	{ "icmp.seq", LAYER_L4, { 6, 2, 0xffff, 0 }, .proto = IPPROTO_ICMP },
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static int take_proto(struct words *words, uint8_t proto, const char *word,
		      struct mr_reason *why)
{
	if (words->proto != 0 && words->proto != proto)
		return fail_with(why, -EINVAL,
				 "%s: a stream has one of udp, tcp, icmp and "
				 "ip.proto; use several streams",
				 word);
	words->proto = proto;
	return 0;
}

/* What a field says about the headers besides its values. */
static int take_headers(struct words *words, const struct given *given,
			struct mr_reason *why)
{
	const struct field_row *row = given->row;

	words->is_vlan |= row->layer == LAYER_VLAN || row->layer == LAYER_QINQ;
	words->is_qinq |= row->layer == LAYER_QINQ;
	words->is_raw |= strcmp(row->name, "eth.type") == 0;
	words->is_ipv6 |= given->values.is_ipv6 || row->place.n_bytes == 0;
	if (strcmp(row->name, "ip.proto") == 0) {
		const uint32_t proto = given->values.first;

		if (given->values.n > 1)
			return fail_with(why, -EINVAL,
					 "ip.proto cannot vary; use several "
					 "streams");
		if (proto == IPPROTO_UDP || proto == IPPROTO_TCP ||
		    proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6)
			return fail_with(why, -EINVAL,
					 "ip.proto=%u is a word of its own: "
					 "udp, tcp or icmp",
					 proto);
		return take_proto(words, IPPROTO_RAW, row->name, why);
	}
	return row->proto == 0 ? 0 :
				 take_proto(words, row->proto, row->name, why);
}

static int take_field(struct words *words, const char *name, const char *text,
		      struct mr_reason *why)
{
	struct given *given = &words->given[words->n_given];
	const struct place *place;
	uint32_t i = 0;
	int err;

	while (i < N_ROWS && strcmp(rows[i].name, name) != 0)
		i++;
	if (i == N_ROWS)
		return fail_with(
			why, -EINVAL,
			"no field '%s'; docs/streams.md and mr-bench(1) "
			"have a list",
			name);
	if (words_values(words, name) != NULL)
		return fail_with(why, -EINVAL,
				 "%s is there twice; commas make a set: "
				 "%s=A,B-C",
				 name, name);
	if (words->n_given == GIVEN_MAX)
		return fail_with(why, -EINVAL, "%s: more than %d fields", name,
				 GIVEN_MAX);
	given->row = &rows[i];
	place = rows[i].place.n_bytes != 0 ? &rows[i].place : &rows[i].v6;
	err = values_parse(name, text, rows[i].kind,
			   place->mask >> place->shift, &given->values, why);
	if (err < 0)
		return err;
	words->n_given++;
	return take_headers(words, given, why);
}

/* "60x7": 7 of them. */
static bool read_size(char *text, uint32_t *ret_bytes, uint32_t *ret_weight)
{
	char *cut = strchr(text, 'x');
	uint64_t n_bytes, weight = 1;

	if (cut != NULL) {
		*cut++ = '\0';
		if (!number_parse(cut, 1000, &weight))
			return false;
	}
	if (!number_parse(text, FRAME_BYTES_MAX, &n_bytes) ||
	    n_bytes < MR_ETH_MIN_BYTES || weight == 0)
		return false;
	*ret_bytes = (uint32_t)n_bytes;
	*ret_weight = (uint32_t)weight;
	return true;
}

static int take_sizes(struct words *words, char *text, struct mr_reason *why)
{
	/* IMIX of RFC 6985's simple form, 7:4:1, less the FCS. */
	char imix[] = "60x7,566x4,1514x1";

	if (words->n_sizes > 0)
		return fail_with(why, -EINVAL,
				 "size is there twice; a mix is "
				 "size=60x7,1514");
	words->is_imix = strcmp(text, "imix") == 0;
	if (words->is_imix)
		text = imix;
	for (char *size; (size = strsep(&text, ",")) != NULL;
	     words->n_sizes++) {
		char shown[32];

		snprintf(shown, sizeof(shown), "%s", size);
		if (words->n_sizes == SIZES_MAX)
			return fail_with(why, -EINVAL,
					 "size: more than %d in a mix",
					 SIZES_MAX);
		if (!read_size(size, &words->sizes[words->n_sizes].n_bytes,
			       &words->sizes[words->n_sizes].weight))
			return fail_with(why, -EINVAL,
					 "size=%s is not a size of %d to %d "
					 "bytes without FCS, as 60, 60x7,1514 "
					 "or imix",
					 shown, MR_ETH_MIN_BYTES,
					 FRAME_BYTES_MAX);
	}
	return 0;
}

static int take_capture(struct words *words, const char *path,
			struct mr_reason *why)
{
	if (words->capture != NULL)
		return fail_with(why, -EINVAL,
				 "pcap is there twice; use two streams");
	if (path[0] == '\0')
		return fail_with(why, -EINVAL, "pcap= needs a file");
	words->capture = strdup(path);
	return words->capture != NULL ?
		       0 :
		       fail_with(why, -ENOMEM, "no memory for a stream");
}

static int take_key(struct words *words, const char *key, char *value,
		    struct mr_reason *why)
{
	uint64_t number;

	if (strcmp(key, "size") == 0)
		return take_sizes(words, value, why);
	if (strcmp(key, "pcap") == 0)
		return take_capture(words, value, why);
	if (strcmp(key, "weight") == 0) {
		if (!number_parse(value, 1000, &number) || number == 0)
			return fail_with(why, -EINVAL,
					 "weight=%s is not a number of 1 to "
					 "1000",
					 value);
		words->weight = (uint32_t)number;
		return 0;
	}
	if (strcmp(key, "ip.options") == 0) {
		if (!number_parse(value, 40, &number) || number % 4 != 0)
			return fail_with(why, -EINVAL,
					 "ip.options=%s is not 0, 4, 8, ... 40 "
					 "bytes",
					 value);
		words->n_option_bytes = (uint8_t)number;
		return 0;
	}
	if (strcmp(key, "udp.csum") == 0) {
		if (strcmp(value, "off") != 0 && strcmp(value, "on") != 0)
			return fail_with(why, -EINVAL,
					 "udp.csum=%s is not on or off", value);
		words->is_csum_off = strcmp(value, "off") == 0;
		return take_proto(words, IPPROTO_UDP, key, why);
	}
	return take_field(words, key, value, why);
}

static int take_word(struct words *words, char *word, struct mr_reason *why)
{
	char *value = strchr(word, '=');

	if (value != NULL) {
		*value++ = '\0';
		return take_key(words, word, value, why);
	}
	if (strcmp(word, "udp") == 0)
		return take_proto(words, IPPROTO_UDP, word, why);
	if (strcmp(word, "tcp") == 0)
		return take_proto(words, IPPROTO_TCP, word, why);
	if (strcmp(word, "icmp") == 0)
		return take_proto(words, IPPROTO_ICMP, word, why);
	if (strcmp(word, "ip6") == 0) {
		words->is_ipv6 = true;
		return 0;
	}
	return fail_with(why, -EINVAL,
			 "'%s' is no word of a stream; there are udp, tcp, "
			 "icmp, ip6 and KEY=VALUE",
			 word);
}

/* Whether a field is one that the frame, made or captured, can have. */
static int check_given(const struct words *words, const struct given *given,
		       struct mr_reason *why)
{
	const struct field_row *row = given->row;

	if (words->is_ipv6 && row->layer == LAYER_IP && row->v6.n_bytes == 0)
		return fail_with(why, -EINVAL, "IPv6 has no %s", row->name);
	if (words->is_ipv6 && row->kind == VALUE_IP && !given->values.is_ipv6)
		return fail_with(why, -EINVAL,
				 "%s is an IPv4 address in a stream of IPv6; "
				 "use two streams",
				 row->name);
	if (words->is_raw && words->capture == NULL && row->layer >= LAYER_IP)
		return fail_with(why, -EINVAL,
				 "%s: with eth.type a frame has no IP; leave "
				 "one of them out",
				 row->name);
	return 0;
}

static int check_together(const struct words *words, struct mr_reason *why)
{
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < words->n_given; i++)
		err = check_given(words, &words->given[i], why);
	if (err < 0)
		return err;
	if (words->capture != NULL && words->n_sizes > 0)
		return fail_with(why, -EINVAL,
				 "pcap and size: frames of a capture have "
				 "their sizes; leave size out");
	if (words->is_ipv6 && words->n_option_bytes > 0)
		return fail_with(why, -EINVAL, "IPv6 has no ip.options");
	if (words->is_ipv6 && words->is_csum_off)
		return fail_with(why, -EINVAL,
				 "udp.csum=off is for IPv4 (RFC 8200 8.1)");
	if (words->is_qinq && words_values(words, "vlan.id") == NULL)
		return fail_with(why, -EINVAL,
				 "qinq is the outer tag; give vlan.id, too");
	return 0;
}

int words_parse(const char *text, struct words *ret, struct mr_reason *why)
{
	char *copy = strdup(text);
	char *rest = NULL;
	int err = 0;

	*ret = (struct words){ .weight = 1 };
	if (copy == NULL)
		return fail_with(why, -ENOMEM, "no memory for a stream");
	for (char *word = strtok_r(copy, " \t\n", &rest);
	     err == 0 && word != NULL; word = strtok_r(NULL, " \t\n", &rest))
		err = take_word(ret, word, why);
	free(copy);
	if (err == 0)
		err = check_together(ret, why);
	if (err < 0)
		words_free(ret);
	return err;
}

void words_free(struct words *words)
{
	for (uint32_t i = 0; i < words->n_given; i++)
		values_free(&words->given[i].values);
	free(words->capture);
	*words = (struct words){ .n_given = 0 };
}

const struct values *words_values(const struct words *words, const char *name)
{
	for (uint32_t i = 0; i < words->n_given; i++)
		if (strcmp(words->given[i].row->name, name) == 0)
			return &words->given[i].values;
	return NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of a field: a set of items with commas between them, each one value, a
 * range or a prefix, and how one of them is chosen for the next frame.
 *
 * All kinds are read into 16 bytes in network order. The last four vary; what
 * stands in front of them is the same in all values of a field.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/specs.h"
#include "stream/values.h"

enum { TEXT_MAX = 256, HIGH_BYTES = 12 };

struct reader {
	const char *key;
	enum value_kind kind;
	uint32_t max;
	uint32_t step;
	struct mr_reason *why;
};

/* One value of up to 128 bits, in network order. */
struct value {
	uint8_t high[HIGH_BYTES];
	uint32_t low; /* host order */
	uint32_t n_bits;
};

struct item {
	uint8_t high[HIGH_BYTES];
	uint32_t from, to;
	bool is_ipv6;
};

static const char *const kind_names[] = {
	[VALUE_NUMBER] = "a number, as 53",
	[VALUE_MAC] = "a MAC address, as 02:00:00:00:00:01",
	[VALUE_IP] = "an IP address, as 198.18.0.1 or 2001:2::1",
	[VALUE_FLAGS] = "TCP flags, as syn or fin+ack",
};

bool number_parse(const char *text, uint64_t max, uint64_t *ret)
{
	const bool is_hex = text[0] == '0' && text[1] == 'x';
	char *end;
	uint64_t value;

	/* strtoull() takes blanks and signs, too. */
	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, is_hex ? 16 : 10);
	if (errno != 0 || *end != '\0' || value > max)
		return false;
	*ret = value;
	return true;
}

static bool read_mac(const char *text, struct value *ret)
{
	uint8_t mac[6];
	int n_read = 0;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0],
		   &mac[1], &mac[2], &mac[3], &mac[4], &mac[5], &n_read) != 6 ||
	    text[n_read] != '\0' || n_read != 17)
		return false;
	memset(ret->high, 0, HIGH_BYTES);
	memcpy(&ret->high[HIGH_BYTES - 2], mac, 2);
	memcpy(&ret->low, &mac[2], sizeof(ret->low));
	ret->low = ntohl(ret->low);
	ret->n_bits = 48;
	return true;
}

static bool read_ip(const char *text, struct value *ret)
{
	struct in6_addr v6;

	memset(ret->high, 0, HIGH_BYTES);
	if (inet_pton(AF_INET, text, &ret->low) == 1) {
		ret->n_bits = 32;
	} else if (inet_pton(AF_INET6, text, &v6) == 1) {
		memcpy(ret->high, v6.s6_addr, HIGH_BYTES);
		memcpy(&ret->low, &v6.s6_addr[HIGH_BYTES], sizeof(ret->low));
		ret->n_bits = 128;
	} else {
		return false;
	}
	ret->low = ntohl(ret->low);
	return true;
}

static bool read_flags(const char *text, struct value *ret)
{
	/* By bit: RFC 9293 3.1. */
	static const char *const names[] = { "fin", "syn", "rst", "psh",
					     "ack", "urg", "ece", "cwr" };
	char copy[TEXT_MAX];
	char *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", text);
	*ret = (struct value){ .n_bits = 32 };
	for (char *word = strtok_r(copy, "+", &rest); word != NULL;
	     word = strtok_r(NULL, "+", &rest)) {
		uint32_t i = 0;

		while (i < 8 && strcmp(names[i], word) != 0)
			i++;
		if (i == 8)
			return false;
		ret->low |= 1u << i;
	}
	return text[0] != '\0';
}

static int read_value(const struct reader *reader, const char *text,
		      struct value *ret)
{
	uint64_t number;
	bool is_good = false;

	switch (reader->kind) {
	case VALUE_FLAGS:
		is_good = read_flags(text, ret);
		if (is_good)
			break;
		/* fall through */
	case VALUE_NUMBER:
		is_good = number_parse(text, UINT64_MAX, &number);
		if (is_good && number > reader->max)
			return fail_with(reader->why, -EINVAL,
					 "%s=%s is more than %u", reader->key,
					 text, reader->max);
		if (is_good)
			*ret = (struct value){ .low = (uint32_t)number,
					       .n_bits = 32 };
		break;
	case VALUE_MAC:
		is_good = read_mac(text, ret);
		break;
	case VALUE_IP:
		is_good = read_ip(text, ret);
		break;
	}
	return is_good ? 0 :
			 fail_with(reader->why, -EINVAL, "%s=%s is not %s",
				   reader->key, text, kind_names[reader->kind]);
}

/* "10.0.0.0/16", cut at the slash. */
static int read_prefix(const struct reader *reader, const char *text,
		       const char *bits, struct item *ret)
{
	struct value first;
	uint64_t n_bits;
	uint32_t n_low;
	int err;

	if (reader->kind != VALUE_IP && reader->kind != VALUE_MAC)
		return fail_with(reader->why, -EINVAL,
				 "%s=%s/%s: addresses have prefixes; a range "
				 "is FROM-TO",
				 reader->key, text, bits);
	err = read_value(reader, text, &first);
	if (err < 0)
		return err;
	if (!number_parse(bits, first.n_bits, &n_bits))
		return fail_with(reader->why, -EINVAL,
				 "%s=%s/%s: the prefix has 0 to %u bits",
				 reader->key, text, bits, first.n_bits);
	n_low = first.n_bits - (uint32_t)n_bits;
	if (n_low > 32)
		return fail_with(reader->why, -EINVAL,
				 "%s=%s/%s has more than 2^32 values; /%u is "
				 "the shortest prefix",
				 reader->key, text, bits, first.n_bits - 32);
	ret->from = n_low == 32 ? 0 : first.low >> n_low << n_low;
	ret->to = ret->from + (uint32_t)((UINT64_C(1) << n_low) - 1);
	if (ret->from != first.low)
		return fail_with(reader->why, -EINVAL,
				 "%s=%s/%s: bits behind the prefix are set; a "
				 "range is FROM-TO",
				 reader->key, text, bits);
	memcpy(ret->high, first.high, HIGH_BYTES);
	ret->is_ipv6 = first.n_bits == 128;
	return 0;
}

static int read_range(const struct reader *reader, const char *from_text,
		      const char *to_text, struct item *ret)
{
	struct value from, to;
	int err = read_value(reader, from_text, &from);

	if (err == 0)
		err = read_value(reader, to_text, &to);
	if (err < 0)
		return err;
	if (from.n_bits != to.n_bits ||
	    memcmp(from.high, to.high, HIGH_BYTES) != 0)
		return fail_with(reader->why, -EINVAL,
				 "%s=%s-%s: only the last 32 bits of an "
				 "address can vary",
				 reader->key, from_text, to_text);
	if (from.low > to.low)
		return fail_with(reader->why, -EINVAL,
				 "%s=%s-%s ends before it begins; did you mean "
				 "%s-%s?",
				 reader->key, from_text, to_text, to_text,
				 from_text);
	memcpy(ret->high, from.high, HIGH_BYTES);
	ret->from = from.low;
	ret->to = to.low;
	ret->is_ipv6 = from.n_bits == 128;
	return 0;
}

static int read_item(const struct reader *reader, char *text, struct item *ret)
{
	char *cut = strpbrk(text, "/-");
	const char mark = cut != NULL ? *cut : '\0';

	if (mark != '\0')
		*cut++ = '\0';
	switch (mark) {
	case '/':
		return read_prefix(reader, text, cut, ret);
	case '-':
		return read_range(reader, text, cut, ret);
	default:
		return read_range(reader, text, text, ret);
	}
}

static uint64_t item_n(const struct reader *reader, const struct item *item)
{
	return ((uint64_t)item->to - item->from) / reader->step + 1;
}

/* Behind those that values has; one item alone needs no table. */
static int add_item(const struct reader *reader, const struct item *item,
		    struct values *values)
{
	const uint64_t n_more = item_n(reader, item);
	uint32_t *table;

	if (values->n == 0) {
		memcpy(values->high, item->high, HIGH_BYTES);
		values->is_ipv6 = item->is_ipv6;
		values->first = item->from;
		values->step = reader->step;
		values->n = n_more;
		return 0;
	}
	if (item->is_ipv6 != values->is_ipv6 ||
	    memcmp(item->high, values->high, HIGH_BYTES) != 0)
		return fail_with(reader->why, -EINVAL,
				 "%s: only the last 32 bits of an address can "
				 "vary; use several streams",
				 reader->key);
	if (values->n + n_more > VALUES_SET_MAX)
		return fail_with(reader->why, -EINVAL,
				 "%s: a set has at most %u values; one range "
				 "alone may have 2^32",
				 reader->key, VALUES_SET_MAX);
	table = realloc(values->table,
			(values->n + n_more) * sizeof(values->table[0]));
	if (table == NULL)
		return fail_with(reader->why, -ENOMEM, "%s: no memory",
				 reader->key);
	for (uint64_t i = 0; values->table == NULL && i < values->n; i++)
		table[i] = values->first + (uint32_t)i * values->step;
	for (uint64_t i = 0; i < n_more; i++)
		table[values->n + i] = item->from + (uint32_t)i * reader->step;
	values->table = table;
	values->n += n_more;
	return 0;
}

static int take_option(struct reader *reader, const char *option,
		       struct values *values)
{
	uint64_t step;
	char *end;

	if (strcmp(option, "random") == 0) {
		values->order = ORDER_RANDOM;
		return 0;
	}
	if (strcmp(option, "seq") == 0) {
		values->order = ORDER_SEQUENCE;
		return 0;
	}
	if (strcmp(option, "zipf") == 0) {
		values->order = ORDER_ZIPF;
		values->exponent = 1;
		return 0;
	}
	if (strncmp(option, "zipf=", 5) == 0) {
		values->order = ORDER_ZIPF;
		values->exponent = strtod(option + 5, &end);
		if (end != option + 5 && *end == '\0' &&
		    isfinite(values->exponent) && values->exponent > 0 &&
		    values->exponent <= 10)
			return 0;
		return fail_with(reader->why, -EINVAL,
				 "%s: %s: the exponent is a number above 0, up "
				 "to 10",
				 reader->key, option);
	}
	if (strncmp(option, "step=", 5) == 0 &&
	    number_parse(option + 5, UINT32_MAX, &step) && step > 0) {
		reader->step = (uint32_t)step;
		return 0;
	}
	return fail_with(reader->why, -EINVAL,
			 "%s: no option '%s' of values; there are seq, random, "
			 "zipf, zipf=EXPONENT, step=N",
			 reader->key, option);
}

/*
 * Options begin with a letter behind g: addresses have colons too, but none of
 * these in front of such a letter.
 */
static int take_options(struct reader *reader, char *text,
			struct values *values)
{
	char *rest = NULL;
	char *first = text;
	int err = 0;

	while ((first = strchr(first, ':')) != NULL &&
	       (first[1] < 'g' || first[1] > 'z'))
		first++;
	if (first == NULL)
		return 0;
	*first++ = '\0';
	for (char *option = strtok_r(first, ":", &rest);
	     err == 0 && option != NULL; option = strtok_r(NULL, ":", &rest))
		err = take_option(reader, option, values);
	return err;
}

static int read_items(const struct reader *reader, char *text,
		      struct values *values)
{
	int err = 0;

	/* strsep() and not strtok(): an empty item is a mistake. */
	for (char *item_text;
	     err == 0 && (item_text = strsep(&text, ",")) != NULL;) {
		struct item item;

		err = read_item(reader, item_text, &item);
		if (err == 0)
			err = add_item(reader, &item, values);
	}
	if (err == 0 && values->order == ORDER_ZIPF &&
	    values->n > VALUES_ZIPF_MAX)
		return fail_with(reader->why, -EINVAL,
				 "%s: zipf is for at most %u values",
				 reader->key, VALUES_ZIPF_MAX);
	return err;
}

int values_parse(const char *key, const char *text, enum value_kind kind,
		 uint32_t max, struct values *ret, struct mr_reason *why)
{
	struct reader reader = {
		.key = key, .kind = kind, .max = max, .step = 1, .why = why
	};
	char copy[TEXT_MAX];
	int err;

	*ret = (struct values){ .order = ORDER_SEQUENCE };
	if (strlen(text) >= sizeof(copy))
		return fail_with(why, -EINVAL,
				 "%s: values of more than %d characters; use "
				 "ranges",
				 key, TEXT_MAX - 1);
	snprintf(copy, sizeof(copy), "%s", text);
	err = take_options(&reader, copy, ret);
	if (err == 0)
		err = read_items(&reader, copy, ret);
	if (err < 0)
		values_free(ret);
	return err;
}

void values_free(struct values *values)
{
	free(values->table);
	*values = (struct values){ .n = 0 };
}

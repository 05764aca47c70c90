/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Port specs: "driver:device[,key[=value]...]".
 *
 * A backslash takes the next character as it is, so that a device or a value
 * may hold a comma. A text without ':' is a network interface, or, if it has
 * the form of a PCI address, a PCI device. Grammar: docs/port-specs.md.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/driver.h>

#include "port/spec.h"

static bool are_hex(const char *text, int n)
{
	for (int i = 0; i < n; i++)
		if (strchr("0123456789abcdefABCDEF", text[i]) == NULL ||
		    text[i] == '\0')
			return false;
	return true;
}

/* 0000:03:00.0, or without the domain. */
static bool is_pci_address(const char *text, size_t n)
{
	if (n > 5 && are_hex(text, 4) && text[4] == ':') {
		text += 5;
		n -= 5;
	}
	return n == 7 && are_hex(text, 2) && text[2] == ':' &&
	       are_hex(text + 3, 2) && text[5] == '.' && text[6] >= '0' &&
	       text[6] <= '7';
}

/* The driver that a text without one means, or NULL if it names its own. */
static const char *implied_driver(const char *text)
{
	const size_t n = strcspn(text, ",");

	if (is_pci_address(text, n))
		return "vfio";
	return memchr(text, ':', n) == NULL ? "xdp" : NULL;
}

/*
 * Cut the next piece off *rest at an unescaped character of ends, and take the
 * backslashes out of it. Returns what ended it, 0 at the end of the text.
 */
static char cut_piece(char **rest, const char *ends, const char **ret_piece)
{
	char *from = *rest, *to = *rest;
	char end;

	*ret_piece = to;
	while (*from != '\0' && strchr(ends, *from) == NULL) {
		if (*from == '\\' && from[1] != '\0')
			from++;
		*to++ = *from++;
	}
	end = *from;
	*rest = end == '\0' ? from : from + 1;
	*to = '\0';
	return end;
}

static int add_option(struct mr_spec *spec, const char *key, const char *value,
		      struct mr_reason *reterr_reason)
{
	if (key[0] == '\0')
		return mr_fail(reterr_reason, -EINVAL,
			       "port spec: an option without a name (two "
			       "commas, or one at the end)");
	if (spec->n_options == MRI_SPEC_MAX_OPTIONS)
		return mr_fail(reterr_reason, -EINVAL,
			       "port spec: more than %d options",
			       MRI_SPEC_MAX_OPTIONS);
	if (mr_spec_get(spec, key) != NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "port spec: option '%s' is there twice", key);
	spec->options[spec->n_options].key = key;
	spec->options[spec->n_options].value = value;
	spec->n_options++;
	return 0;
}

/*
 * Behind the driver: a device, unless the first piece is an option. No option
 * has a quoted character in its name, so what has one before any '=' is a
 * device, up to the comma: net_pcap0\,rx_pcap=a.pcap.
 */
static int parse_rest(struct mr_spec *spec, char *rest,
		      struct mr_reason *reterr_reason)
{
	const char *key, *value;
	char end = cut_piece(
		&rest, rest[strcspn(rest, ",=\\")] == '=' ? ",=" : ",", &key);
	int err;

	spec->device = end == '=' ? "" : key;
	for (;;) {
		value = "";
		if (end == '=')
			end = cut_piece(&rest, ",", &value);
		if (key != spec->device) {
			err = add_option(spec, key, value, reterr_reason);
			if (err < 0)
				return err;
		}
		if (end == '\0')
			return 0;
		end = cut_piece(&rest, ",=", &key);
	}
}

int mri_spec_parse(struct mr_spec *spec, const char *text,
		   struct mr_reason *reterr_reason)
{
	const char *driver = implied_driver(text);
	char *rest = spec->text;

	memset(spec, 0, sizeof(*spec));
	if (text[0] == '\0')
		return mr_fail(reterr_reason, -EINVAL,
			       "port spec: it is empty; give an interface, or "
			       "driver:device");
	if ((size_t)snprintf(spec->text, sizeof(spec->text), "%s%s%s",
			     driver != NULL ? driver : "",
			     driver != NULL ? ":" : "",
			     text) >= sizeof(spec->text))
		return mr_fail(reterr_reason, -EINVAL,
			       "port spec: longer than %d characters",
			       MRI_SPEC_MAX_BYTES - 1);
	cut_piece(&rest, ":", &spec->driver);
	if (spec->driver[0] == '\0')
		return mr_fail(reterr_reason, -EINVAL,
			       "port spec '%s': no driver before ':'", text);
	return parse_rest(spec, rest, reterr_reason);
}

int mri_spec_check_keys(const struct mr_spec *spec, const char *const *keys,
			struct mr_reason *reterr_reason)
{
	char known[sizeof(reterr_reason->text)] = "";

	for (uint32_t i = 0; i < spec->n_options; i++) {
		uint32_t k = 0;

		while (keys != NULL && keys[k] != NULL &&
		       strcmp(keys[k], spec->options[i].key) != 0)
			k++;
		if (keys != NULL && keys[k] != NULL)
			continue;
		for (k = 0; keys != NULL && keys[k] != NULL; k++) {
			const size_t n = strlen(known);

			snprintf(known + n, sizeof(known) - n, " %s", keys[k]);
		}
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: has no option '%s'; it has:%s",
			       spec->driver, spec->options[i].key,
			       known[0] != '\0' ? known : " none");
	}
	return 0;
}

const char *mr_spec_device(const struct mr_spec *spec)
{
	return spec->device;
}

const char *mr_spec_get(const struct mr_spec *spec, const char *key)
{
	for (uint32_t i = 0; i < spec->n_options; i++)
		if (strcmp(spec->options[i].key, key) == 0)
			return spec->options[i].value;
	return NULL;
}

/*
 * Digits, or 0x and hex digits, and perhaps k, m or g. A leading 0 does not
 * make it octal: nobody who writes cores=08 means that. What is too large for
 * 64 bits is cut off there, and so out of every range.
 */
static bool read_number(const char *text, uint64_t *ret_value)
{
	static const char suffixes[] = "kmg";
	const int base = text[0] == '0' && text[1] == 'x' ? 16 : 10;
	const char *suffix;
	char *end;

	/* strtoull() takes blanks and signs as well. */
	if (!isdigit((unsigned char)text[0]))
		return false;
	*ret_value = strtoull(text, &end, base);
	if (*end == '\0')
		return true;
	suffix = strchr(suffixes, *end);
	if (suffix == NULL || end[1] != '\0')
		return false;
	if (*ret_value > UINT32_MAX)
		*ret_value = UINT64_MAX;
	else
		*ret_value <<= 10 * (suffix - suffixes + 1);
	return true;
}

int mr_spec_get_u32(const struct mr_spec *spec, const char *key,
		    uint32_t otherwise, uint32_t min, uint32_t max,
		    uint32_t *ret_value, struct mr_reason *reterr_reason)
{
	const char *text = mr_spec_get(spec, key);
	uint64_t value;

	if (text == NULL) {
		*ret_value = otherwise;
		return 0;
	}
	if (!read_number(text, &value))
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: option %s: '%s' is not a number",
			       spec->driver, key, text);
	if (value < min || value > max)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: option %s: %s is out of range, %u to %u",
			       spec->driver, key, text, min, max);
	*ret_value = (uint32_t)value;
	return 0;
}

int mr_spec_get_word(const struct mr_spec *spec, const char *key,
		     const char *const *words, uint32_t *ret_idx,
		     struct mr_reason *reterr_reason)
{
	const char *text = mr_spec_get(spec, key);
	char known[100] = "";

	if (text == NULL)
		text = words[0];
	for (uint32_t i = 0; words[i] != NULL; i++) {
		const size_t n = strlen(known);

		if (strcmp(words[i], text) == 0) {
			*ret_idx = i;
			return 0;
		}
		snprintf(known + n, sizeof(known) - n, " %s", words[i]);
	}
	return mr_fail(reterr_reason, -EINVAL,
		       "%s: option %s: no such value '%s'; there are:%s",
		       spec->driver, key, text, known);
}

int mr_spec_get_pow2(const struct mr_spec *spec, const char *key,
		     uint32_t otherwise, uint32_t min, uint32_t max,
		     uint32_t *ret_value, struct mr_reason *reterr_reason)
{
	uint32_t value;
	const int err = mr_spec_get_u32(spec, key, otherwise, min, max, &value,
					reterr_reason);

	if (err < 0)
		return err;
	if (mr_spec_get(spec, key) != NULL && (value & (value - 1)) != 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: option %s: %u is not a power of two",
			       spec->driver, key, value);
	*ret_value = value;
	return 0;
}

int mr_spec_get_bool(const struct mr_spec *spec, const char *key,
		     bool *ret_is_on, struct mr_reason *reterr_reason)
{
	/* off is each second one, from the first. */
	static const char *const words[] = { "off", "on",    "no",   "yes", "0",
					     "1",   "false", "true", NULL };
	const char *const text = mr_spec_get(spec, key);
	uint32_t idx = 1;
	int err = 0;

	if (text == NULL || text[0] != '\0')
		err = mr_spec_get_word(spec, key, words, &idx, reterr_reason);
	if (err == 0)
		*ret_is_on = idx % 2 == 1;
	return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* From the user's specs and the program's options to the ports' specs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "specs.h"

/* An option for all ports whose driver knows it. */
struct common {
	const char *key;
	char value[16]; /* "": none */
	bool is_wanted;
	bool is_asked; /* by the user; else only if a port takes it */
};

enum { N_COMMON = 4 };

int fail(struct mr_reason *ret_error, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ret_error->text, sizeof(ret_error->text), format, args);
	va_end(args);
	return status;
}

int fail_port(struct mr_reason *ret_error, int status, const char *spec,
	      const struct mr_reason *why)
{
	char name[MAX_SPEC_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, ","), spec);
	if (strstr(why->text, name) != NULL)
		return fail(ret_error, status, "%s", why->text);
	return fail(ret_error, status, "%s: %s", spec, why->text);
}

static struct common of_number(const char *key, uint32_t value)
{
	struct common c = { .key = key,
			    .is_wanted = value != 0,
			    .is_asked = value != 0 };

	snprintf(c.value, sizeof(c.value), "%u", value);
	return c;
}

static void list_common(const struct options *options, struct common *common)
{
	const bool is_bridge =
		options->mode == MODE_PATCH || options->mode == MODE_LEARN;

	common[0] = of_number("queues", options->n_queues);
	common[1] = of_number("ring", options->n_ring);
	common[2] = of_number("mtu", options->mtu_bytes);
	common[3] = (struct common){
		.key = "promisc",
		.is_wanted = options->promisc == PROMISC_ON ||
			     (options->promisc == PROMISC_AUTO && is_bridge),
		.is_asked = options->promisc == PROMISC_ON,
	};
}

/* Whether the user has written the option into the spec. */
static bool has_option(const char *spec, const char *key)
{
	const size_t n = strlen(key);

	for (const char *at = spec; *at != '\0'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++; /* a comma of a name */
		else if (*at == ',' && strncmp(at + 1, key, n) == 0 &&
			 strchr(",=", at[1 + n]) != NULL)
			return true;
	}
	return false;
}

/* 1 if the port has it now, 0 if it cannot, -errno. */
static int add(struct mr_ctx *ctx, char *spec, const struct common *option,
	       struct mr_reason *ret_error)
{
	const size_t n = strlen(spec), n_left = MAX_SPEC_BYTES - n;
	const int takes =
		mr_port_takes_option(ctx, spec, option->key, ret_error);

	if (takes <= 0) /* its own value stays */
		return takes < 0 ? takes : has_option(spec, option->key);
	if ((size_t)snprintf(spec + n, n_left, ",%s%s%s", option->key,
			     option->value[0] != '\0' ? "=" : "",
			     option->value) >= n_left)
		return fail(ret_error, -EINVAL, "the spec is too long");
	return 1;
}

int specs_make(struct mr_ctx *ctx, const struct options *options,
	       char (*ret_specs)[MAX_SPEC_BYTES], struct mr_reason *ret_error)
{
	struct common common[N_COMMON];
	uint32_t n_taken[N_COMMON] = { 0 };
	struct mr_reason why;

	list_common(options, common);
	for (uint32_t p = 0; p < options->n_ports; p++) {
		const char *spec = options->specs[p];
		int has = 0;

		if (strlen(spec) >= MAX_SPEC_BYTES)
			return fail(ret_error, 2, "%.20s...: too long", spec);
		memcpy(ret_specs[p], spec, strlen(spec) + 1);
		for (uint32_t i = 0; i < N_COMMON && has >= 0; i++) {
			if (!common[i].is_wanted)
				continue;
			has = add(ctx, ret_specs[p], &common[i], &why);
			n_taken[i] += has > 0;
		}
		if (has < 0)
			return fail_port(ret_error, 2, spec, &why);
	}
	for (uint32_t i = 0; i < N_COMMON; i++)
		if (common[i].is_asked && n_taken[i] == 0)
			return fail(ret_error, 2,
				    "--%s: none of these ports has such an "
				    "option",
				    common[i].key);
	return 0;
}

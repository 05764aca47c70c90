/* SPDX-License-Identifier: BSD-3-Clause */
/* Combine the user's specs and the program's options. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "specs.h"
#include "text.h"

/* An option for all ports whose driver supports it. */
struct common {
	const char *key;
	const char *name; /* of the program's option */
	char value[2 * MAX_PUNT_BYTES + sizeof("not ()")]; /* "": none */
	bool is_wanted;
	bool is_asked;  /* given by the user; else only if a port supports it */
	bool is_strict; /* a spec with a value of its own is refused */
};

enum { N_COMMON = 5 };

int fail_port(struct mr_reason *ret_error, int status, const char *spec,
	      const struct mr_reason *why)
{
	char name[MAX_SPEC_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, ","), spec);
	if (strstr(why->text, name) != NULL)
		return fail_with(ret_error, status, "%s", why->text);
	return fail_with(ret_error, status, "%s: %s", spec, why->text);
}

static struct common of_number(const char *key, uint32_t value)
{
	struct common c = { .key = key,
			    .name = key,
			    .is_wanted = value != 0,
			    .is_asked = value != 0 };

	snprintf(c.value, sizeof(c.value), "%u", value);
	return c;
}

/* The port takes what does not match. The filter's commas and backslashes must
 * not end the option. */
static struct common of_punt(const char *filter)
{
	struct common c = { .key = "filter",
			    .name = "punt",
			    .is_wanted = filter[0] != '\0',
			    .is_asked = filter[0] != '\0',
			    .is_strict = true };
	uint32_t n = (uint32_t)snprintf(c.value, sizeof(c.value), "not (");

	for (; *filter != '\0'; filter++) {
		if (*filter == ',' || *filter == '\\')
			c.value[n++] = '\\';
		c.value[n++] = *filter;
	}
	snprintf(c.value + n, sizeof(c.value) - n, ")");
	return c;
}

static void list_common(const struct port_options *options,
			struct common *common)
{
	common[0] = of_number("queues", options->n_queues);
	common[1] = of_number("ring", options->n_ring);
	common[2] = of_number("mtu", options->mtu_bytes);
	common[3] = (struct common){
		.key = "promisc",
		.name = "promisc",
		.is_wanted = options->promisc != PROMISC_OFF,
		.is_asked = options->promisc == PROMISC_ON,
	};
	common[4] = of_punt(options->punt);
}

/* Whether the spec already has the option. */
static bool has_option(const char *spec, const char *key)
{
	const size_t n = strlen(key);

	for (const char *at = spec; *at != '\0'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++; /* a comma of a name */
		else if (strncmp(at + 1, key, n) != 0)
			continue;
		else if (*at == ',' && strchr(",=", at[1 + n]) != NULL)
			return true;
		else if (*at == ':' && at[1 + n] == '=')
			return true; /* null: has no device before it */
	}
	return false;
}

/* 1 if the port has it now, 0 if it cannot, -errno. */
static int add_option(struct mr_ctx *ctx, char *spec,
		      const struct common *option, struct mr_reason *ret_error)
{
	const size_t n = strlen(spec), n_left = MAX_SPEC_BYTES - n;
	const int takes =
		mr_port_takes_option(ctx, spec, option->key, ret_error);

	if (takes == 0 && option->is_strict && has_option(spec, option->key))
		return fail_with(ret_error, -EINVAL,
				 "--%s and the port's own %s exclude each "
				 "other; join them in the port's",
				 option->name, option->key);
	if (takes <= 0) /* keep its own value */
		return takes < 0 ? takes : has_option(spec, option->key);
	if ((size_t)snprintf(spec + n, n_left, ",%s%s%s", option->key,
			     option->value[0] != '\0' ? "=" : "",
			     option->value) >= n_left)
		return fail_with(ret_error, -EINVAL, "the spec is too long");
	return 1;
}

int specs_make(struct mr_ctx *ctx, const char *const *specs, uint32_t n_specs,
	       const struct port_options *options,
	       char (*ret_specs)[MAX_SPEC_BYTES], struct mr_reason *ret_error)
{
	struct common common[N_COMMON];
	uint32_t n_taken[N_COMMON] = { 0 };
	struct mr_reason why;

	list_common(options, common);
	for (uint32_t p = 0; p < n_specs; p++) {
		const char *spec = specs[p];
		int has = 0;

		if (strlen(spec) >= MAX_SPEC_BYTES)
			return fail_with(ret_error, 2, "%.20s...: too long",
					 spec);
		memcpy(ret_specs[p], spec, strlen(spec) + 1);
		for (uint32_t i = 0; i < N_COMMON && has >= 0; i++) {
			if (!common[i].is_wanted)
				continue;
			has = add_option(ctx, ret_specs[p], &common[i], &why);
			n_taken[i] += has > 0;
		}
		if (has < 0)
			return fail_port(ret_error, 2, spec, &why);
	}
	for (uint32_t i = 0; i < N_COMMON; i++)
		if (common[i].is_asked && n_taken[i] == 0)
			return fail_with(ret_error, 2,
					 "--%s: no port has this option",
					 common[i].name);
	return 0;
}

/*
 * The device of a spec, if only one port can have it: an interface or a PCI
 * address. NULL: the driver decides.
 */
static const char *only_device(const char *spec)
{
	if (strncmp(spec, "xdp:", 4) == 0)
		return spec + 4;
	if (strncmp(spec, "vfio:", 5) == 0)
		return spec + 5;
	/* A colon after a name belongs to a driver; a PCI address has only
	 * hexadecimal letters before its first one. */
	if (strchr(spec, ':') == NULL ||
	    strspn(spec, "0123456789abcdefABCDEF:.") == strcspn(spec, ","))
		return spec;
	return NULL;
}

bool specs_differ(const char *const *specs, uint32_t n_specs,
		  struct mr_reason *ret_error)
{
	for (uint32_t i = 0; i < n_specs; i++) {
		const char *a = only_device(specs[i]);

		for (uint32_t j = 0; a != NULL && j < i; j++) {
			const char *b = only_device(specs[j]);
			const size_t n = strcspn(a, ",");

			if (b == NULL || n != strcspn(b, ",") ||
			    strncmp(a, b, n) != 0)
				continue;
			fail_with(ret_error, 0,
				  "%.*s is given twice; a port can be used "
				  "only once",
				  (int)n, a);
			return false;
		}
	}
	return true;
}

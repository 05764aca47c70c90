/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mr-nat. */
#include <errno.h>
#include <string.h>

#include "config/values.h"
#include "options.h"
#include "support/dataplane_keys.h"

static const char usage[] =
	"usage: mr-nat --inside SIDE --outside SIDE [options]\n"
	"       mr-nat --config FILE [options]\n"
	"Translate addresses (NAT44) between two ports, as the RFCs require.\n"
	"\n"
	"  mr-nat --inside eth1=10.0.0.1/24 \\\n"
	"         --outside eth2=192.0.2.1/24,gw=192.0.2.254\n"
	"\n"
	"SIDE is PORT=ADDRESS/LENGTH, the address of mr-nat there, followed "
	"by\n"
	"more addresses, gw=ADDRESS (the gateway) and vlan=N, separated by\n"
	"commas. PORT is an interface name, or driver:device[,key=value...].\n"
	"FILE also has port forwards, pools, limits and a log. mrctl shows and\n"
	"ends sessions of a running instance, and prints its counters.\n";

/* One item of --inside or --outside. */
static bool take_piece(struct nat_side_config *side, const char *piece,
		       struct mr_reason *why)
{
	uint32_t value;

	if (strncmp(piece, "gw=", 3) == 0)
		return value_addr(piece + 3, &side->gateway, why);
	if (strncmp(piece, "vlan=", 5) == 0) {
		if (!value_number(piece + 5, 1, 4094, &value, why))
			return false;
		side->vlan = (uint16_t)value;
		return true;
	}
	if (strchr(piece, '=') != NULL)
		return value_wrong(why,
				   "'%s': after the port, give addresses, "
				   "gw=ADDRESS and vlan=N",
				   piece);
	return nat_add_address(side, piece, why);
}

/* Find the = before the first address: a port spec may contain others. */
static const char *find_address(const char *text)
{
	for (const char *at = strchr(text, '='); at != NULL;
	     at = strchr(at + 1, '=')) {
		char piece[64];
		struct nat_prefix net;
		struct mr_reason why;
		uint32_t addr;

		snprintf(piece, sizeof(piece), "%.*s",
			 (int)strcspn(at + 1, ","), at + 1);
		if (value_host(piece, &addr, &net, &why))
			return at;
	}
	return NULL;
}

static bool read_side(const char *text, struct options *o, enum nat_side which,
		      struct mr_reason *why)
{
	struct nat_side_config *side = &o->sides.sides[which];
	const char *at = find_address(text);

	*side = (struct nat_side_config){ 0 };
	if (at == NULL || at == text ||
	    (size_t)(at - text) >= sizeof(side->spec))
		return value_wrong(why,
				   strchr(text, '=') != NULL && at != text ?
					   "'%s' has no IPv4 address with a "
					   "prefix length after the port, such "
					   "as eth0=192.0.2.1/24" :
					   "'%s' is not a port with its "
					   "address, such as eth0=192.0.2.1/24",
				   text);
	memcpy(side->spec, text, (size_t)(at - text));
	do {
		char piece[64];
		const size_t n = strcspn(++at, ",");

		snprintf(piece, sizeof(piece), "%.*s", (int)n, at);
		if (!take_piece(side, piece, why))
			return false;
		at += n;
	} while (*at != '\0');
	o->has_side[which] = true;
	return true;
}

static bool read_inside(const char *text, void *to, struct mr_reason *why)
{
	return read_side(text, to, NAT_INSIDE, why);
}

static bool read_outside(const char *text, void *to, struct mr_reason *why)
{
	return read_side(text, to, NAT_OUTSIDE, why);
}

/* Options that are not in a file. */
static const struct yaml_key own_keys[] = {
	{ .name = "inside",
	  .take = yaml_take_value,
	  .read = read_inside,
	  YAML_OPTION("SIDE", "without a file: the subscribers' side") },
	{ .name = "outside",
	  .take = yaml_take_value,
	  .read = read_outside,
	  YAML_OPTION("SIDE", "without a file: the external side") },
	YAML_WORD("offload", options, offload, offload_words,
		  YAML_OPTION("off|auto|on", "let the kernel forward known "
					     "sessions (default off)")),
	YAML_END,
};

static const struct option_keys sets[] = {
	{ own_keys, 0, false, 0 },
	{ dataplane_keys, offsetof(struct options, plane), true,
	  DATAPLANE_WORKERS | DATAPLANE_IDLE },
	{ run_control_keys, offsetof(struct options, run), false, 0 },
	{ run_keys, offsetof(struct options, run), false, 0 },
};

static enum parse_result check_together(struct options *o,
					struct mr_reason *error)
{
	const bool has_sides =
		o->has_side[NAT_INSIDE] || o->has_side[NAT_OUTSIDE];

	if (o->run.is_schema)
		return PARSE_RUN;
	if (o->run.config_path != NULL && has_sides)
		return parse_wrong(
			error,
			"--config does not go with --inside and --outside");
	if (o->run.config_path == NULL &&
	    !(o->has_side[NAT_INSIDE] && o->has_side[NAT_OUTSIDE]))
		return parse_wrong(error,
				   "--config FILE, or --inside and --outside, "
				   "is required; see mr-nat --help");
	return o->run.config_path != NULL ?
		       PARSE_RUN :
		       run_complete_options(&o->run, &o->plane, error);
}

static const struct option_table table = {
	.program = "mr-nat",
	.usage = usage,
	.sets = sets,
	.n_sets = sizeof(sets) / sizeof(sets[0]),
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	enum parse_result result;
	int first;

	*options = (struct options){ .offload = OFFLOAD_OFF };
	nat_config_init(&options->sides);
	options->plane = options->sides.plane;
	result = option_table_parse(&table, argc, argv, options, &first,
				    &options->given, ret_error);
	if (result != PARSE_RUN)
		return result;
	if (first < argc)
		return parse_wrong(ret_error,
				   "unexpected argument '%s'; give ports with "
				   "--inside and --outside",
				   argv[first]);
	return check_together(options, ret_error);
}

int options_parse_file(const struct options *options, struct run_options *run,
		       const char *name, const char *bytes, size_t n_bytes,
		       struct nat_config *ret_config,
		       struct yaml_errors *ret_errors)
{
	/* --workers or --cores overrides both keys. */
	const uint32_t n_workers = options->plane.n_workers > 0 ?
					   options->plane.n_workers :
					   options->plane.n_cores;
	struct dataplane_config *plane = &ret_config->plane;
	struct mr_reason why;
	int err = nat_settings_parse(name, bytes, n_bytes, n_workers,
				     ret_config, ret_errors);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < options->given.n; i++)
		(void)yaml_take_option(
			dataplane_keys, options->given.list[i].name,
			options->given.list[i].value, plane, &why);
	if (run_complete_file(run, plane, &why) == PARSE_RUN)
		return 0;
	nat_config_free(ret_config);
	return yaml_fail(ret_errors, -EINVAL, "%s", why.text);
}

int options_config(struct options *options, struct nat_config *ret_config,
		   struct yaml_errors *ret_errors)
{
	struct objections objections;
	struct nat_config config;
	int err;

	if (options->run.config_path != NULL) {
		err = options_parse_file(options, &options->run,
					 options->run.config_path, NULL, 0,
					 ret_config, ret_errors);
		return err == 0 ? 0 : err == -ENOMEM ? 1 : 2;
	}
	ret_errors->n = 0;
	config = options->sides;
	config.plane = options->plane;
	if (nat_config_complete(&config) < 0) {
		nat_config_free(&config);
		return yaml_fail(ret_errors, 1, "no memory");
	}
	err = nat_config_check(&config, nat_config_n_workers(&config),
			       &objections);
	if (err == 0) {
		*ret_config = config;
		return 0;
	}
	for (uint32_t i = 0; i < objections.n; i++)
		yaml_fail(ret_errors, 2, "--%s: %s", objections.list[i].section,
			  objections.list[i].why.text);
	nat_config_free(&config);
	return 2;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of the configuration file. */
#include <stdlib.h>
#include <string.h>

#include "support/values.h"
#include "support/yaml_show.h"

#include "options.h"

enum {
	MAX_FDB = 1 << 20,
	MAX_AGE_S = 1000000, /* IEEE 802.1Q-2018, table 8-3 */
};

static const char *const mode_words[] = { "patch", "macswap", "learn", "drop",
					  NULL };

bool options_add_port(struct options *options, const char *spec,
		      struct mr_reason *ret_why)
{
	struct dataplane_config *plane = &options->plane;
	const uint32_t i = plane->n_ports;

	if (i == MAX_PORTS)
		return value_wrong(ret_why, "more than %d ports", MAX_PORTS);
	if (spec[0] == '\0' || strlen(spec) >= MAX_SPEC_BYTES)
		return value_wrong(ret_why, "%.20s...: empty, or too long",
				   spec);
	memcpy(options->specs[i], spec, strlen(spec) + 1);
	options->spec_list[i] = options->specs[i];
	plane->specs = options->spec_list;
	plane->n_ports++;
	return true;
}

static bool read_port(const char *text, void *to, struct mr_reason *why)
{
	return options_add_port(to, text, why);
}

static json_t *show_ports(const struct yaml_key *key, const void *from)
{
	const struct options *options = from;
	json_t *list = json_array();

	(void)key;
	for (uint32_t i = 0; i < options->plane.n_ports; i++)
		json_array_append_new(list, yaml_show_text(options->specs[i]));
	return list;
}

static bool read_age(const char *text, void *to, struct mr_reason *why)
{
	uint32_t *age_s = to, s;

	if (!value_duration(text, &s, why))
		return false;
	if (s > MAX_AGE_S)
		return value_wrong(why, "%s is more than %d s", text,
				   MAX_AGE_S);
	*age_s = s;
	return true;
}

static void write_age(const void *from, char *ret_text, size_t n_bytes)
{
	value_write_duration(*(const uint32_t *)from, ret_text, n_bytes);
}

#define FIXED .is_fixed = true

const struct yaml_key l2fwd_keys[] = {
	{ .name = "ports",
	  .take = yaml_take_each,
	  .read = read_port,
	  .show = show_ports,
	  .is_needed = true,
	  FIXED },
	YAML_WORD("mode", options, mode, mode_words, .preset = "patch", FIXED,
		  YAML_OPTION("MODE", "patch (default), macswap, learn or "
				      "drop")),
	/* IEEE 802.1Q, table 8-3 */
	YAML_VALUE("age", options, age_s, read_age, write_age, .preset = "5m",
		   YAML_OPTION("S", "learn: forget addresses after S seconds "
				    "(default 300)")),
	YAML_NUMBER("fdb_limit", options, fdb_limit, 1, MAX_FDB,
		    .preset = "8192", FIXED,
		    YAML_OPTION("N", "learn: most addresses to keep (default "
				     "8192)")),
	YAML_WORD("offload", options, offload, offload_words, .preset = "off",
		  FIXED,
		  YAML_OPTION("off|auto|on", "let the kernel forward known "
					     "traffic (default off)")),
	YAML_TEXT("punt", options, plane.port.punt,
		  YAML_OPTION("FILTER", "leave frames that match a pcap filter "
					"to the kernel")),
	{ .name = "dataplane",
	  .take = yaml_take_mapping,
	  .keys = dataplane_keys,
	  .offset = offsetof(struct options, plane) },
	YAML_VALUE("metrics", options, plane.metrics, dataplane_read_metrics,
		   dataplane_write_metrics, FIXED),
	YAML_END,
};

void options_init(struct options *options)
{
	*options = (struct options){
		.plane = { .program = "mr-l2fwd",
			   .log_level = MR_LOG_WARNING,
			   .burst = MR_BURST_MAX,
			   .page_bytes = 4096 },
	};
	for (const struct yaml_key *key = l2fwd_keys; key->name != NULL; key++)
		if (key->preset != NULL)
			yaml_take_preset(key, options);
}

static int check_ports(const struct options *o, struct objections *objections)
{
	const uint32_t n_ports = o->plane.n_ports;
	const bool takes_one = o->mode == MODE_DROP || o->mode == MODE_MACSWAP;
	struct mr_reason why;

	if (n_ports < (takes_one ? 1 : 2))
		return object(objections, "ports", NULL, OBJECTION_WHOLE,
			      "%s ports: mode %s needs %s",
			      n_ports == 0 ? "no" : "too few",
			      mode_words[o->mode], takes_one ? "one" : "two");
	if ((o->mode == MODE_PATCH || o->mode == MODE_MACSWAP) && n_ports > 1 &&
	    n_ports % 2 != 0)
		return object(objections, "ports", NULL, OBJECTION_WHOLE,
			      "%u ports: mode %s needs pairs; add one, or use "
			      "mode learn",
			      n_ports, mode_words[o->mode]);
	if (!specs_differ(o->plane.specs, n_ports, &why))
		return object(objections, "ports", NULL, OBJECTION_WHOLE, "%s",
			      why.text);
	return 0;
}

int options_check(const struct options *o, struct objections *objections)
{
	int err = check_ports(o, objections) |
		  dataplane_check(&o->plane, objections);

	if (o->offload != OFFLOAD_OFF && o->mode == MODE_MACSWAP)
		err = object(objections, "offload", NULL, OBJECTION_WHOLE,
			     "mode macswap is done in user space only");
	if (o->offload != OFFLOAD_OFF && o->n_frames > 0)
		err = object(objections, "offload", NULL, OBJECTION_WHOLE,
			     "--count cannot count frames that the kernel "
			     "forwards");
	return err;
}

static int check_options(struct yaml_reader *reader, void *options)
{
	struct objections objections = { .n = 0 };
	const int err = options_check(options, &objections);

	objections_report(&objections, reader);
	return err;
}

int options_read_text(const char *name, const char *text, size_t n_bytes,
		      struct options *options, struct yaml_errors *ret_errors)
{
	return yaml_read(name, text, n_bytes, l2fwd_keys,
			 " empty; ports are required", check_options, options,
			 ret_errors);
}

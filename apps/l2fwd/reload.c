/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing the options of a running forwarder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/settings.h"

#include "session.h"

static const void *current_options(void *app)
{
	const struct session *session = app;
	struct options *options = session->options;

	/* mrctl set changes these. */
	options->plane.idle = session->plane.idle;
	options->plane.log_level = session->plane.log_level;
	return options;
}

/* A filter can be replaced, but not added to a port opened without one. */
static int check_here(const struct session *session, const struct options *next,
		      const char *name, const char *bytes, size_t n_bytes,
		      struct yaml_errors *errors)
{
	struct yaml_reader reader;
	int err;

	if (session->plane.has_filter || next->plane.port.punt[0] == '\0')
		return 0;
	err = yaml_open(&reader, name, bytes, n_bytes, errors);
	if (err < 0)
		return err;
	err = yaml_wrong(&reader,
			 yaml_find(&reader, yaml_root(&reader), "punt"),
			 "punt: the ports were opened without a filter, and "
			 "none can be added at run time; restart mr-l2fwd");
	yaml_close(&reader);
	return err;
}

static void *parse_options(void *app, const char *name, const char *bytes,
			   size_t n_bytes, struct yaml_errors *ret_errors)
{
	struct options *next = malloc(sizeof(*next));

	ret_errors->n = 0;
	if (next == NULL) {
		yaml_fail(ret_errors, -ENOMEM, "no memory");
		return NULL;
	}
	options_init(next);
	if (options_read_text(name, bytes, n_bytes, next, ret_errors) == 0 &&
	    check_here(app, next, name, bytes, n_bytes, ret_errors) == 0)
		return next;
	free(next);
	return NULL;
}

static int apply_options(void *app, void *settings, struct mr_reason *ret_why)
{
	const struct session *session = app;
	struct options *options = session->options, *next = settings;
	struct dataplane *plane = (struct dataplane *)&session->plane;
	int err = 0;

	/* First, the changes that can fail. */
	if (strcmp(options->plane.port.punt, next->plane.port.punt) != 0)
		err = dataplane_set_punt(plane, options->plane.specs,
					 options->plane.port.punt,
					 next->plane.port.punt, ret_why);
	if (err == 0) {
		options->plane.port = next->plane.port;
		options->age_s = next->age_s;
		if (session->fdb != NULL)
			fdb_set_age(session->fdb, next->age_s);
		dataplane_set_log(plane, next->plane.log_level);
		dataplane_set_idle(plane, next->plane.idle);
	}
	free(next);
	return err;
}

const struct settings_ops session_settings_ops = {
	.keys = l2fwd_keys,
	.parse = parse_options,
	.destroy = free,
	.current = current_options,
	.apply = apply_options,
};

void session_reload(void *app)
{
	const struct session *session = app;

	settings_reload(&session_settings_ops, app, "mr-l2fwd",
			session->options->run.config_path);
}

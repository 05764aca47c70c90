/* SPDX-License-Identifier: BSD-3-Clause */
/* Reloading the configuration. */
#include <errno.h>
#include <stdlib.h>

#include "app.h"
#include "check.h"
#include "config/keys.h"
#include "mapping/session.h"
#include "reload.h"
#include "support/text.h"

static void destroy_config(void *settings)
{
	struct nat_config *config = settings;

	if (config != NULL)
		nat_config_free(config);
	free(config);
}

/* What only the running program can check. 0, or -errno with an error. */
static int check_here(const struct app *app, struct nat_config *next,
		      struct yaml_errors *errors)
{
	struct mr_reason why;

	if (nat_check(next, &why) == 0 &&
	    nat_maps_can_reload(app->workers[0].maps, next, &why) == 0)
		return 0;
	return yaml_fail(errors, -EINVAL, "%s", why.text);
}

static void *parse_config(void *opaque, const char *name, const char *bytes,
			  size_t n_bytes, struct yaml_errors *ret_errors)
{
	const struct app *app = opaque;
	struct run_options run = app->options->run;
	struct nat_config *next = calloc(1, sizeof(*next));

	ret_errors->n = 0;
	if (next == NULL)
		yaml_fail(ret_errors, -ENOMEM, "no memory");
	else if (options_parse_file(app->options, &run, name, bytes, n_bytes,
				    next, ret_errors) == 0 &&
		 check_here(app, next, ret_errors) == 0)
		return next;
	destroy_config(next);
	return NULL;
}

static const void *current_config(void *opaque)
{
	const struct app *app = opaque;

	/* mrctl set may have changed these. */
	app->config->plane.idle = app->plane.idle;
	app->config->plane.log_level = app->plane.log_level;
	return app->config;
}

static void ask_all(struct app *app, const struct nat_config *config)
{
	app->asked = config;
	for (uint32_t i = 0; i < app->n_workers; i++)
		app->workers[i].has_news = app->workers[i].config != config;
	nat_reload_ask(app);
}

static int apply_config(void *opaque, void *settings, struct mr_reason *ret_why)
{
	struct app *app = opaque;

	if (app->next != NULL) {
		destroy_config(settings);
		return fail_with(ret_why, -EBUSY,
				 "the previous reload is still in progress");
	}
	app->next = settings;
	app->not_reloaded.text[0] = '\0';
	/* All at once; each worker requests its sessions' rules again. */
	nat_offload_follow(app);
	if (app->rules != NULL)
		mr_rules_flush(app->rules);
	ask_all(app, app->next);
	return 1;
}

static int apply_result(void *opaque, struct mr_reason *ret_why)
{
	const struct app *app = opaque;

	if (app->next != NULL)
		return 1;
	*ret_why = app->not_reloaded;
	return ret_why->text[0] != '\0' ? -EIO : 0;
}

const struct settings_ops nat_settings_ops = {
	.keys = nat_keys,
	.parse = parse_config,
	.destroy = destroy_config,
	.current = current_config,
	.apply = apply_config,
	.result = apply_result,
};

/* How many workers use it. */
static uint32_t n_users(const struct app *app, const struct nat_config *config)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < app->n_workers; i++)
		n += app->workers[i].config == config;
	return n;
}

/* Free what no worker uses any more. */
static void free_unused(struct app *app)
{
	struct nat_config **link = &app->kept, *kept;

	while ((kept = *link) != NULL) {
		if (n_users(app, kept) > 0) {
			link = &kept->older;
			continue;
		}
		*link = kept->older;
		destroy_config(kept);
	}
}

static void keep_config(struct app *app, struct nat_config *config)
{
	config->older = app->kept;
	app->kept = config;
	free_unused(app);
}

static void commit_reload(struct app *app)
{
	struct nat_config *old = app->config;

	if (!nat_neighbours_follow(app->neighbours, old, app->next,
				   dataplane_now_s(&app->plane)))
		print_error("mr-nat: reload: neighbours: no room for a static "
			    "entry; it will be resolved by ARP");
	app->config = app->next;
	app->next = NULL;
	keep_config(app, old);
	dataplane_set_idle(&app->plane, app->config->plane.idle);
	dataplane_set_log(&app->plane, app->config->plane.log_level);
	nat_offload_follow(app);
	app->n_reloads++;
	print_error("mr-nat: reload: done");
}

/* All have answered. */
static void finish_reload(struct app *app)
{
	const uint32_t n = n_users(app, app->next);

	if (app->not_reloaded.text[0] == '\0') {
		commit_reload(app);
		return;
	}
	if (n > 0 && app->asked == app->next) {
		ask_all(app, app->config);
		return;
	}
	/* A worker that cannot return keeps it until the next reload. */
	print_error("mr-nat: reload: %s; %s", app->not_reloaded.text,
		    n == 0 ? "nothing has changed" :
			     "some workers still use the new settings");
	keep_config(app, app->next);
	app->next = NULL;
	app->n_refused++;
}

void nat_reload_ask(struct app *app)
{
	for (uint32_t i = 0; i < app->n_workers; i++) {
		struct nat_worker *w = &app->workers[i];

		if (!w->has_news ||
		    nat_request_state(&w->request) != NAT_REQUEST_FREE)
			continue;
		w->request.question = NAT_ASK_RELOAD;
		w->request.config = app->asked;
		nat_request_set(&w->request, NAT_REQUEST_ASKED);
		mr_worker_wake(w->worker);
	}
}

void nat_reload_answered(struct app *app, uint32_t worker_idx)
{
	struct nat_worker *w = &app->workers[worker_idx];

	if (w->request.err >= 0)
		w->config = w->request.config;
	else if (app->not_reloaded.text[0] == '\0')
		fail_with(&app->not_reloaded, 0, "worker %u: %.300s",
			  worker_idx, w->request.why.text);
	w->has_news = false;
	nat_request_set(&w->request, NAT_REQUEST_FREE);
	for (uint32_t i = 0; i < app->n_workers; i++)
		if (app->workers[i].has_news)
			return;
	finish_reload(app);
}

void nat_reload_hang_up(void *opaque)
{
	struct app *app = opaque;
	const char *path = app->options->run.config_path;

	nat_log_reopen(app->log);
	if (path == NULL)
		print_error("mr-nat: reload: there is no --config");
	else if (settings_reload(&nat_settings_ops, app, "mr-nat", path) < 0)
		app->n_refused++;
}

void nat_reload_close(struct app *app)
{
	destroy_config(app->config);
	destroy_config(app->next);
	free_unused(app);
}

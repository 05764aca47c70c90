/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing the settings of a running application. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "settings.h"
#include "text.h"
#include "upgrade.h"
#include "yaml_show.h"

struct state {
	uint32_t is_waiting; /* for the result */
	uint32_t n_changes;
};
_Static_assert(sizeof(struct state) == SETTINGS_STATE_BYTES, "");

/* The changes from the settings in force to next. *ret_restart: the first key
 * that cannot change at run time, valid as long as they are; NULL: none. */
static json_t *find_changes(const struct settings_ops *ops, void *app,
			    const void *next, const char **ret_restart)
{
	json_t *now = yaml_show(ops->keys, ops->current(app));
	json_t *then = yaml_show(ops->keys, next), *changes, *change;
	size_t i;

	changes = yaml_changes(ops->keys, now, then);
	json_decref(now);
	json_decref(then);
	*ret_restart = NULL;
	json_array_foreach(changes, i, change)
	{
		if (*ret_restart == NULL &&
		    json_is_true(json_object_get(change, "restart")))
			*ret_restart = json_string_value(
				json_object_get(change, "key"));
	}
	return changes;
}

/* Apply what was read, unless a change needs a restart. */
static int apply_settings(const struct settings_ops *ops, void *app, void *next,
			  const char *restart, struct mr_reason *ret_why)
{
	if (restart == NULL)
		return ops->apply(app, next, ret_why);
	fail_with(ret_why, 0,
		  "%s: cannot change at run time; restart the program",
		  restart);
	ops->destroy(next);
	return -EINVAL;
}

int settings_reload(const struct settings_ops *ops, void *app,
		    const char *program, const char *path)
{
	struct yaml_errors errors;
	struct mr_reason why;
	const char *restart;
	json_t *changes;
	void *next;
	int err;

	next = ops->parse(app, path, NULL, 0, &errors);
	if (next == NULL) {
		for (uint32_t i = 0; i < errors.n; i++)
			print_error("%s: reload: %s; nothing has changed",
				    program, errors.list[i].text);
		return -EINVAL;
	}
	changes = find_changes(ops, app, next, &restart);
	err = apply_settings(ops, app, next, restart, &why);
	json_decref(changes);
	if (err < 0)
		print_error("%s: reload: %s; nothing has changed", program,
			    why.text);
	else if (err == 0)
		print_error("%s: reload: done", program);
	return err;
}

int settings_print_schema(const struct yaml_key *keys, const char *program)
{
	char title[64];
	json_t *schema;
	int err;

	snprintf(title, sizeof(title), "Configuration of %s", program);
	schema = yaml_schema(keys, title);
	err = json_dumpf(schema, stdout, JSON_INDENT(2));
	json_decref(schema);
	if (err == 0 && putchar('\n') != EOF && fflush(stdout) == 0)
		return 0;
	print_error("%s: cannot write", program);
	return 1;
}

/* The settings of a request, and what they change. NULL: the answer has the
 * errors. */
static void *read_request(struct control_request *r, void *control,
			  json_t **ret_changes, const char **ret_restart)
{
	const struct settings_ops *ops = control_config_of(control)->settings;
	void *app = control_view_of(control)->app;
	const char *name = "text", *text = NULL;
	struct yaml_errors errors = { 0 };
	size_t n;
	void *next;

	if (!control_args(r, "{s?s, s:s%}", "name", &name, "text", &text, &n))
		return NULL;
	next = ops->parse(app, name, text, n, &errors);
	if (next != NULL) {
		*ret_changes = find_changes(ops, app, next, ret_restart);
		return next;
	}
	for (uint32_t i = 0; i < errors.n; i++)
		control_add(r, json_pack("{s:o}", "wrong",
					 json_text(errors.list[i].text)));
	control_fail(r, "%s: %u error%s; nothing has changed", name, errors.n,
		     errors.n == 1 ? "" : "s");
	return NULL;
}

static bool has_settings(struct control_request *r, void *control)
{
	return control_config_of(control)->settings != NULL ||
	       !control_fail(r, "this program has no configuration file");
}

bool settings_answer_plan(struct control_request *r, void *opaque)
{
	const char *restart;
	json_t *changes, *change;
	void *next;
	size_t i;

	if (!has_settings(r, opaque))
		return true;
	next = read_request(r, opaque, &changes, &restart);
	if (next == NULL)
		return true;
	control_config_of(opaque)->settings->destroy(next);
	json_array_foreach(changes, i, change)
		control_add(r, json_incref(change));
	json_decref(changes);
	return control_end(r, json_pack("{s:i}", "changes", (int)i));
}

/* The result of an apply that has ended. */
static bool end_apply(struct control_request *r, int err,
		      const struct mr_reason *why)
{
	const struct state *state = r->state;

	if (err < 0)
		return control_fail(r, "%s; nothing has changed", why->text);
	return control_end(
		r, json_pack("{s:i}", "changes", (int)state->n_changes));
}

bool settings_answer_apply(struct control_request *r, void *opaque)
{
	void *app = control_view_of(opaque)->app;
	const struct settings_ops *ops = control_config_of(opaque)->settings;
	struct state *state = r->state;
	struct mr_reason why;
	const char *restart;
	json_t *changes;
	void *next;
	int err;

	if (!has_settings(r, opaque))
		return true;
	if (state->is_waiting) {
		err = ops->result(app, &why);
		return err > 0 ? false : end_apply(r, err, &why);
	}
	/* The successor has read the file already. */
	if (upgrade_is_running(control_view_of(opaque)->upgrade))
		return control_fail(r, "apply: busy: an upgrade is under way");
	next = read_request(r, opaque, &changes, &restart);
	if (next == NULL)
		return true;
	state->n_changes = (uint32_t)json_array_size(changes);
	if (state->n_changes > 0) {
		err = apply_settings(ops, app, next, restart, &why);
	} else {
		ops->destroy(next);
		err = 0;
	}
	json_decref(changes);
	state->is_waiting = err > 0;
	return err > 0 ? false : end_apply(r, err, &why);
}

bool settings_answer_dump(struct control_request *r, void *opaque)
{
	const struct settings_ops *ops = control_config_of(opaque)->settings;
	void *app = control_view_of(opaque)->app;

	if (!has_settings(r, opaque) || !control_args(r, "{}"))
		return true;
	control_add(r, json_pack("{s:o}", "settings",
				 yaml_show(ops->keys, ops->current(app))));
	return control_end(r, NULL);
}

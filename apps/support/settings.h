/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changing the settings of a running application to those of a configuration
 * file: verbs of the control socket that plan and apply changes and dump the
 * settings in force, and the reload on SIGHUP. A table of yaml_keys.h defines
 * what a file may contain, and what cannot change at run time.
 */
#ifndef SUPPORT_SETTINGS_H
#define SUPPORT_SETTINGS_H

#include "control.h"
#include "yaml_keys.h"

/* An application's operations on its settings; all in the main thread. */
struct settings_ops {
	const struct yaml_key *keys;
	/* Read and check bytes, or the file called name if bytes is NULL:
	 * settings, for destroy(); or NULL with errors. */
	void *(*parse)(void *app, const char *name, const char *bytes,
		       size_t n_bytes, struct yaml_errors *ret_errors);
	void (*destroy)(void *settings);
	/* The settings in force; valid until the next call. */
	const void *(*current)(void *app);
	/*
	 * Apply all or nothing; owns the settings, even on failure. 0; 1: it is
	 * in progress; or -errno with a reason.
	 */
	int (*apply)(void *app, void *settings, struct mr_reason *ret_why);
	/* The same result later. NULL: apply() never returns 1. */
	int (*result)(void *app, struct mr_reason *ret_why);
};

/*
 * Read a file, and begin to apply it. Returns as apply() does. -errno: a line
 * per error was printed, "PROGRAM: reload: ...", and nothing has changed.
 * 0: a line says so.
 */
int settings_reload(const struct settings_ops *ops, void *app,
		    const char *program, const char *path);

/* --schema: print the schema of a program's files. Returns the exit status. */
int settings_print_schema(const struct yaml_key *keys, const char *program);

/*
 * plan: "name" and "text" of a file; an object per change, or a line "wrong"
 * per error. apply: the same, and applies them. dump: "settings", as they would
 * be in a file.
 */
control_answer_fn settings_answer_plan, settings_answer_apply,
	settings_answer_dump;

/* The result of an apply in progress. */
enum { SETTINGS_STATE_BYTES = 8 };

#endif

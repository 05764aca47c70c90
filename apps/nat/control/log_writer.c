/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that writes the log: neither a disk nor a pipe delays the rest. */
#include "app.h"
#include "log.h"
#include "support/background.h"
#include "support/text.h"

enum { LOG_MS = 5000 }; /* for its last lines */

int app_create_log_writer(struct app *app, struct mr_reason *ret_error)
{
	app->log_writer = background_create(-1);
	return app->log_writer != NULL ?
		       0 :
		       fail_with(ret_error, 1, "no thread for the log");
}

/* Runs on the log's thread: neither a disk nor a pipe delays the rest. */
static void write_log(void *opaque)
{
	struct app *app = opaque;
	struct mr_reason why;

	if (__atomic_exchange_n(&app->moves_log, false, __ATOMIC_RELAXED) &&
	    nat_log_reopen(app->log, &why) < 0)
		print_error("mr-nat: %s", why.text);
	if (!nat_log_write(app->log, app_now_s(app), &why))
		print_error("mr-nat: %s", why.text);
}

void app_write_log(struct app *app)
{
	if (background_is_idle(app->log_writer))
		background_do(app->log_writer, write_log, app);
}

static void end_log(void *opaque)
{
	struct app *app = opaque;

	nat_log_destroy(app->log);
	app->log = NULL;
}

void app_close_log(struct app *app)
{
	struct background *writer = app->log_writer;

	if (writer == NULL) {
		nat_log_destroy(app->log);
		return;
	}
	if (background_wait(writer, LOG_MS))
		background_do(writer, end_log, app);
	if (!background_wait(writer, LOG_MS))
		print_error("mr-nat: log: %s: cannot write the last lines",
			    app->config->log_path);
	background_destroy(writer);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reloading the configuration: all workers apply it, or none. If one cannot,
 * the others return to the previous one.
 */
#ifndef NAT_RELOAD_H
#define NAT_RELOAD_H

#include "support/settings.h"

struct app;

/* Of the struct app. */
extern const struct settings_ops nat_settings_ops;

/* SIGHUP: reload the configuration, and reopen the log; for run(). */
void nat_reload_hang_up(void *app);
/* Send it to each worker that has not applied it and has no other request. */
void nat_reload_ask(struct app *app);
/* A worker has answered. */
void nat_reload_answered(struct app *app, uint32_t worker_idx);
/* Free all configurations, after the workers have ended. */
void nat_reload_close(struct app *app);

#endif

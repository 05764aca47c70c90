/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for the translator's sessions: the main thread's part. */
#ifndef NAT_OFFLOAD_H
#define NAT_OFFLOAD_H

#include "mapping/rule.h"
#include "support/offloading.h"

struct app;
struct nat_config;

struct nat_offload_stats {
	struct nat_rules_stats rules;
	struct offload_counts counts;
};

/* Capacity of the set, in rules. */
uint32_t nat_offload_n_max(const struct nat_config *config);
/* Before the workers are made: app->rules, if the option asks for it. 0, or an
 * exit status with a message. */
int nat_offload_open(struct app *app, struct mr_reason *ret_error);
/* Before the ports are closed, with the workers at rest: frames reach them
 * again, and what rules know goes to the mappings. If another process has the
 * rules, they stay as they are. */
void nat_offload_close(struct app *app);

/* For another process: no rule is being added or removed any more. */
void nat_offload_rest(struct app *app);
/* For run(), in the new process: the rules are this one's. */
void nat_offload_own(void *app);

/* For run(), after ports were polled or rules had an event. */
void nat_offload_polled(void *app);
bool nat_offload_ready(void *app);
/* Workers may have sent batches. */
void nat_offload_serve(struct app *app);
/* The ports, as the configuration and their MTUs have them. */
void nat_offload_follow(struct app *app);
void nat_offload_stats(const struct app *app, struct nat_offload_stats *stats);

#endif

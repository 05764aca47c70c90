/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for the translator's sessions: offload.h. */
#include <sys/random.h>

#include "app.h"
#include "mapping/hand_over.h"
#include "mapping/session.h"
#include "offload.h"

/* 330 bytes of kernel memory each, allocated at the start. */
enum { MAX_RULES = 131072 };

uint32_t nat_offload_n_max(const struct nat_config *config)
{
	const uint64_t n =
		(uint64_t)config->max_mappings + config->max_sessions;

	return n < MAX_RULES ? (uint32_t)n : MAX_RULES;
}

static uint32_t n_rxqs(const struct app *app)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(app->plane.ports[s], &info);
		n += info.n_rxqs;
	}
	return n;
}

int nat_offload_open(struct app *app, struct mr_reason *ret_error)
{
	const enum offload_choice choice = app->options->offload;
	const char *const program = app->config->plane.program;
	const uint32_t n_owners = app->plane.n_workers + n_rxqs(app);
	struct mr_rules_config config = {
		.size = sizeof(config),
		.n_ports = NAT_SIDES,
		.ports = app->plane.ports,
		.n_max = nat_offload_n_max(app->config),
		.n_hops = NAT_NEIGHBOUR_SLOTS,
		.id_step = nat_id_step(n_owners),
		.hands_over = 1,
	};
	uint16_t random = 0;
	struct mr_reason why;
	int err;

	if (choice == OFFLOAD_OFF)
		return 0;
	err = offload_check_ports(program, choice, app->plane.ports, NAT_SIDES,
				  MR_RULE_FLOW, true, ret_error);
	if (err <= 0)
		return err < 0;
	if (getrandom(&random, sizeof(random), 0) < 0)
		return fail_with(ret_error, 1, "getrandom: no random numbers");
	config.first_id = (uint16_t)((random & ~(config.id_step - 1u)) |
				     app->plane.n_workers);
	if (mr_rules_open(&config, &app->rules, &why) < 0)
		return offload_refuse(program, choice, why.text, ret_error) < 0;
	app->n_id_owners = n_owners;
	app->owns_rules = !app->plane.is_taken_over;
	if (app->owns_rules)
		nat_offload_follow(app);
	return 0;
}

void nat_offload_close(struct app *app)
{
	if (app->rules == NULL)
		return;
	if (app->owns_rules)
		mr_rules_stop(app->rules);
	app->offload_counts = offload_count(app->rules, NAT_SIDES);
	for (uint32_t i = 0; i < app->n_workers; i++) {
		const struct nat_worker *w = &app->workers[i];

		if (w->maps != NULL && app->owns_rules)
			nat_rules_end_all(w->maps);
		if (w->path != NULL)
			nat_path_end_rules(w->path);
	}
	if (app->neighbours != NULL)
		nat_neighbours_share(app->neighbours, NULL);
	mr_rules_close(app->rules);
	app->rules = NULL;
	app->fds[1].fd = -1;
}

void nat_offload_rest(struct app *app)
{
	for (uint32_t i = 0; i < app->n_workers && app->rules != NULL; i++) {
		nat_rules_settle(app->workers[i].maps);
		nat_path_rest(app->workers[i].path);
	}
}

void nat_offload_own(void *opaque)
{
	struct app *app = opaque;

	app->owns_rules = true;
	if (app->rules == NULL)
		return;
	nat_offload_follow(app);
	nat_neighbours_share(app->neighbours, app->rules);
	nat_offload_rest(app); /* rules whose sessions did not come along */
}

bool nat_offload_ready(void *opaque)
{
	const struct app *app = opaque;

	if (app->rules != NULL)
		mr_rules_poll(app->rules);
	return false;
}

void nat_offload_polled(void *opaque)
{
	(void)nat_offload_ready(opaque);
}

void nat_offload_serve(struct app *app)
{
	const uint32_t n = app->rules != NULL ? app->n_workers : 0;
	bool is_full = false;

	for (uint32_t i = 0; i < n; i++)
		is_full |= nat_rules_serve(app->workers[i].maps->rules);
	for (uint32_t i = 0; i < n && is_full; i++)
		nat_rules_make_room(app->workers[i].maps->rules);
}

/* 0: no limit. */
static uint16_t lower_mtu(uint16_t mtu, uint16_t limit)
{
	return limit != 0 && limit < mtu ? limit : mtu;
}

void nat_offload_follow(struct app *app)
{
	for (uint32_t s = 0; s < NAT_SIDES && app->rules != NULL; s++) {
		const struct nat_side_config *side = &app->config->sides[s];
		struct mr_rules_link link = { .vlan = side->vlan };
		const struct nat_side_config *next =
			app->next != NULL ? &app->next->sides[s] : side;
		uint16_t mtu;

		nat_path_describe_port(app->plane.ports[s], s, link.mac, &mtu);
		link.mtu_bytes =
			lower_mtu(lower_mtu(mtu, side->mtu), next->mtu);
		mr_rules_link(app->rules, s, &link);
	}
}

void nat_offload_stats(const struct app *app, struct nat_offload_stats *stats)
{
	*stats = (struct nat_offload_stats){ .counts = app->offload_counts };
	if (app->rules != NULL)
		stats->counts = offload_count(app->rules, NAT_SIDES);
	for (uint32_t i = 0; i < app->n_workers; i++) {
		struct nat_rules_stats one;

		if (app->workers[i].maps == NULL ||
		    app->workers[i].maps->rules == NULL)
			continue;
		one = nat_rules_stats(app->workers[i].maps->rules);
		stats->rules.n_rules += app->rules != NULL ? one.n_rules : 0;
		stats->rules.refused += one.refused;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * F05: the wheel of a table whose flows are all in use: an operation is an id
 * that falls due and is set again, to a tick within the horizon.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "workloads.h"

enum { N_SLOTS = 4096, BURST = 32 };

struct ageing {
	struct mr_wheel *wheel;
	uint32_t now;
	uint64_t random;
};

static uint32_t later(struct ageing *ageing)
{
	ageing->random = ageing->random * 6364136223846793005 + 1;
	return ageing->now + 1 + (uint32_t)(ageing->random >> 33) % 4000;
}

static int set_up(struct player *player, struct mr_reason *why)
{
	struct ageing *ageing = calloc(1, sizeof(*ageing));
	const uint32_t n = (uint32_t)player->param[0];

	if (ageing == NULL)
		return -1;
	if (mr_wheel_create(bench_ctx(player->bench), n, N_SLOTS, 0,
			    &ageing->wheel, why) < 0) {
		free(ageing);
		return -1;
	}
	for (uint32_t id = 0; id < n; id++)
		mr_wheel_set(ageing->wheel, id, later(ageing));
	player->state = ageing;
	return 0;
}

static void tear_down(struct player *player)
{
	struct ageing *ageing = player->state;

	mr_wheel_destroy(ageing->wheel);
	free(ageing);
}

static uint64_t run(struct player *player, uint32_t thread, uint64_t n)
{
	struct ageing *ageing = player->state;
	uint32_t ids[BURST], n_due;
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += n_due) {
		n_due = mr_wheel_expire(ageing->wheel, ageing->now, ids, BURST);
		for (uint32_t i = 0; i < n_due; i++)
			mr_wheel_set(ageing->wheel, ids[i], later(ageing));
		ageing->now += n_due < BURST;
	}
	return done;
}

static void rows(struct bench *bench)
{
	for (uint32_t n = 1000; n <= 10000000; n *= 10) {
		struct player players[MAX_PLAYERS];
		char name[64];
		struct row row = { .name = name,
				   .unit = "id",
				   .plot = "wheel",
				   .x_name = "ids",
				   .x = n,
				   .players = players };

		snprintf(name, sizeof(name), "ids=%u", n);
		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = "millrace",
					    .side = SIDE_OURS,
					    .setup = set_up,
					    .run = run,
					    .teardown = tear_down,
					    .param = { n } });
		bench_row(bench, &row);
	}
}

const struct workload f05_wheel = {
	.name = "F05",
	.title = "wheel",
	.what = "an id falls due and is set again",
	.source = "issue 5: ageing",
	.rows = rows,
};

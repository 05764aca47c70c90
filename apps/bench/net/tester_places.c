/* SPDX-License-Identifier: BSD-3-Clause */
/* Places to send to that are no ports, each with a thread of the tester. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/live.h"
#include "net/tester_parts.h"

bool is_place(const char *spec)
{
	return strncmp(spec, live_place.prefix, strlen(live_place.prefix)) == 0;
}

int places_open(struct tester *tester, const char *spec, uint32_t t,
		struct mr_reason *why)
{
	struct sending_place *at = &tester->places[tester->n_places];
	struct mr_reason said;
	int err;

	if (tester->n_places == MAX_PLACES)
		return fail_with(why, 2, "more than %d places as %s",
				 MAX_PLACES, spec);
	*at = (struct sending_place){ .ops = &live_place, .t = t };
	err = at->ops->open(tester->plane.ctx, spec, &at->place, &said);
	if (err < 0)
		return fail_with(why, err == -EINVAL ? 2 : 1, "%s", said.text);
	tester->tx[t] = tester->n_ports + tester->n_places++;
	return 0;
}

void places_close(struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_places; i++)
		tester->places[i].ops->close(tester->places[i].place);
	tester->n_places = 0;
}

int places_begin(struct tester *tester, struct mr_reason *why)
{
	for (uint32_t i = 0; i < tester->n_places; i++) {
		struct sending_place *at = &tester->places[i];
		struct send_orders orders = tester->orders;
		struct mr_reason said;
		int err;

		at->is_done = 0;
		at->err = 0;
		orders.sender = tester->n_senders + i;
		err = at->ops->begin(at->place, tester->streams[at->t], &orders,
				     &said);
		if (err < 0)
			return fail_with(why, err == -EINVAL ? 2 : 1, "%s",
					 said.text);
	}
	return 0;
}

void places_run(struct sending_place *at)
{
	at->err = at->ops->run(at->place, &at->why);
	__atomic_store_n(&at->is_done, 1, __ATOMIC_RELEASE);
}

void places_stop(struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_places; i++)
		if (!__atomic_load_n(&tester->places[i].is_done,
				     __ATOMIC_ACQUIRE))
			tester->places[i].ops->stop(tester->places[i].place);
}

void places_look(const struct tester *tester, struct trial_result *ret)
{
	for (uint32_t i = 0; i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];

		if (!__atomic_load_n(&at->is_done, __ATOMIC_ACQUIRE) ||
		    at->err >= 0)
			continue;
		snprintf(ret->why_stopped, sizeof(ret->why_stopped), "%s",
			 at->why.text);
	}
}

bool places_are_done(const struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_places; i++)
		if (!__atomic_load_n(&tester->places[i].is_done,
				     __ATOMIC_ACQUIRE))
			return false;
	return true;
}

struct send_counts places_counts(const struct tester *tester)
{
	struct send_counts all = { 0 };

	for (uint32_t i = 0; i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];
		struct send_counts counts;

		at->ops->counts(at->place, &counts, NULL);
		all.sent += counts.sent;
		all.unsent += counts.unsent;
		all.bytes += counts.bytes;
		all.refused += counts.refused;
		if (counts.last_ns > all.last_ns)
			all.last_ns = counts.last_ns;
	}
	return all;
}

void places_lateness(const struct tester *tester, struct hist *ret)
{
	struct hist *hist = malloc(sizeof(*hist));

	for (uint32_t i = 0; hist != NULL && i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];
		struct send_counts counts;

		memset(hist, 0, sizeof(*hist));
		at->ops->counts(at->place, &counts, hist);
		hist_merge(ret, hist);
	}
	free(hist);
}

uint32_t places_drops(const struct tester *tester, struct trial_drop *ret,
		      uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];
		struct mr_named_count lost[16];
		struct mr_port_info info = { .size = sizeof(info) };
		const uint32_t n_lost = at->ops->drops(at->place, lost, 16);

		at->ops->info(at->place, &info);
		for (uint32_t d = 0; d < n_lost && n < room; d++) {
			struct trial_drop *row = &ret[n];

			if (lost[d].value == 0)
				continue;
			*row = (struct trial_drop){ .side = "tx",
						    .n = lost[d].value,
						    .is_departure = true };
			snprintf(row->port, sizeof(row->port), "%s", info.name);
			snprintf(row->name, sizeof(row->name), "%s",
				 lost[d].name);
			n++;
		}
	}
	return n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Put a translator's state into a parcel, and take it out: hand_over.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "datapath/hand_over.h"
#include "hand_over.h"
#include "keep.h"
#include "mapping/hand_over.h"
#include "ports/entry.h"
#include "mapping/session.h"
#include "support/counter.h"
#include "support/text.h"
#include "support/upgrade.h"

enum { LAYOUT = 1 };

/* Entry "nat". */
struct app_image {
	uint32_t n_workers;
	uint32_t n_reloads, n_refused;
	uint32_t has_rules;
	struct nat_log_stats log;
	struct nat_keep_image keep;
	struct offload_counts offload;
	struct mr_reason not_steered;
};

/* "0/work": of worker 0. */
struct work_image {
	uint64_t bursts, entries;
};

/* What a worker of the old process had. */
struct worker_state {
	struct work_image work;
	struct nat_maps *maps; /* a copy */
	struct nat_path_state path;
};

static void put_worker(const struct nat_worker *w, struct mr_parcel *parcel,
		       uint32_t i)
{
	const struct work_image work = { w->stats.bursts, w->stats.entries };

	mr_parcel_put(parcel, nat_entry_name(i, "work").text, LAYOUT, &work,
		      sizeof(work));
	nat_maps_put(w->maps, parcel, i);
	nat_rules_put(w->maps, parcel, i);
	nat_path_put(w->path, w->steer, parcel, i);
}

uint64_t nat_expect_state(void *opaque, char *sizes, size_t n)
{
	const struct app *app = opaque;
	uint64_t n_bytes = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < app->n_workers && at < n; i++) {
		const struct nat_maps_stats *maps = &app->workers[i].stats.maps;

		n_bytes += __atomic_load_n(&maps->bytes, __ATOMIC_RELAXED);
		at += (size_t)snprintf(
			sizes + at, n - at, "%llu ",
			(unsigned long long)__atomic_load_n(&maps->n_mappings,
							    __ATOMIC_RELAXED));
	}
	return n_bytes;
}

uint32_t nat_expected_mappings(uint32_t worker_idx)
{
	const char *sizes = upgrade_sizes();
	unsigned long n = 0;
	char *end = NULL;

	for (uint32_t i = 0; sizes != NULL && i <= worker_idx; i++) {
		n = strtoul(sizes, &end, 10);
		sizes = end != sizes ? end : NULL;
	}
	return sizes != NULL ? nat_clamp_count(n) : 0;
}

void nat_put_state(void *opaque, struct mr_parcel *parcel)
{
	struct app *app = opaque;
	struct nat_offload_stats offload;
	struct app_image image = {
		.n_workers = app->n_workers,
		.n_reloads = app->n_reloads,
		.n_refused = app->n_refused,
		.has_rules = app->rules != NULL,
		.not_steered = app->not_steered,
	};

	nat_log_write(app->log);
	nat_offload_rest(app);
	for (uint32_t i = 0; i < app->n_workers; i++)
		put_worker(&app->workers[i], parcel, i);
	nat_neighbours_put(app->neighbours, parcel);
	nat_keep_put(app->keep, &image.keep);
	nat_offload_stats(app, &offload);
	image.offload = offload.counts;
	image.log = nat_log_settle(app->log);
	mr_parcel_put(parcel, "nat", LAYOUT, &image, sizeof(image));
}

void nat_leave_state(void *opaque)
{
	struct app *app = opaque;

	nat_keep_leave(app->keep);
	app->owns_rules = false;
	for (uint32_t i = 0; i < app->n_workers; i++)
		nat_path_leave(app->workers[i].path);
}

/* ---- in the next process ---- */

static int find_worker(const struct app *app, const struct mr_parcel *parcel,
		       uint32_t i, struct worker_state *ret,
		       struct mr_reason *ret_why)
{
	struct nat_maps *own = app->workers[i % app->n_workers].maps;
	int err = mr_parcel_get(parcel, nat_entry_name(i, "work").text, LAYOUT,
				&ret->work, sizeof(ret->work), ret_why);

	if (err == 0)
		err = nat_maps_copy(own, parcel, i, &ret->maps, ret_why);
	if (err == 0)
		err = nat_rules_copy(ret->maps, own,
				     nat_offload_n_max(app->config), parcel, i,
				     ret_why);
	return err < 0 ? err : nat_path_find(parcel, i, &ret->path, ret_why);
}

/* Frames of the old workers that become this worker's. */
static int make_backlog(struct nat_worker *w, uint32_t idx, uint32_t n_workers,
			const struct worker_state *states, uint32_t n_states)
{
	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		struct nat_backlog *to = &w->backlog;
		struct mr_frame *frames;
		uint32_t n = 0;

		for (uint32_t i = idx; i < n_states; i += n_workers)
			n += states[i].path.n_frames[s];
		if (n == 0)
			continue;
		frames = malloc(n * sizeof(frames[0]));
		if (frames == NULL)
			return -ENOMEM;
		to->frames[s] = frames;
		for (uint32_t i = idx; i < n_states; i += n_workers) {
			const struct nat_path_state *from = &states[i].path;

			memcpy(frames + to->n[s], from->frames[s],
			       from->n_frames[s] * sizeof(frames[0]));
			to->n[s] += from->n_frames[s];
		}
	}
	return 0;
}

/* Everything that may fail. */
static int find_all(struct app *app, const struct mr_parcel *parcel,
		    struct worker_state *states, uint32_t n_states,
		    struct mr_reason *ret_why)
{
	const uint32_t n = app->n_workers;
	int err = 0;

	for (uint32_t i = 0; i < n_states && err == 0; i++)
		err = find_worker(app, parcel, i, &states[i], ret_why);
	for (uint32_t i = 0; i < n && err == 0; i++)
		if (make_backlog(&app->workers[i], i, n, states, n_states) < 0)
			err = fail_with(ret_why, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < n_states && err == 0; i++)
		err = nat_path_claim(app->workers[i % n].path, parcel, i,
				     ret_why);
	for (uint32_t i = 0; i < n && err < 0; i++)
		nat_work_forget_backlog(&app->workers[i]);
	for (uint32_t i = 0; i < n_states && err < 0; i++)
		nat_maps_destroy(states[i].maps);
	return err;
}

/* Returns how many mappings and sessions ended, and of how many workers they
 * were converted. */
static uint32_t take_workers(struct app *app,
			     const struct worker_state *states,
			     uint32_t n_states, uint32_t *ret_n_converted)
{
	const uint32_t n = app->n_workers;
	const uint32_t now_s = dataplane_now_s(&app->plane);
	struct nat_maps *maps[MR_WORKERS_MAX];
	uint32_t n_ended = 0;
	bool is_converted;

	for (uint32_t i = 0; i < n; i++)
		maps[i] = app->workers[i].maps;
	for (uint32_t i = 0; i < n_states; i++) {
		struct nat_worker *w = &app->workers[i % n];

		n_ended += nat_maps_take(maps, n, states[i].maps, now_s,
					 &is_converted);
		*ret_n_converted += is_converted;
		nat_path_take(w->path, w->steer, &states[i].path,
			      n == n_states);
		counter_add(&w->stats.bursts, states[i].work.bursts);
		counter_add(&w->stats.entries, states[i].work.entries);
	}
	for (uint32_t i = 0; i < n; i++)
		nat_work_publish(&app->workers[i]);
	return n_ended;
}

static void take_app(struct app *app, const struct app_image *image)
{
	app->n_reloads = image->n_reloads;
	app->n_refused = image->n_refused;
	if (app->rules == NULL)
		app->offload_counts = image->offload;
	app->not_steered = image->not_steered;
	nat_log_inherit(app->log, &image->log);
	nat_keep_take(app->keep, &image->keep);
}

int nat_take_state(void *opaque, struct mr_parcel *parcel,
		   struct mr_reason *ret_why)
{
	struct nat_neighbour_images neighbours;
	uint32_t n_ended, n_converted = 0;
	struct app *app = opaque;
	struct worker_state *states = NULL;
	struct app_image image;
	int err = mr_parcel_get(parcel, "nat", LAYOUT, &image, sizeof(image),
				ret_why);

	if (err == 0 &&
	    (image.n_workers == 0 || image.n_workers > MR_WORKERS_MAX))
		err = fail_with(ret_why, -EPROTO,
				"entry nat of the state is damaged");
	if (err == 0 && image.has_rules != (app->rules != NULL))
		err = fail_with(ret_why, -EPROTO,
				"entry nat of the state is damaged: rules");
	/* IP ids of the rules' queues follow those of the workers. */
	if (err == 0 && image.has_rules && image.n_workers != app->n_workers)
		err = fail_with(ret_why, -EINVAL,
				"%u workers, and the running process has %u: "
				"with --offload this needs a restart",
				app->n_workers, image.n_workers);
	if (err == 0)
		err = nat_neighbours_find_images(parcel, &neighbours,
						 ret_why);
	if (err < 0)
		return err;
	states = calloc(image.n_workers, sizeof(states[0]));
	if (states == NULL)
		return fail_with(ret_why, -ENOMEM, "no memory");
	err = find_all(app, parcel, states, image.n_workers, ret_why);
	if (err == 0) {
		nat_neighbours_take(app->neighbours, &neighbours, app->config,
				    dataplane_now_s(&app->plane));
		n_ended = take_workers(app, states, image.n_workers,
				       &n_converted);
		take_app(app, &image);
		if (n_converted > 0)
			print_error("mr-nat: upgrade: the configuration has "
				    "changed: sessions were entered one by "
				    "one; %u ended",
				    n_ended);
	}
	free(states);
	return err;
}

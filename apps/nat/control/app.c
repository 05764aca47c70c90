/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing a translator, and reloading its configuration. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <millrace/experimental/port_queues.h>

#include "app.h"
#include "check.h"
#include "hand_over.h"
#include "keep.h"
#include "ports/ports.h"
#include "reload.h"
#include "support/text.h"
#include "verbs.h"

enum {
	STEER_ENTRIES = 1024, /* of each ring between workers */
	MAX_STEERED =
		16, /* workers: two rules each, of few that devices have */
};

static int open_plane(struct app *app, struct mr_reason *ret_error)
{
	const struct nat_config *c = app->config;
	const char *const specs[NAT_SIDES] = { c->sides[NAT_INSIDE].spec,
					       c->sides[NAT_OUTSIDE].spec };
	/* Each worker sends to both ports. */
	struct dataplane_config plane = c->plane;
	const uint32_t n = nat_config_n_workers(c);

	plane.n_workers = n;
	plane.specs = specs;
	plane.n_kept_pages =
		n * nat_held_pages(c) + n * (n - 1) * STEER_ENTRIES;
	return dataplane_open(&app->plane, &plane, ret_error);
}

/* The kernel shares our addresses, and needs the frames that are for it. */
static int share_addresses(struct app *app, struct mr_reason *ret_error)
{
	struct mr_reason why;
	int status = 0;

	for (uint32_t s = 0; s < NAT_SIDES && status == 0; s++)
		if (mr_port_open_kernel(app->plane.ports[s], &why) < 0)
			status = fail_with(ret_error, 1, "local: kernel: %s",
					   why.text);
	return status;
}

static int make_worker(struct app *app, uint32_t i, struct mr_reason *ret_error)
{
	struct nat_worker *w = &app->workers[i];
	const struct nat_maps_config maps = {
		.ctx = app->plane.ctx,
		.config = app->config,
		.shard = i,
		.n_shards = app->n_workers,
		.now_s = dataplane_now_s(&app->plane),
		.n_expected = nat_expected_mappings(i),
		.log = app->config->log_path[0] != '\0' ? nat_log_put : NULL,
		.opaque = nat_log_ring(app->log, i),
	};
	struct nat_path_config path = {
		.ctx = app->plane.ctx,
		.config = app->config,
		.neighbours = app->neighbours,
		.worker_idx = i,
		.n_workers = app->n_workers,
		.rules = app->rules,
		.recorder = &w->recorder,
		.n_id_owners = app->n_id_owners,
	};

	w->ctx = app->plane.ctx;
	w->config = app->config;
	w->worker = mr_workers_get(app->plane.workers, i);
	w->n_burst = app->config->plane.burst;
	w->request.answered_fd = app->answered_fd;
	if (nat_maps_create(&maps, &w->maps, ret_error) < 0 ||
	    (app->rules != NULL &&
	     nat_rules_create(w->maps, app->rules,
			      nat_offload_n_max(app->config), app->answered_fd,
			      NAT_RULE_FRAMES, ret_error) < 0))
		return 1;
	if (app->steering != NULL) {
		w->steer = nat_steer_of(app->steering, i);
		nat_steer_follow(w->steer, w->maps, app->config);
		nat_steer_record(w->steer, &w->recorder);
	}
	memcpy(path.ports, app->plane.ports, sizeof(path.ports));
	path.maps = w->maps;
	path.cache = w->worker->cache;
	path.base = mr_region_base(mr_pool_region(app->plane.pool));
	for (uint32_t s = 0; s < NAT_SIDES; s++)
		nat_path_describe_port(app->plane.ports[s], s, path.macs[s],
				       &path.mtus[s]);
	return nat_path_create(&path, &w->path, ret_error) < 0;
}

/* The worker's first queue of the outside port; false: it has none. */
static bool find_queue(const struct mr_worker *worker, uint32_t *ret_queue)
{
	for (uint32_t i = 0; i < worker->n_rxqs; i++)
		if (worker->rxqs[i].port_idx == NAT_OUTSIDE) {
			*ret_queue = worker->rxqs[i].queue_idx;
			return true;
		}
	return false;
}

/*
 * Ask the outside port to give each worker the frames to its slices of ports.
 * All or none: without it, workers hand frames over. Closing the port removes
 * the rules.
 */
static void request_steering(struct app *app)
{
	static const uint8_t protocols[] = { IPPROTO_UDP, IPPROTO_TCP };
	struct mr_port *port = app->plane.ports[NAT_OUTSIDE];
	const uint32_t n = app->n_workers;
	struct mr_reason *why = &app->not_steered;
	uint32_t ids[2 * MAX_STEERED], n_ids = 0;
	int err = 0;

	if ((n & (n - 1)) != 0 || n > MAX_STEERED)
		err = fail_with(why, -1,
				"a mask selects the ports of 2, 4, 8 or 16 "
				"workers, not of %u",
				n);
	for (uint32_t i = 0; i < 2 * n && err == 0; i++) {
		struct mr_steer_rule rule = {
			.size = sizeof(rule),
			.protocol = protocols[i % 2],
			.dst_port = (uint16_t)(i / 2 << NAT_SLICE_BITS),
			.dst_port_mask = (uint16_t)((n - 1) << NAT_SLICE_BITS),
		};

		if (!find_queue(mr_workers_get(app->plane.workers, i / 2),
				&rule.queue))
			err = fail_with(why, -1,
					"worker %u has no queue of the outside "
					"port",
					i / 2);
		else
			err = mr_port_steer(port, &rule, &ids[n_ids], why);
		n_ids += err == 0;
	}
	if (err == 0)
		return;
	while (n_ids > 0)
		(void)mr_port_unsteer(port, ids[--n_ids], NULL);
}

static int make_workers(struct app *app, struct mr_reason *ret_error)
{
	const uint32_t n = app->plane.n_workers;
	int status = 0;

	app->workers = aligned_alloc(64, n * sizeof(app->workers[0]));
	if (app->workers == NULL)
		return fail_with(ret_error, 1, "no memory for %u workers", n);
	memset(app->workers, 0, n * sizeof(app->workers[0]));
	app->n_workers = n;
	if (n > 1 &&
	    nat_steering_create(app->plane.ctx, app->plane.workers, n,
				STEER_ENTRIES, &app->steering, ret_error) < 0)
		return 1;
	for (uint32_t i = 0; i < n && status == 0; i++)
		status = make_worker(app, i, ret_error);
	/* A port that is another process's has its rules. */
	if (n > 1 && status == 0 && !app->plane.is_taken_over)
		request_steering(app);
	return status;
}

/* Frames that the driver has forwarded. */
static uint64_t count_offloaded(void *opaque)
{
	const struct app *app = opaque;
	struct nat_offload_stats stats;

	nat_offload_stats(app, &stats);
	return stats.counts.attempted;
}

static int open_capture(struct app *app, struct mr_reason *ret_error)
{
	const struct capture_config config = { .plane = &app->plane,
					       .explain = nat_path_explain,
					       .offloaded = count_offloaded,
					       .app = app };

	app->capture = capture_create(&config);
	if (app->capture == NULL)
		return fail_with(ret_error, 1, "captures: %s",
				 mr_strerror(errno));
	for (uint32_t i = 0; i < app->n_workers; i++) {
		struct nat_worker *w = &app->workers[i];

		capture_attach(app->capture, i, &w->recorder, w->path);
	}
	return 0;
}

int app_open(struct app *app, const struct options *options,
	     const struct nat_config *config, struct mr_reason *ret_error)
{
	int status;

	*app = (struct app){ .options = options, .answered_fd = -1 };
	app->config = malloc(sizeof(*config));
	if (app->config == NULL)
		return fail_with(ret_error, 1, "no memory");
	*app->config = *config;
	app->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (app->answered_fd < 0)
		return fail_with(ret_error, 1, "eventfd: %s",
				 mr_strerror(errno));
	status = nat_check(app->config, ret_error);
	if (status == 0)
		status = open_plane(app, ret_error);
	if (status == 0 && config->is_shared)
		status = share_addresses(app, ret_error);
	if (status == 0)
		status = nat_offload_open(app, ret_error);
	if (status == 0)
		status = nat_log_create(app->plane.ctx, config->log_path,
					app->plane.n_workers, &app->log,
					ret_error) < 0;
	if (status == 0)
		status = nat_neighbours_create(app->config, &app->neighbours,
					       ret_error) < 0;
	if (status == 0) {
		nat_neighbours_share(app->neighbours,
				     app->owns_rules ? app->rules : NULL);
		status = make_workers(app, ret_error);
	}
	if (status == 0)
		status = open_capture(app, ret_error);
	if (status == 0)
		status = nat_keep_create(app, &app->keep, ret_error) < 0 ||
			 (!app->plane.is_taken_over &&
			  nat_keep_restore(app->keep, ret_error) < 0);
	if (status != 0)
		app_close(app);
	return status;
}

void app_close(struct app *app)
{
	capture_destroy(app->capture);
	nat_keep_destroy(app->keep);
	nat_offload_close(app);
	for (uint32_t w = 0; w < app->n_workers; w++) {
		nat_work_forget_backlog(&app->workers[w]);
		nat_path_destroy(app->workers[w].path);
		nat_maps_destroy(app->workers[w].maps);
	}
	free(app->workers);
	nat_steering_destroy(app->steering);
	nat_neighbours_destroy(app->neighbours);
	nat_log_destroy(app->log);
	if (app->plane.ctx != NULL)
		(void)dataplane_close(&app->plane, NULL);
	if (app->answered_fd >= 0)
		close(app->answered_fd);
	app->n_workers = 0;
	nat_reload_close(app);
	*app = (struct app){ .answered_fd = -1 };
}

void app_print_steering(const struct app *app)
{
	if (app->n_workers == 1)
		print_error("steering: none; there is only one worker");
	else if (app->not_steered.text[0] == '\0')
		print_error(
			"steering: %u workers: the outside port chooses the "
			"worker of UDP and TCP by destination port; other "
			"frames, and those from inside, are handed over "
			"between workers",
			app->n_workers);
	else
		print_error("steering: %u workers; frames are handed over "
			    "between them, because %s",
			    app->n_workers, app->not_steered.text);
}

void app_give_up(void *opaque)
{
	struct app *app = opaque;

	nat_offload_close(app);
	for (uint32_t i = 0; i < app->n_workers; i++) {
		struct nat_worker *w = &app->workers[i];

		if (w->steer != NULL)
			nat_steer_give_up(w->steer, nat_path_stats(w->path));
		nat_path_give_up(w->path);
		nat_work_drop_backlog(w);
		nat_work_publish(w);
	}
	nat_keep_end(app->keep);
}

/* Sent, but still in a ring to the worker that owns the queue. */
void app_drop(struct mr_worker *worker, const struct mr_frame *frames,
	      uint32_t n, void *opaque)
{
	struct nat_worker *w = (struct nat_worker *)opaque + worker->idx;
	struct nat_stats *stats = nat_path_stats(w->path);
	const uint32_t n_frames = mr_frame_n_frames(frames, n);

	stats->drops[NAT_DROP_SHUTDOWN] += n_frames;
	mr_frame_free_bulk(worker->cache, frames, n);
}

static const char *side_name(uint32_t side)
{
	return side == NAT_INSIDE ? "inside" : "outside";
}

/* The neighbours of a link may be others now, and must learn our address. */
static void take_link(struct app *app, uint32_t port_idx)
{
	struct mr_link link;

	nat_neighbours_doubt(app->neighbours, port_idx);
	if (mr_port_link(app->plane.ports[port_idx], &link) < 0 || !link.is_up)
		return;
	for (uint32_t i = 0; i < app->n_workers; i++) {
		nat_path_announce(app->workers[i].path);
		mr_worker_wake(app->workers[i].worker);
	}
}

void app_port_event(void *opaque, uint32_t port_idx, uint32_t events)
{
	struct app *app = opaque;
	uint8_t mac[6];
	uint16_t mtu;

	if (events & MR_PORT_EVENT_LINK)
		take_link(app, port_idx);
	if ((events & (MR_PORT_EVENT_MTU | MR_PORT_EVENT_MAC)) == 0)
		return;
	nat_path_describe_port(app->plane.ports[port_idx], port_idx, mac, &mtu);
	for (uint32_t i = 0; i < app->n_workers; i++) {
		nat_path_set_port(app->workers[i].path, port_idx, mac, mtu);
		mr_worker_wake(app->workers[i].worker);
	}
	nat_offload_follow(app);
	if (events & MR_PORT_EVENT_MAC)
		print_error("mr-nat: %s port: MAC address %s: announced to its "
			    "link",
			    side_name(port_idx), text_of_mac(mac).text);
}

/* Close the rules, which cannot outlive a port. */
void app_port_closing(void *opaque, uint32_t port_idx)
{
	struct app *app = opaque;

	if (app->rules != NULL)
		print_error("mr-nat: %s port: opening it again: offload is "
			    "off from now on",
			    side_name(port_idx));
	nat_offload_close(app);
}

void app_port_opened(void *opaque, uint32_t port_idx)
{
	struct app *app = opaque;
	struct mr_reason why;

	if (app->config->is_shared &&
	    mr_port_open_kernel(app->plane.ports[port_idx], &why) < 0)
		print_error("mr-nat: %s port: local: kernel: %s",
			    side_name(port_idx), why.text);
	if (port_idx == NAT_OUTSIDE && app->n_workers > 1 &&
	    app->not_steered.text[0] == '\0') {
		request_steering(app);
		if (app->not_steered.text[0] != '\0')
			app_print_steering(app);
	}
	app_port_event(app, port_idx,
		       MR_PORT_EVENT_LINK | MR_PORT_EVENT_MAC |
			       MR_PORT_EVENT_MTU);
}

void app_each_second(void *opaque)
{
	struct app *app = opaque;

	nat_log_write(app->log);
	nat_answers_ready(app);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a tester: ports and places, their queues dealt to threads, and the
 * simulated device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "live/live.h"
#include "net/tester.h"
#include "stream/stream.h"

enum {
	LINK_STEP_MS = 10,
	DEFAULT_PAGE_BYTES = 4096,
	/* For interfaces that only receive: the size of a ring, of the rings of
	 * all queues together, and the default size of a port. */
	DEEP_RING = 16384,
	DEEP_ENTRIES = 32768,
	USUAL_RING = 2048,
};

static bool is_place(const char *spec)
{
	return strncmp(spec, live_place.prefix, strlen(live_place.prefix)) == 0;
}

static bool is_pair(const char *spec)
{
	return strncmp(spec, "pair:", 5) == 0;
}

/* The number of the port with this spec; a new one if there is none. */
static uint32_t number_of(struct tester *tester, const char *spec)
{
	for (uint32_t i = 0; i < tester->n_ports; i++)
		if (strcmp(tester->specs[i], spec) == 0)
			return i;
	tester->specs[tester->n_ports] = spec;
	return tester->n_ports++;
}

static int list_ports(struct tester *tester, const struct tester_config *config,
		      struct mr_reason *why)
{
	/* The front end checks them. */
	if (config->n_tx + config->n_rx == 0 ||
	    config->n_tx + config->n_rx > MAX_PORTS / 2)
		return fail_with(why, 2, "%u ports",
				 config->n_tx + config->n_rx);
	for (uint32_t i = 0; i < config->n_tx; i++) {
		const char *spec = config->tx[i];

		/* Places are opened later, when there is a context. */
		tester->tx[tester->n_tx++] =
			is_place(spec) ? UINT32_MAX : number_of(tester, spec);
	}
	for (uint32_t i = 0; i < config->n_rx; i++) {
		const char *spec = config->rx[i];

		/* The second pair:x is the other end of the first. */
		if (i < config->n_tx && is_pair(spec) &&
		    strcmp(spec, config->tx[i]) == 0) {
			tester->specs[tester->n_ports] = spec;
			tester->rx[tester->n_rx++] = tester->n_ports++;
			continue;
		}
		tester->rx[tester->n_rx++] = number_of(tester, spec);
	}
	return 0;
}

static uint32_t count_places(const struct tester *tester)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < tester->n_tx; t++)
		n += tester->tx[t] >= tester->n_ports;
	return n;
}

/* A place needs a thread of its own. Ports have one thread that sends and one
 * that receives if there are two cores, or a single thread that does both. */
static int choose_workers(const struct tester *tester,
			  struct dataplane_config *plane, struct mr_reason *why)
{
	const uint32_t n_places = count_places(tester);
	const uint32_t n_least = n_places + (tester->n_ports > 0);
	const uint32_t n_asked =
		plane->n_workers > 0 ? plane->n_workers : plane->n_cores;

	if (tester->config.is_virtual)
		plane->n_workers = 1;
	else if (n_places > 0 && n_asked == 0)
		plane->n_workers = n_least;
	else if (n_asked == 0 && tester->n_tx > 0 && tester->n_rx > 0 &&
		 sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		plane->n_workers = 2;
		plane->may_be_fewer = true;
	}
	if (n_places > 0 && n_asked > 0 && n_asked < n_least)
		return fail_with(why, 2,
				 "%u threads are too few: each live: port "
				 "needs its own; --workers %u",
				 n_asked, n_least);
	return 0;
}

/* By default, a NIC has a queue per core. */
static uint32_t most_queues(const struct dataplane_config *plane)
{
	return plane->port.n_queues > 0 ?
		       plane->port.n_queues :
		       (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Frames that senders have built and not yet sent, at most. */
static uint32_t most_built(const struct tester *tester,
			   const struct dataplane_config *plane)
{
	const uint32_t n = tester->n_tx * most_queues(plane);

	return (n < MAX_SENDERS ? n : MAX_SENDERS) * plane->burst;
}

static bool is_interface(const char *spec)
{
	return strncmp(spec, "xdp:", 4) == 0 || strchr(spec, ':') == NULL;
}

static bool is_sending(const struct tester *tester, uint32_t port)
{
	for (uint32_t t = 0; t < tester->n_tx; t++)
		if (tester->tx[t] == port)
			return true;
	return false;
}

/*
 * A receiver that does not run for some milliseconds, as happens now and then
 * in a virtual machine, loses the frames that its rings have no room for, and
 * they would count as the device's loss. So the rings are deep unless the user
 * chose their size.
 */
static void deepen_rings(const struct tester *tester,
			 struct dataplane_config *plane, const char **specs,
			 char (*deep)[MAX_SPEC_BYTES])
{
	uint32_t n = DEEP_RING;

	if (plane->port.n_ring != 0 || plane->n_pages != 0)
		return; /* the user chose it, or the number of pages */
	while (n > USUAL_RING && n * most_queues(plane) > DEEP_ENTRIES)
		n /= 2;
	for (uint32_t i = 0; i < tester->n_ports; i++) {
		const char *spec = tester->specs[i];

		if (n == USUAL_RING || !is_interface(spec) ||
		    is_sending(tester, i) || strstr(spec, ",ring=") != NULL ||
		    strlen(spec) > MAX_SPEC_BYTES - sizeof(",ring=12345"))
			continue;
		snprintf(deep[i], sizeof(deep[i]), "%s,ring=%u", spec, n);
		specs[i] = deep[i];
	}
}

static int open_plane(struct tester *tester, struct mr_reason *why)
{
	struct dataplane_config plane = tester->config.plane;
	const uint32_t n_device = tester->config.device != NULL ? 2 : 0;
	char deep[MAX_PORTS][MAX_SPEC_BYTES];
	const char *specs[MAX_PORTS];
	int status;

	plane.specs = specs;
	plane.n_ports = tester->n_ports + n_device;
	if (plane.burst == 0)
		plane.burst = DEFAULT_BURST;
	if (plane.page_bytes == 0)
		plane.page_bytes = DEFAULT_PAGE_BYTES;
	status = choose_workers(tester, &plane, why);
	if (status != 0)
		return status;
	/* Workers need a port; live: alone gets one that does nothing. */
	if (plane.n_ports == 0) {
		tester->specs[0] = "null:";
		plane.n_ports = 1;
	}
	memcpy(specs, tester->specs, sizeof(specs));
	deepen_rings(tester, &plane, specs, deep);
	if (n_device > 0)
		plane.n_kept_pages += 2 * device_max_held(&tester->device);
	plane.n_kept_pages += most_built(tester, &plane);
	tester->config.plane.burst = plane.burst;
	return dataplane_open(&tester->plane, &plane, why);
}

static int check_link(const struct tester *tester, uint32_t i,
		      struct mr_reason *why)
{
	struct mr_port_info info;
	struct mr_link link;

	tester_port(tester, i, &info, &link);
	if (link.is_up)
		return 0;
	return fail_with(
		why, 1, "%s: its link is down%s", info.name,
		is_pair(info.name) ?
			": its other end is not open" :
			"; check its cable, and whether its peer is up");
}

static bool is_up(const struct tester *tester, uint32_t i)
{
	struct mr_port_info info;
	struct mr_link link;

	tester_port(tester, i, &info, &link);
	return link.is_up || link.is_gone || is_pair(info.name);
}

/* Opening a port resets many NICs, and frames sent without a link are lost, so
 * wait for the links of all ports. */
static void wait_for_links(const struct tester *tester)
{
	const struct timespec step = { .tv_nsec = LINK_STEP_MS * 1000000 };
	const struct dataplane *plane = &tester->plane;

	for (int t = 0; t < LINK_WAIT_MS / LINK_STEP_MS; t++) {
		uint32_t n_up = 0;

		for (uint32_t p = 0; p < plane->n_ports; p++)
			mr_port_poll(plane->ports[p]);
		for (uint32_t i = 0; i < tester_n_ports(tester); i++)
			n_up += is_up(tester, i);
		if (n_up == tester_n_ports(tester))
			return;
		nanosleep(&step, NULL);
	}
}

static int check_ports(struct tester *tester, struct mr_reason *why)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	const struct dataplane *plane = &tester->plane;
	int status = 0;

	mr_pool_stats(plane->pool, &stats);
	tester->base = mr_region_base(mr_pool_region(plane->pool));
	tester->page_bytes = stats.page_bytes;
	tester->headroom_bytes = stats.headroom_bytes;
	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(plane->ports[p], &info);
		if (tester->config.device != NULL &&
		    (info.n_rxqs > 1 || info.has_sg))
			return fail_with(
				why, 2,
				"--device: %s must have one queue, without sg",
				info.name);
	}
	wait_for_links(tester);
	for (uint32_t i = 0; i < tester_n_ports(tester) && status == 0; i++)
		status = check_link(tester, i, why);
	for (uint32_t p = 0; p < tester->n_ports; p++)
		(void)mr_port_subscribe(plane->ports[p], tester_port_event,
					tester);
	tester_read_macs(tester);
	return status;
}

/* Returns 0, or the exit status: too many queues. */
static int find_queues(struct tester *tester, struct mr_reason *why)
{
	const uint32_t burst = tester->config.plane.burst;

	for (uint32_t t = 0; t < tester->n_tx; t++) {
		struct mr_port *port;
		struct mr_txq *txq;

		if (tester->tx[t] >= tester->n_ports)
			continue;
		port = tester->plane.ports[tester->tx[t]];
		for (uint32_t q = 0; (txq = mr_port_txq(port, q)) != NULL;
		     q++) {
			struct sender *sender =
				&tester->senders[tester->n_senders];

			if (tester->n_senders == MAX_SENDERS)
				return fail_with(why, 2,
						 "more than %d tx queues; "
						 "--queues makes fewer",
						 MAX_SENDERS);
			tester->sender_port[tester->n_senders++] = t;
			sender->config.txq = txq;
		}
	}
	for (uint32_t r = 0; r < tester->n_rx; r++) {
		struct mr_port *port = tester->plane.ports[tester->rx[r]];
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_rxq *rxq;

		mr_port_info(port, &info);
		for (uint32_t q = 0; (rxq = mr_port_rxq(port, q)) != NULL;
		     q++) {
			if (tester->n_receivers == MAX_RECEIVERS)
				return fail_with(why, 2,
						 "more than %d rx queues; "
						 "--queues makes fewer",
						 MAX_RECEIVERS);
			tester->receiver_port[tester->n_receivers] = r;
			tester->receivers[tester->n_receivers].has_times =
				(info.offloads & MR_OFFLOAD_TIME_RX) != 0;
			/* A burst must have room for a whole frame. */
			tester->receivers[tester->n_receivers].burst =
				info.has_sg && burst < MR_MAX_SEGS ?
					MR_MAX_SEGS :
					burst;
			tester->receivers[tester->n_receivers++].rxq = rxq;
		}
	}
	return 0;
}

/* Deal senders, then receivers, to the threads in turn. With as many threads as
 * queues, each thread has one. */
static void deal_queues(struct tester *tester)
{
	const uint32_t n_workers = tester->plane.n_workers - tester->n_places;
	uint32_t w = 0;

	for (uint32_t i = 0; i < tester->n_places; i++)
		tester->seats[n_workers + i].place = &tester->places[i];

	for (uint32_t i = 0; i < tester->n_senders; i++, w++) {
		struct seat *seat = &tester->seats[w % n_workers];
		struct sender *sender = &tester->senders[i];

		sender->config.cache =
			mr_workers_get(tester->plane.workers, w % n_workers)
				->cache;
		sender->config.base = tester->base;
		sender->config.burst = tester->config.plane.burst;
		sender->config.headroom_bytes = tester->headroom_bytes;
		seat->senders[seat->n_senders++] = sender;
	}
	for (uint32_t i = 0; i < tester->n_receivers; i++, w++) {
		struct seat *seat = &tester->seats[w % n_workers];
		struct receiver *receiver = &tester->receivers[i];

		receiver->cache =
			mr_workers_get(tester->plane.workers, w % n_workers)
				->cache;
		receiver->base = tester->base;
		receiver->clock = &tester->clock;
		seat->receivers[seat->n_receivers++] = receiver;
	}
	tester->seats[0].has_device = tester->config.device != NULL;
}

static void *make_zeroed(size_t n, size_t n_bytes)
{
	void *memory = aligned_alloc(64, n * n_bytes);

	if (memory != NULL)
		memset(memory, 0, n * n_bytes);
	return memory;
}

static int make_parts(struct tester *tester, struct mr_reason *why)
{
	int status;

	tester->seats =
		make_zeroed(tester->plane.n_workers, sizeof(struct seat));
	tester->senders = make_zeroed(MAX_SENDERS, sizeof(struct sender));
	tester->receivers = make_zeroed(MAX_RECEIVERS, sizeof(struct receiver));
	tester->so_far = calloc(1, sizeof(*tester->so_far));
	if (tester->seats == NULL || tester->senders == NULL ||
	    tester->receivers == NULL || tester->so_far == NULL)
		return fail_with(why, 1, "no memory for the tester");
	for (uint32_t w = 0; w < tester->plane.n_workers; w++)
		tester->seats[w].tester = tester;
	status = find_queues(tester, why);
	if (status != 0)
		return status;
	tester->n_sources = tester->n_senders + tester->n_places;
	if (tester->n_sources > MAX_SENDERS)
		return fail_with(why, 2, "more than %d tx queues and places",
				 MAX_SENDERS);
	deal_queues(tester);
	if (tester->config.device == NULL)
		return 0;
	for (uint32_t i = 0; i < 2; i++) {
		struct crossing *crossing = &tester->crossings[i];
		struct mr_port *const *ports = tester->plane.ports;

		if (device_open(&tester->device, tester->base,
				&crossing->device, why) < 0)
			return 1;
		crossing->from = mr_port_rxq(ports[2 + i], 0);
		crossing->to = mr_port_txq(ports[3 - i], 0);
		tester->n_crossings++;
	}
	return 0;
}

static int open_place(struct tester *tester, const char *spec, uint32_t t,
		      struct mr_reason *why)
{
	struct sending_place *at = &tester->places[tester->n_places];
	struct mr_reason said;
	int err;

	if (tester->n_places == MAX_PLACES)
		return fail_with(why, 2, "more than %d ports such as %s",
				 MAX_PLACES, spec);
	*at = (struct sending_place){ .ops = &live_place, .t = t };
	err = at->ops->open(tester->plane.ctx, spec, &at->place, &said);
	if (err < 0)
		return fail_with(why, err == -EINVAL ? 2 : 1, "%s", said.text);
	tester->tx[t] = tester->n_ports + tester->n_places++;
	return 0;
}

static int open_all(struct tester *tester, struct mr_reason *why)
{
	const struct tester_config *config = &tester->config;
	int status = list_ports(tester, config, why);

	/* The simulated device opens the other ends of two pair: ports. */
	if (status == 0 && config->device != NULL) {
		tester->device = *config->device;
		tester->specs[2] = tester->specs[0];
		tester->specs[3] = tester->specs[1];
	}
	if (status == 0)
		status = open_plane(tester, why);
	for (uint32_t t = 0; t < tester->n_tx && status == 0; t++)
		if (tester->tx[t] >= tester->n_ports)
			status = open_place(tester, config->tx[t], t, why);
	if (status == 0)
		status = check_ports(tester, why);
	if (status == 0)
		status = make_parts(tester, why);
	if (status == 0)
		status = tester_set_streams(tester, config->frame_bytes,
					    !config->is_unstamped, why);
	return status;
}

/* The kernel's times are those of CLOCK_MONOTONIC, from which the counter
 * drifts by about a millionth, and more while NTP corrects it. */
static bool has_kernel_times(const struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_receivers; i++)
		if (tester->receivers[i].has_times)
			return true;
	return tester->n_places > 0;
}

int tester_open(const struct tester_config *config, struct tester **ret,
		struct mr_reason *why)
{
	struct tester *tester = calloc(1, sizeof(*tester));
	int status;

	if (tester == NULL)
		return fail_with(why, 1, "no memory for the tester");
	if (ending_open(why) < 0) {
		free(tester);
		return 1;
	}
	tester->config = *config;
	status = open_all(tester, why);
	if (status != 0) {
		for (uint32_t i = 0; i < tester->n_crossings; i++)
			device_close(tester->crossings[i].device, NULL);
		tester_free(tester);
		return status;
	}
	clock_open(&tester->clock, config->is_virtual);
	if (has_kernel_times(tester))
		clock_use_kernel(&tester->clock);
	*ret = tester;
	return 0;
}

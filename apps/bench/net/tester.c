/* SPDX-License-Identifier: BSD-3-Clause */
/* Closes a tester, sets its streams up, and answers questions about it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/mac.h"
#include "net/tester.h"
#include "stream/compiled.h"
#include "support/signals.h"
#include "support/text.h"

/* Link speed of memory ports under a virtual clock. */
enum { VIRTUAL_MBPS = 10000 };

/*
 * Signals that end the program. They arrive through an fd, so that they
 * interrupt nothing; the second one ends the program at once. They belong to
 * the process, and so do these.
 */
static int signal_fd = -1;
static bool is_ending;

int ending_open(struct mr_reason *ret_why)
{
	if (signal_fd < 0)
		signal_fd = signals_open(ret_why);
	return signal_fd;
}

bool tester_is_ending(void)
{
	sigset_t set;

	if (is_ending || signal_fd < 0 ||
	    signals_take(signal_fd) != SIGNALS_END)
		return is_ending;
	is_ending = true;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return true;
}

uint64_t tester_n_pending(const struct tester *tester)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	uint64_t n = 0;

	for (uint32_t i = 0; i < tester->n_senders; i++) {
		mr_txq_stats(tester->senders[i].config.txq, &stats);
		n += stats.pending;
	}
	return n;
}

void tester_port_event(void *opaque, struct mr_port *port, uint32_t events)
{
	struct tester *tester = opaque;

	for (uint32_t p = 0; p < tester->n_ports; p++)
		if (tester->plane.ports[p] == port &&
		    (events & MR_PORT_EVENT_MAC) != 0)
			mac_follow(port, tester->plane.program,
				   "frames now use it", &tester->macs[p]);
}

void tester_read_macs(struct tester *tester)
{
	struct mr_port_info info;
	struct mr_link link;

	for (uint32_t p = 0; p < tester_n_ports(tester); p++) {
		if (p < tester->n_ports)
			mr_port_poll(tester->plane.ports[p]);
		tester_port(tester, p, &info, &link);
		tester->macs[p] = 0;
		if (info.has_mac)
			memcpy(&tester->macs[p], info.mac, sizeof(info.mac));
	}
}

static const uint64_t *mac_or_none(const uint64_t *mac)
{
	return *mac != 0 ? mac : NULL;
}

void tester_choose_macs(const struct tester *tester, uint32_t t,
			const uint64_t *ret[2])
{
	ret[1] = mac_or_none(&tester->macs[tester->tx[t]]);
	ret[0] = tester->config.has_dst_mac || t >= tester->n_rx ||
				 tester->rx[t] == tester->tx[t] ?
			 NULL :
			 mac_or_none(&tester->macs[tester->rx[t]]);
}

/* Choose the destinations that the user did not. With a single port, a
 * reflector returns the frames; the address is then one that nobody has, which
 * switches flood like a group address. */
static void choose_defaults(const struct tester *tester, uint32_t t,
			    struct stream_defaults *defaults)
{
	static const uint8_t ours[6] = { 2, 'm', 'r', 0, 0, 1 };
	static const uint8_t nobody[6] = { 2, 'm', 'r', 0, 0, 2 };
	const uint64_t *macs[2];

	memcpy(defaults->src_mac, ours, 6);
	memset(defaults->dst_mac, 0xff, 6);
	if (tester->config.has_dst_mac)
		memcpy(defaults->dst_mac, tester->config.dst_mac, 6);
	else if (t < tester->n_rx && tester->rx[t] == tester->tx[t])
		memcpy(defaults->dst_mac, nobody, 6);
	tester_choose_macs(tester, t, macs);
	if (macs[0] != NULL)
		memcpy(defaults->dst_mac, macs[0], 6);
	if (macs[1] != NULL)
		memcpy(defaults->src_mac, macs[1], 6);
}

static void forget_streams(struct tester *tester)
{
	for (uint32_t t = 0; t < MAX_PORTS; t++) {
		streams_free(tester->streams[t]);
		tester->streams[t] = NULL;
	}
}

int tester_set_streams(struct tester *tester, uint32_t frame_bytes,
		       bool is_stamped, struct mr_reason *why)
{
	const struct tester_config *config = &tester->config;
	struct stream_defaults defaults = {
		.frame_bytes = frame_bytes,
		.is_stamped = is_stamped,
		.has_unstamped = config->has_unstamped,
		.magic = tester->magic,
		.run = tester->run,
	};
	const uint32_t n_sets = tester->n_tx > 0 ? tester->n_tx : 1;
	struct mr_reason said;

	forget_streams(tester);
	for (uint32_t t = 0; t < n_sets; t++) {
		const uint32_t room =
			tester->page_bytes - tester->headroom_bytes;
		int err;

		if (t < tester->n_tx)
			choose_defaults(tester, t, &defaults);
		err = streams_make(config->streams, &defaults,
				   &tester->streams[t], &said);
		if (err < 0)
			return fail_with(why, err == -EINVAL ? 2 : 1, "%s",
					 said.text);
		if (tester->streams[t]->max_bytes > room)
			return fail_with(why, 2,
					 "frames of %u bytes do not fit pages "
					 "of %u with a headroom of %u; "
					 "--page-bytes makes larger ones",
					 tester->streams[t]->max_bytes,
					 tester->page_bytes,
					 tester->headroom_bytes);
	}
	return 0;
}

static void close_places(struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_places; i++)
		tester->places[i].ops->close(tester->places[i].place);
	tester->n_places = 0;
}

void tester_free(struct tester *tester)
{
	forget_streams(tester);
	close_places(tester);
	(void)dataplane_close(&tester->plane, NULL);
	free(tester->so_far);
	free(tester->receivers);
	free(tester->senders);
	free(tester->seats);
	free(tester);
}

static int print_why(const struct tester *tester, const char *text)
{
	print_error("%s: %s", tester->plane.program, text);
	return 1;
}

/* The invariants of <millrace/port.h>. */
static bool do_invariants_hold(const struct tester *tester, char *ret,
			       size_t n_bytes)
{
	for (uint32_t p = 0; p < tester->plane.n_ports; p++) {
		struct mr_port *port = tester->plane.ports[p];
		struct mr_rx_stats rx = { .size = sizeof(rx) };
		struct mr_tx_stats tx = { .size = sizeof(tx) };
		struct mr_rxq *rxq;
		struct mr_txq *txq;

		for (uint32_t q = 0; (rxq = mr_port_rxq(port, q)) != NULL;
		     q++) {
			mr_rxq_stats(rxq, &rx);
			for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
				rx.delivered += rx.drops[i];
			if (rx.received ==
			    rx.delivered + rx.offloaded + rx.passed_to_kernel)
				continue;
			snprintf(ret, n_bytes,
				 "accounting: port %u, rx queue %u", p, q);
			return false;
		}
		for (uint32_t q = 0; (txq = mr_port_txq(port, q)) != NULL;
		     q++) {
			mr_txq_stats(txq, &tx);
			for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
				tx.completed += tx.drops[i];
			if (tx.accepted == tx.completed + tx.pending)
				continue;
			snprintf(ret, n_bytes,
				 "accounting: port %u, tx queue %u", p, q);
			return false;
		}
	}
	return true;
}

int tester_close(struct tester *tester)
{
	struct dataplane *plane = &tester->plane;
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_cache *cache = mr_workers_get(plane->workers, 0)->cache;
	char text[80];
	int status = 0;

	/* A thread still uses the memory; the kernel frees what the process
	 * holds. */
	if (tester->is_hung)
		_exit(1);
	for (uint32_t i = 0; i < tester->n_crossings; i++)
		device_close(tester->crossings[i].device, cache);
	/* Senders own their queues, so the hand-off rings are empty. */
	mr_dataplane_drain(plane->open, DATAPLANE_DRAIN_MS, NULL, NULL);
	if (!do_invariants_hold(tester, text, sizeof(text)))
		status = print_why(tester, text);
	dataplane_close_ports(plane);
	mr_pool_stats(plane->pool, &stats);
	if (stats.n_free != stats.n_pages) {
		snprintf(text, sizeof(text),
			 "%llu of %llu pages did not come back",
			 (unsigned long long)(stats.n_pages - stats.n_free),
			 (unsigned long long)stats.n_pages);
		status = print_why(tester, text);
	}
	tester_free(tester);
	return status;
}

/* The number of senders of a port; each has an equal part of the rate. */
static uint32_t n_senders_of(const struct tester *tester, uint32_t t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < tester->n_senders; i++)
		n += tester->sender_port[i] == t;
	return n;
}

double tester_line_bps(const struct tester *tester)
{
	double mbps = 0;

	for (uint32_t t = 0; t < tester->n_tx; t++) {
		struct mr_link link = { .speed_mbps = VIRTUAL_MBPS };
		double all;

		if (!tester->config.is_virtual &&
		    (tester->tx[t] >= tester->n_ports ||
		     mr_port_link(tester->plane.ports[tester->tx[t]], &link) <
			     0 ||
		     link.speed_mbps == 0))
			return 0;
		/* The rate of all ports when this one is full. */
		all = (double)link.speed_mbps * tester->n_sources /
		      n_senders_of(tester, t);
		if (t == 0 || all < mbps)
			mbps = all;
	}
	return mbps * 1e6;
}

uint32_t tester_n_ports(const struct tester *tester)
{
	return tester->n_ports + tester->n_places;
}

void tester_port(const struct tester *tester, uint32_t i,
		 struct mr_port_info *ret_info, struct mr_link *ret_link)
{
	*ret_info = (struct mr_port_info){ .size = sizeof(*ret_info) };
	if (i >= tester->n_ports) {
		const struct sending_place *at =
			&tester->places[i - tester->n_ports];

		at->ops->info(at->place, ret_info);
		at->ops->link(at->place, ret_link);
		return;
	}
	mr_port_info(tester->plane.ports[i], ret_info);
	if (mr_port_link(tester->plane.ports[i], ret_link) < 0)
		*ret_link = (struct mr_link){ .is_up = 1 };
}

uint32_t tester_cores(const struct tester *tester, uint32_t *ret_cores,
		      uint32_t room)
{
	const uint32_t n = tester->plane.n_workers;

	for (uint32_t w = 0; w < n && w < room; w++)
		ret_cores[w] = mr_workers_get(tester->plane.workers, w)->core;
	return n;
}

void tester_print_map(const struct tester *tester)
{
	for (uint32_t p = 0; p < tester_n_ports(tester); p++) {
		struct mr_port_info info;
		struct mr_link link;

		tester_port(tester, p, &info, &link);
		dataplane_print_port(&info);
	}
	for (uint32_t w = 0; w < tester->plane.n_workers; w++) {
		const struct seat *seat = &tester->seats[w];
		const struct mr_worker *worker =
			mr_workers_get(tester->plane.workers, w);

		if (seat->place != NULL) {
			print_error("thread %u on core %u: in the kernel", w,
				    worker->core);
			continue;
		}
		print_error("thread %u on core %u: sends on %u queues, "
			    "receives on %u",
			    w, worker->core, seat->n_senders,
			    seat->n_receivers);
	}
}

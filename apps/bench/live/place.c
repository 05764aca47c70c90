/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender in the kernel, as a place of the tester. */
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/live.h"
#include "stream/compiled.h"
#include "stream/stream.h"
#include "support/specs.h"

enum {
	PREFIX_CHARS = sizeof("live:") - 1,
	/* What the kernel allows above the MTU: an Ethernet header and a VLAN
	 * tag (xdp_ok_fwd_dev()). */
	MORE_THAN_MTU = 18,
	MOST_GAP_S = 60, /* less is no rate, but a wrong unit */
	/* The longest gap of Poisson's is 7.6 times that; it is kept in 64 bits
	 * as 2^-12 ns. */
	MOST_MEAN_GAP_S = 8,
	MOST_LAG_S = 86400, /* live_due_before() knows no longer ones */
};

struct place {
	char name[PREFIX_CHARS + IF_NAMESIZE];
	struct live *live;        /* NULL: before the first trial */
	struct live_shape *shape; /* that it was loaded with */
	struct live_orders orders;
	int socket_fd; /* for questions about the interface */
};

static const char *ifname_of(const struct place *place)
{
	return place->name + PREFIX_CHARS;
}

static int ask_interface(const struct place *place, unsigned long what,
			 struct ifreq *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->ifr_name, ifname_of(place), strlen(ifname_of(place)));
	return ioctl(place->socket_fd, what, ret) < 0 ? -errno : 0;
}

static void place_close(struct place *place)
{
	if (place == NULL)
		return;
	live_close(place->live);
	if (place->socket_fd >= 0)
		close(place->socket_fd);
	free(place->shape);
	free(place);
}

static int fail_place(struct mr_reason *why, int err, const char *spec,
		      const char *text)
{
	snprintf(why->text, sizeof(why->text), "%.60s: %s", spec, text);
	return err;
}

static int place_open(struct mr_ctx *ctx, const char *spec, struct place **ret,
		      struct mr_reason *why)
{
	const char *ifname = spec + PREFIX_CHARS;
	struct place *place;

	(void)ctx;
	if (ifname[0] == '\0' || strlen(ifname) >= IF_NAMESIZE)
		return fail_place(
			why, -EINVAL, spec,
			"give the name of an interface, such as live:eth0");
	if (if_nametoindex(ifname) == 0)
		return fail_place(why, -ENODEV, spec,
				  "no such network interface here");
	place = calloc(1, sizeof(*place));
	if (place == NULL)
		return fail_place(why, -ENOMEM, spec, "no memory");
	snprintf(place->name, sizeof(place->name), "%s", spec);
	place->socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (place->socket_fd < 0) {
		place_close(place);
		return fail_place(why, -errno, spec, "no socket");
	}
	*ret = place;
	return 0;
}

/* Streams are fixed when the program is loaded. */
static int load_streams(struct place *place, const struct streams *streams,
			const struct send_orders *orders, struct mr_reason *why)
{
	struct live_shape *shape = calloc(1, sizeof(*shape));
	int err;

	if (shape == NULL)
		return fail_place(why, -ENOMEM, place->name, "no memory");
	err = live_shape_of(streams, orders->sender, orders->n_senders,
			    orders->seed, shape, why);
	if (err == 0 && place->live != NULL &&
	    memcmp(shape, place->shape, sizeof(*shape)) == 0) {
		free(shape); /* as the last trial's */
		return 0;
	}
	if (err == 0) {
		live_close(place->live);
		place->live = NULL;
		err = live_open(ifname_of(place), shape, &place->live, why);
	}
	if (err < 0) {
		free(shape);
		return err;
	}
	free(place->shape);
	place->shape = shape;
	return 0;
}

/* An equal part of what all senders do; the first senders do the rest. */
static uint64_t share_of(uint64_t n, const struct send_orders *orders)
{
	return n / orders->n_senders + (orders->sender < n % orders->n_senders);
}

static int place_info(const struct place *place, struct mr_port_info *ret)
{
	struct ifreq request;
	struct mr_port_info info = { .size = sizeof(info),
				     .n_txqs = 1,
				     .numa_node = -1,
				     .mode = "live" };

	snprintf(info.name, sizeof(info.name), "%s", place->name);
	if (ask_interface(place, SIOCGIFMTU, &request) == 0)
		info.mtu_bytes = (uint32_t)request.ifr_mtu;
	if (ask_interface(place, SIOCGIFHWADDR, &request) == 0) {
		memcpy(info.mac, request.ifr_hwaddr.sa_data, 6);
		info.has_mac = 1;
	}
	*ret = info;
	return 0;
}

/* The gap is that of one sender, because all share the rate. */
static int check_gap(const struct place *place,
		     const struct send_orders *orders, double gap_ns,
		     struct mr_reason *why)
{
	const int most_s =
		orders->pace == PACE_POISSON ? MOST_MEAN_GAP_S : MOST_GAP_S;

	if (gap_ns < 1e9 * most_s)
		return 0;
	return fail_with(
		why, -EINVAL,
		"%s: frames of a sender are due %d seconds or more "
		"apart: give a higher --rate%s",
		place->name, most_s,
		orders->pace == PACE_BURSTS ? ", or fewer --pace-frames" : "");
}

static int place_begin(struct place *place, const struct streams *streams,
		       const struct send_orders *orders, struct mr_reason *why)
{
	const uint32_t burst =
		orders->pace == PACE_BURSTS ? orders->burst_frames : 1;
	const double gap_ns = orders->pps > 0 ? orders->n_senders * burst *
							1e9 / orders->pps :
						0;
	struct mr_port_info info;
	int err = check_gap(place, orders, gap_ns, why);

	if (err < 0)
		return err;
	if (orders->max_lag_ns > 1000000000ull * MOST_LAG_S)
		return fail_place(why, -EINVAL, place->name,
				  "--max-lag of more than a day");
	place->orders = (struct live_orders){
		.origin_ns = clock_origin_ns(orders->clock),
		/* Senders take turns. */
		.begin_ns =
			orders->start_ns +
			(uint64_t)(gap_ns * orders->sender / orders->n_senders),
		.end_ns = orders->end_ns == UINT64_MAX ? 0 : orders->end_ns,
		.n_frames = orders->n_frames == UINT64_MAX ?
				    0 :
				    share_of(orders->n_frames, orders),
		.gap = (uint64_t)llround(gap_ns * (1 << 16)),
		.max_lag_ns = orders->max_lag_ns,
		.burst_frames = burst,
		.pace = orders->pace == PACE_POISSON ? LIVE_POISSON :
						       LIVE_CONSTANT,
		.magic = streams->magic,
		.run = streams->run,
	};
	err = load_streams(place, streams, orders, why);
	if (err < 0)
		return err;
	place_info(place, &info);
	if (info.mtu_bytes > 0 &&
	    streams_max_bytes(streams) > info.mtu_bytes + MORE_THAN_MTU)
		return fail_place(why, -EINVAL, place->name,
				  "frames are longer than its MTU allows");
	live_ready(place->live);
	return 0;
}

static int place_run(struct place *place, struct mr_reason *why)
{
	return live_run(place->live, &place->orders, why);
}

static void place_stop(struct place *place)
{
	live_stop(place->live);
}

static void fill_lateness(const struct place *place,
			  const struct live_counts *counts, struct hist *hist)
{
	const uint64_t *from = live_lateness(place->live);

	*hist = (struct hist){ .max = counts->late_max_ns };
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		const double ns = (double)hist_low(i);

		if (from[i] == 0)
			continue;
		if (hist->n == 0)
			hist->min = hist_low(i);
		hist->counts[i] = from[i];
		hist->n += from[i];
		hist->sum += ns * (double)from[i];
		hist->sum_sq += ns * ns * (double)from[i];
	}
	if (counts->late_max_ns >> HIST_VALUE_BITS != 0)
		hist->n_over = hist->counts[HIST_BUCKETS - 1];
}

static void place_counts(const struct place *place, struct send_counts *ret,
			 struct hist *lateness)
{
	struct live_counts counts;

	*ret = (struct send_counts){ .sent = 0 };
	if (place->live == NULL)
		return;
	live_read(place->live, &counts);
	/* Frames that the device cannot send at all have not left. */
	ret->sent = counts.n_passed - counts.n_no_way;
	ret->unsent = counts.n_unsent + counts.n_no_way;
	ret->refused = counts.n_refused;
	ret->bytes = counts.n_bytes;
	ret->last_ns = counts.last_ns;
	if (lateness != NULL)
		fill_lateness(place, &counts, lateness);
}

static uint64_t place_n_sent(const struct place *place, uint32_t stream)
{
	struct live_counts counts;

	if (place->live == NULL || stream >= LIVE_MAX_STREAMS)
		return 0;
	live_read(place->live, &counts);
	return counts.by_stream[stream];
}

static int place_link(const struct place *place, struct mr_link *ret)
{
	struct ifreq request;
	const int err = ask_interface(place, SIOCGIFFLAGS, &request);

	*ret = (struct mr_link){ .is_gone = err == -ENODEV };
	if (err == 0)
		ret->is_up = (request.ifr_flags & IFF_UP) &&
			     (request.ifr_flags & IFF_RUNNING);
	return 0;
}

static uint32_t place_drops(const struct place *place,
			    struct mr_named_count *ret, uint32_t room)
{
	struct live_counts counts;

	if (place->live == NULL || room < 3)
		return 0;
	live_read(place->live, &counts);
	ret[0] = (struct mr_named_count){ "kernel_set_up", counts.n_set_up };
	ret[1] = (struct mr_named_count){ "refused", counts.n_refused };
	ret[2] = (struct mr_named_count){ "no_xdp_xmit", counts.n_no_way };
	return 3;
}

const struct place_ops live_place = {
	.prefix = "live:",
	.open = place_open,
	.close = place_close,
	.begin = place_begin,
	.run = place_run,
	.stop = place_stop,
	.counts = place_counts,
	.n_sent = place_n_sent,
	.info = place_info,
	.link = place_link,
	.drops = place_drops,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand a port to another process. Sockets, program and maps are fds, so the new
 * process has the same ones. Both processes map the rings, which contain their
 * positions. The parcel has what was only in the old process's memory.
 *
 *     offer   the lease, the interface, the program with its filter
 *     give    tx entries that are not completed, settings, and what settings
 *             may have changed since the offer
 *
 * Programs of the option prog or in libxdp's dispatcher cannot be handed over,
 * because the libraries that load them have state in the process.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/filter.h>

#include <millrace/experimental/driver_hand_over.h>

#include "device/events.h"
#include "device/stats.h"
#include "program/filter.h"
#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

enum {
	LEASE_LAYOUT = 1,  /* of struct xdp_lease, its fds being -1 or not */
	DEV_LAYOUT = 1,    /* of struct xdp_netdev */
	LINK_LAYOUT = 1,   /* of struct link_state */
	FILTER_LAYOUT = 1, /* struct sock_filter */
	QUEUE_LAYOUT = 1,  /* of struct queue_state */
	RECORD_LAYOUT = 1, /* of struct xdp_record */
	RULES_LAYOUT = 1,  /* whether the program has rules */
	STATE_LAYOUT = 1,  /* of struct state */
};

/* The current state of the interface. */
struct link_state {
	uint32_t mtu_bytes, speed_mbps;
	uint8_t mac[6], is_up, reserved;
};

/* What the rings do not say. */
struct queue_state {
	uint32_t n_reaped, n_lost;
	uint32_t n_asked, magic; /* of times */
	uint32_t in_long_frame, is_busy;
};

struct state {
	uint64_t n_unserved_before, n_detached_at;
	uint64_t n_handed, n_lost; /* to the kernel */
};

/* ---- offer ---- */

static int refuse(const struct xdp_port *port, const char *why,
		  struct mr_reason *reason)
{
	return mr_fail(reason, -ENOTSUP, "%s: cannot be handed over: %s",
		       port->base.info->name, why);
}

static int check_port(const struct xdp_port *port, struct mr_reason *reason)
{
	if (port->prog.dispatched != NULL)
		return refuse(port,
			      "its program is one of several of libxdp's "
			      "dispatcher",
			      reason);
	if (port->options.prog != NULL || port->prog.is_foreign)
		return refuse(port, "it was opened with 'prog' or 'map'",
			      reason);
	if (__atomic_load_n(&port->is_gone, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&port->is_detached, __ATOMIC_RELAXED))
		return refuse(port, "its interface or its program is gone",
			      reason);
	if (!mri_xdp_can_map_bound(port))
		return refuse(port,
			      "before Linux 6.4, another process cannot map "
			      "the rings of a bound socket",
			      reason);
	return 0;
}

static void put_lease(const struct xdp_port *port, struct mr_parcel *parcel)
{
	const struct xdp_lease *lease = &port->lease;
	char name[MR_PARCEL_NAME_BYTES];

	mr_parcel_put(parcel, "lease", LEASE_LAYOUT, lease, sizeof(*lease));
	for (uint32_t i = 0; i < lease->n_queues; i++)
		mr_parcel_put_fd(parcel, mr_parcel_name(name, "socket", i),
				 lease->sockets[i]);
	for (uint32_t i = 0; i < XDP_LEASE_N_FDS; i++)
		mr_parcel_put_fd(parcel, mr_parcel_name(name, "fd", i),
				 lease->fds[i]);
}

/* As it was at open, and as it is. */
static void put_dev(const struct xdp_port *port, struct mr_parcel *parcel)
{
	const struct mr_port_info *info = port->base.info;
	struct link_state link = { .mtu_bytes = info->mtu_bytes,
				   .speed_mbps = port->speed_mbps,
				   .is_up = port->is_up != 0 };

	memcpy(link.mac, info->mac, sizeof(link.mac));
	mr_parcel_put(parcel, "dev", DEV_LAYOUT, &port->dev, sizeof(port->dev));
	mr_parcel_put(parcel, "link", LINK_LAYOUT, &link, sizeof(link));
}

static void put_program(const struct xdp_port *port, struct mr_parcel *parcel)
{
	const uint32_t has_rules = port->rules != NULL;

	mr_parcel_put(parcel, "has_rules", RULES_LAYOUT, &has_rules,
		      sizeof(has_rules));
	if (port->filter.n > 0)
		mr_parcel_put(parcel, "insns", FILTER_LAYOUT,
			      port->filter.insns,
			      port->filter.n * sizeof(port->filter.insns[0]));
	if (port->prog.skeleton != NULL)
		mr_parcel_put_fd(parcel, "program", port->prog.attached_fd);
}

/* What may change while the port is open. */
static void put_settings(const struct xdp_port *port, struct mr_parcel *parcel)
{
	const struct state state = {
		.n_unserved_before = port->n_unserved_before,
		.n_detached_at = port->n_detached_at,
		.n_handed = mr_counter_get(&port->kernel.handed),
		.n_lost = mr_counter_get(&port->kernel.lost),
	};

	mr_parcel_put(parcel, "state", STATE_LAYOUT, &state, sizeof(state));
	mr_parcel_put(parcel, "record", RECORD_LAYOUT, &port->record,
		      sizeof(port->record));
	mr_parcel_put_fd(parcel, "record", port->lease.fds[XDP_LEASE_RECORD]);
	mr_parcel_put_fd(parcel, "promisc", port->promisc_fd);
	mr_parcel_put_fd(parcel, "allmulti", port->allmulti_fd);
	mr_parcel_put_fd(parcel, "filter", port->filter_fd);
}

static int xdp_offer(struct mr_port *base, struct mr_parcel *parcel,
		     struct mr_reason *reason)
{
	const struct xdp_port *port = (const struct xdp_port *)base;
	const int err = check_port(port, reason);

	if (err < 0)
		return err;
	put_lease(port, parcel);
	put_dev(port, parcel);
	put_program(port, parcel);
	if (port->prog.skeleton != NULL)
		mr_parcel_put_fd(parcel, "map", port->prog.map_fd);
	mr_parcel_put_fd(parcel, "kernel", port->kernel.fd);
	put_settings(port, parcel); /* for recover; upgrades take the later ones */
	return 0;
}

/* ---- take ---- */

static bool is_lease(const struct xdp_lease *lease, const struct xdp_port *port)
{
	const struct mr_region *region = port->base.region;

	return lease->n_queues > 0 && lease->n_queues <= lease->n_queues_max &&
	       lease->n_queues_max <= XDP_MAX_QUEUES &&
	       lease->n_entries == port->options.ring_entries &&
	       lease->chunk_bytes == port->base.page_bytes &&
	       lease->n_bytes <= mr_region_n_contiguous_bytes(region) &&
	       lease->max_segs >= 1 && lease->max_segs <= MR_MAX_SEGS;
}

/* The port owns the fds that it has received, also after a failure. */
static int take_lease(struct xdp_port *port, struct mr_parcel *parcel,
		      struct mr_reason *reason)
{
	struct xdp_lease lease;
	char name[MR_PARCEL_NAME_BYTES];
	bool has_all = true;
	int err = mr_parcel_get(parcel, "lease", LEASE_LAYOUT, &lease,
				sizeof(lease), reason);

	if (err < 0)
		return err;
	if (!is_lease(&lease, port))
		return mr_fail(reason, -EPROTO,
			       "%s: the state has a lease for another port",
			       port->base.info->name);
	for (uint32_t i = 0; i < XDP_MAX_QUEUES; i++)
		lease.sockets[i] =
			i >= lease.n_queues ?
				-1 :
				mr_parcel_take_fd(
					parcel,
					mr_parcel_name(name, "socket", i));
	for (uint32_t i = 0; i < XDP_LEASE_N_FDS; i++) {
		const bool is_there = lease.fds[i] >= 0;

		lease.fds[i] = mr_parcel_take_fd(parcel,
						 mr_parcel_name(name, "fd", i));
		has_all &= (lease.fds[i] >= 0) == is_there;
	}
	for (uint32_t i = 0; i < lease.n_queues; i++)
		has_all &= lease.sockets[i] >= 0;
	port->lease = lease;
	return has_all ? 0 :
			 mr_fail(reason, -EPROTO,
				 "%s: the state lacks a file of the lease",
				 port->base.info->name);
}

static int take_filter(struct xdp_port *port, const struct mr_parcel *parcel,
		       struct mr_reason *reason)
{
	struct xdp_filter *filter = &port->filter;
	const void *insns = NULL;
	size_t n = 0;
	const int err = mr_parcel_find(parcel, "insns", FILTER_LAYOUT, &insns,
				       &n, reason);

	if (err == -ENOENT)
		return 0;
	if (err < 0)
		return err;
	mri_xdp_filter_close(port);
	filter->insns = mr_alloc(port->base.ctx, 0, n);
	if (filter->insns == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for a filter",
			       port->base.info->name);
	memcpy(filter->insns, insns, n);
	filter->n = (uint32_t)(n / sizeof(filter->insns[0]));
	return 0;
}

static int take_program(struct xdp_port *port, struct mr_parcel *parcel,
			struct mr_reason *reason)
{
	const int prog_fd = mr_parcel_take_fd(parcel, "program");
	const int map_fd = mr_parcel_take_fd(parcel, "map");
	uint32_t has_rules = 0;
	int err = 0;

	(void)mr_parcel_get(parcel, "has_rules", RULES_LAYOUT, &has_rules,
			    sizeof(has_rules), NULL);
	if (prog_fd >= 0 && map_fd >= 0)
		err = mri_xdp_prog_take(port, prog_fd, map_fd, has_rules != 0,
					reason);
	else
		mr_fd_close(prog_fd);
	mr_fd_close(map_fd); /* the program has a copy */
	return err;
}

/* The attached program, and the filter in it. */
static int renew_program(struct xdp_port *port, struct mr_parcel *parcel,
			 struct mr_reason *reason)
{
	struct xdp_prog *prog = &port->prog;
	uint32_t has_rules = 0;
	int fd;

	(void)mr_parcel_get(parcel, "has_rules", RULES_LAYOUT, &has_rules,
			    sizeof(has_rules), NULL);
	if ((has_rules != 0) != (port->rules != NULL))
		return mr_fail(reason, -EBUSY,
			       "%s: rules were opened or closed meanwhile",
			       port->base.info->name);
	if (port->rules != NULL) /* neither can have changed */
		return 0;
	fd = mr_parcel_take_fd(parcel, "program");
	if (fd >= 0) {
		mr_fd_close(prog->taken_fd);
		prog->fd = prog->taken_fd = prog->attached_fd = fd;
	}
	return take_filter(port, parcel, reason);
}

static int get_dev(struct xdp_port *port, const struct mr_parcel *parcel,
		   struct mr_reason *reason)
{
	const int err = mr_parcel_get(parcel, "dev", DEV_LAYOUT, &port->dev,
				      sizeof(port->dev), reason);

	port->dev.query_fd_plus_1 = port->lease.fds[XDP_LEASE_QUERY] + 1;
	port->dev.name[IFNAMSIZ - 1] = port->dev.driver[31] = '\0';
	return err;
}

static int get_link(struct xdp_port *port, const struct mr_parcel *parcel,
		    struct mr_reason *reason)
{
	struct mr_port_info *info = port->base.info;
	struct link_state link;
	const int err = mr_parcel_get(parcel, "link", LINK_LAYOUT, &link,
				      sizeof(link), reason);

	if (err < 0)
		return err;
	info->mtu_bytes = link.mtu_bytes;
	memcpy(info->mac, link.mac, sizeof(info->mac));
	memcpy(info->netdev, port->dev.name, sizeof(info->netdev));
	port->is_up = link.is_up;
	port->speed_mbps = link.speed_mbps;
	return 0;
}

static int take_steps(struct xdp_port *port, struct mr_parcel *parcel,
		      struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	int err;

	if ((err = get_dev(port, parcel, reason)) < 0 ||
	    (err = mri_xdp_queues_take(port, reason)) < 0)
		return err;
	port->is_software = xdp_netdev_is_software(&port->dev);
	for (uint32_t i = 0; i < port->lease.n_queues; i++)
		port->rxqs[i].has_partial_csums =
			mri_xdp_has_partial_csums(port);
	err = mr_region_pin(base->region, base->info->name,
			    port->lease.n_bytes);
	if (err < 0)
		return mr_fail(reason, err, "%s: too many ports on one region",
			       base->info->name);
	port->is_pinned = true;
	if ((err = mri_xdp_events_watch(port, reason)) < 0 ||
	    (err = mri_xdp_sockets_take(port, reason)) < 0 ||
	    (err = take_filter(port, parcel, reason)) < 0 ||
	    (err = take_program(port, parcel, reason)) < 0 ||
	    (err = mri_xdp_stats_open(port, reason)) < 0 ||
	    (err = mri_xdp_counters_map(port, reason)) < 0 ||
	    (err = mri_xdp_times_open(port, reason)) < 0)
		return err;
	snprintf(base->info->mode, sizeof(base->info->mode), "%s",
		 port->lease.n_zc_queues > 0 ? "zc" : "copy");
	mri_xdp_add_why(port, "taken over from another process");
	mri_xdp_fill_info(port);
	return get_link(port, parcel, reason);
}

static int xdp_take(struct mr_port *base, const struct mr_spec *spec,
		    struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	int err;

	mri_xdp_port_init(port);
	err = mri_xdp_read_options(spec, &port->options, reason);
	if (err < 0)
		return err;
	port->lessor = &mri_xdp_self;
	err = take_lease(port, parcel, reason);
	if (port->lease.fds[XDP_LEASE_BROKER] >= 0)
		port->lessor = &mri_xdp_broker;
	__atomic_store_n(&base->driver, port->lessor->driver, __ATOMIC_RELAXED);
	port->options.n_queues = port->lease.n_queues;
	port->kernel.fd = mr_parcel_take_fd(parcel, "kernel");
	if (err == 0)
		err = take_steps(port, parcel, reason);
	if (port->rxqs == NULL) /* mri_xdp_release() would look for them */
		port->lease.n_queues = 0;
	if (err < 0)
		mri_xdp_release(base);
	return err;
}

/* ---- give ---- */

static void put_queue(const struct xdp_port *port, uint32_t i,
		      struct mr_parcel *parcel)
{
	const struct xdp_txq *txq = &port->txqs[i];
	const struct queue_state state = {
		.n_reaped = txq->n_reaped,
		.n_lost = txq->n_lost,
		.n_asked = txq->times.n_asked,
		.magic = txq->times.magic,
		.in_long_frame = port->rxqs[i].in_long_frame,
		.is_busy = txq->is_busy,
	};
	char name[MR_PARCEL_NAME_BYTES];
	uint32_t n = 0;

	/* txq->left has room for them, and is empty while the port is open. */
	for (uint32_t at = txq->n_reaped; at != txq->tx.cached; at++)
		txq->left[n++] = xring_frame_at(&txq->tx, at)->addr;
	mr_parcel_put(parcel, mr_parcel_name(name, "queue", i), QUEUE_LAYOUT,
		      &state, sizeof(state));
	mr_pool_put_posted(port->base.pool, parcel,
			   mr_parcel_name(name, "posted", i), txq->left, n);
}

static int xdp_give(struct mr_port *base, struct mr_parcel *parcel,
		    struct mr_reason *reason)
{
	const struct xdp_port *port = (const struct xdp_port *)base;
	const int err = check_port(port, reason);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < port->lease.n_queues; i++)
		put_queue(port, i, parcel);
	put_dev(port, parcel);
	put_program(port, parcel);
	put_settings(port, parcel);
	return 0;
}

/* ---- resume ---- */

static int resume_queue(struct xdp_port *port, uint32_t i,
			const struct mr_parcel *parcel,
			struct mr_reason *reason)
{
	struct xdp_rxq *rxq = &port->rxqs[i];
	struct xdp_txq *txq = &port->txqs[i];
	char name[MR_PARCEL_NAME_BYTES];
	struct queue_state state;
	int err = mr_parcel_get(parcel, mr_parcel_name(name, "queue", i),
				QUEUE_LAYOUT, &state, sizeof(state), reason);

	if (err < 0)
		return err;
	mri_xdp_find_positions(rxq, txq);
	rxq->in_long_frame = state.in_long_frame != 0;
	txq->n_reaped = state.n_reaped;
	txq->n_lost = state.n_lost;
	txq->times.n_asked = state.n_asked;
	txq->times.magic = state.magic;
	rxq->is_busy = txq->is_busy = state.is_busy != 0;
	err = mri_xdp_claim_posted(rxq, reason);
	if (err < 0)
		return err;
	if (txq->tx.cached - txq->n_reaped > txq->tx.n_entries)
		return mr_fail(reason, -EPROTO,
			       "%s: queue %u: the state has %u frames to send",
			       port->base.info->name, i,
			       txq->tx.cached - txq->n_reaped);
	return mr_pool_claim_posted(port->base.pool, parcel,
				    mr_parcel_name(name, "posted", i), NULL, 0,
				    reason);
}

static int take_settings(struct xdp_port *port, struct mr_parcel *parcel,
			 struct mr_reason *reason)
{
	int *record_fd = &port->lease.fds[XDP_LEASE_RECORD];
	struct state state;
	int err;

	if ((err = mr_parcel_get(parcel, "state", STATE_LAYOUT, &state,
				 sizeof(state), reason)) < 0 ||
	    (err = mr_parcel_get(parcel, "record", RECORD_LAYOUT, &port->record,
				 sizeof(port->record), reason)) < 0 ||
	    (err = get_dev(port, parcel, reason)) < 0 ||
	    (err = get_link(port, parcel, reason)) < 0 ||
	    (err = renew_program(port, parcel, reason)) < 0)
		return err;
	port->n_unserved_before = state.n_unserved_before;
	port->n_detached_at = state.n_detached_at;
	port->kernel.handed = state.n_handed;
	port->kernel.lost = state.n_lost;
	if (*record_fd < 0)
		*record_fd = mr_parcel_take_fd(parcel, "record");
	port->promisc_fd = mr_parcel_take_fd(parcel, "promisc");
	port->allmulti_fd = mr_parcel_take_fd(parcel, "allmulti");
	port->filter_fd = mr_parcel_take_fd(parcel, "filter");
	return 0;
}

static int xdp_resume(struct mr_port *base, struct mr_parcel *parcel,
		      struct mr_reason *reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	int err = take_settings(port, parcel, reason);

	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++)
		err = resume_queue(port, i, parcel, reason);
	return err;
}

static int xdp_recover(struct mr_port *base, struct mr_parcel *parcel,
		       struct mr_reason *reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	int err = take_settings(port, parcel, reason);

	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++)
		err = mri_xdp_recover_queue(port, i, reason);
	/* The program does not know the ids of its rules, and adds new ones. */
	if (err == 0 && port->lessor == &mri_xdp_self)
		mri_xdp_record_undo(port, XDP_SETTING_STEER);
	return err;
}

const struct mr_hand_over_ops mri_xdp_hand_over = {
	.offer = xdp_offer,
	.take = xdp_take,
	.give = xdp_give,
	.resume = xdp_resume,
	.recover = xdp_recover,
};

void mri_xdp_leave(struct xdp_port *port)
{
	mri_xdp_sockets_leave(port);
	mri_xdp_kernel_close(port);
	mri_xdp_prog_close(port);
	mr_fd_close(port->promisc_fd);
	mr_fd_close(port->allmulti_fd);
	mr_fd_close(port->filter_fd);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of rules in the XDP program: maps and ports. rules.c has the rules.
 *
 *     frame --> millrace_rules --rule--> devmap --> another interface
 *                     |
 *                     no rule --> xskmap --> socket
 *
 * While a set is open, this program stands in for the port's own, in the same
 * link. Rules, counters and what the ports can do are arrays that the program
 * and the driver share by mmap(); only addresses are entered by system calls.
 *
 * Source: linux/Documentation/bpf/map_devmap.rst, redirect.rst;
 * Documentation/netlink/specs/netdev.yaml (xdp-features).
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "device/events.h"
#include "program/filter.h"
#include "program/rule_set.h"
#include "socket/queue.h"
#include "xdp.h"

enum {
	CAN_XMIT = 1 << 2,    /* NETDEV_XDP_ACT_NDO_XMIT */
	CAN_XMIT_SG = 1 << 6, /* NETDEV_XDP_ACT_NDO_XMIT_SG */
	GRACE_NS = 50000000,  /* longer than a NAPI runs the program */
};

/* What the device can be given to send; before, if the kernel fails to say. */
static uint64_t features_of(const struct xdp_port *port, uint64_t before)
{
	const int err = mri_xdp_features(port->dev.ifindex, &before);

	/* Before Linux 6.3 it cannot: try. */
	return err == -ENOENT ? CAN_XMIT | CAN_XMIT_SG : before;
}

int mri_xdp_rules_caps(const struct xdp_port *port,
		       struct mr_offload_caps *caps,
		       struct mr_reason *reterr_reason)
{
	if (port->prog.dispatched != NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: no rules beside other XDP programs: "
			       "libxdp's dispatcher runs the port's program",
			       port->base.info->name);
	if (port->prog.skeleton == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: no rules with 'prog' or 'map': they would "
			       "replace that program",
			       port->base.info->name);
	if (!port->lease.is_native)
		return mr_fail(
			reterr_reason, -ENOTSUP,
			"%s: no rules with generic attach: a redirect is "
			"no faster than user space there",
			port->base.info->name);
	caps->matches =
		1u << MR_RULE_ANY | 1u << MR_RULE_STATION | 1u << MR_RULE_FLOW;
	if (port->lease.n_zc_queues > 0) {
		caps->is_advised = 0;
		snprintf(caps->why, sizeof(caps->why),
			 "zero-copy: a redirect copies each frame");
	}
	if (mri_xdp_loses_tags(port, caps->why, sizeof(caps->why)))
		caps->is_advised = 0;
	if (!(features_of(port, 0) & CAN_XMIT)) {
		caps->can_send = 0;
		snprintf(
			caps->why, sizeof(caps->why),
			strcmp(port->dev.driver, "veth") == 0 ?
				"its peer does not receive redirected frames: "
				"'ethtool -K PEER gro on', with PEER the other "
				"end of this veth" :
				"its driver does not send redirected frames");
	}
	return 0;
}

static int rules_caps(const struct mr_port *base, struct mr_offload_caps *caps,
		      struct mr_reason *reterr_reason)
{
	const struct xdp_port *port = (const struct xdp_port *)base;

	return port->lessor->rules_caps(port, caps, reterr_reason);
}

bool mri_xdp_rules_has_map(const struct xdp_rules_bpf *skeleton,
			   const struct bpf_map *map)
{
	return map != skeleton->maps.sockets &&
	       map != skeleton->maps.unserved && !bpf_map__is_internal(map);
}

/* The map of another process, or of the first program; -1: neither. */
static int shared_map(struct xdp_rules *rules, const char *name)
{
	char entry[MR_PARCEL_NAME_BYTES];

	if (rules->programs[0] != NULL)
		return bpf_object__find_map_fd_by_name(rules->programs[0]->obj,
						       name);
	if (rules->parcel == NULL)
		return -1;
	snprintf(entry, sizeof(entry), "rules/%s", name);
	return mr_parcel_take_fd(rules->parcel, entry);
}

static int share_map(struct xdp_rules *rules, struct bpf_map *map)
{
	const int fd = shared_map(rules, bpf_map__name(map));
	const int err = fd < 0 ? -EPROTO : bpf_map__reuse_fd(map, fd);

	if (rules->programs[0] == NULL) /* libbpf has a copy */
		mr_fd_close(fd);
	return err;
}

/* Share all maps, except "sockets" and "unserved", which are the port's. */
static int share_maps(struct xdp_rules *rules, struct xdp_port *port,
		      struct xdp_rules_bpf *skeleton)
{
	struct bpf_map *map;
	int err = 0;

	if (!rules->is_simulated)
		err = bpf_map__reuse_fd(skeleton->maps.sockets,
					port->prog.map_fd);
	if (!rules->is_simulated && err == 0)
		err = bpf_map__reuse_fd(skeleton->maps.unserved,
					port->lease.fds[XDP_LEASE_UNSERVED]);
	if (rules->programs[0] == NULL && rules->parcel == NULL)
		return err;
	bpf_object__for_each_map(map, skeleton->obj)
	{
		if (err == 0 && mri_xdp_rules_has_map(skeleton, map))
			err = share_map(rules, map);
	}
	return err;
}

static void size_maps(const struct xdp_rules *rules,
		      struct xdp_rules_bpf *skeleton)
{
	const uint32_t n_ports = rules->base.n_ports;

	bpf_map__set_max_entries(skeleton->maps.targets, n_ports);
	bpf_map__set_max_entries(skeleton->maps.stations, rules->base.n_max);
	bpf_map__set_max_entries(skeleton->maps.slots, rules->base.n_max);
	bpf_map__set_max_entries(skeleton->maps.ports, n_ports);
	bpf_map__set_max_entries(skeleton->maps.queues, rules->n_queues);
	bpf_map__set_max_entries(skeleton->maps.cells,
				 rules->n_queues * n_ports);
	bpf_map__set_max_entries(skeleton->maps.losses, 2 * n_ports * n_ports);
	if (rules->base.n_hops == 0)
		return;
	bpf_map__set_max_entries(skeleton->maps.flows, rules->n_buckets);
	bpf_map__set_max_entries(skeleton->maps.ways, rules->base.n_max);
	bpf_map__set_max_entries(skeleton->maps.hops, rules->base.n_hops);
	bpf_map__set_max_entries(skeleton->maps.old_ids, MR_FLOW_IDS / 2);
}

/* Load the port's program, or with is_tracer the one that counts losses. */
static struct xdp_rules_bpf *load_program(struct xdp_rules *rules, uint32_t idx,
					  bool is_tracer, int *ret_err)
{
	struct xdp_port *port = xdp_rules_port(rules, idx);
	const bool has_tags = port->lease.kfuncs[XDP_KFUNC_TAG] != 0;
	struct xdp_rules_bpf *s = xdp_rules_bpf__open();
	struct xdp_rules_bpf__rodata *constants;
	struct bpf_map_info info = { 0 };
	uint32_t n_bytes = sizeof(info);

	*ret_err = -ENOMEM;
	if (s == NULL)
		return NULL;
	constants = s->rodata;
	size_maps(rules, s);
	bpf_program__set_autoload(s->progs.millrace_rules,
				  !is_tracer && !port->lease.has_frags);
	bpf_program__set_autoload(s->progs.millrace_rules_frags,
				  !is_tracer && port->lease.has_frags);
	bpf_program__set_autoload(s->progs.millrace_xmit, is_tracer);
	bpf_program__set_autoload(s->progs.millrace_refused, is_tracer);
	constants->port_idx = idx;
	constants->n_ports = rules->base.n_ports;
	constants->first_queue = port->lease.first_queue;
	constants->n_queues = port->lease.n_queues;
	constants->queue_base = rules->queue_base[idx];
	constants->has_partial_csums = port->rxqs[0].has_partial_csums;
	constants->has_flows = rules->base.n_hops > 0;
	constants->is_simulated = rules->is_simulated;
	constants->has_tags =
		(has_tags && port->filter.n == 0) || rules->is_simulated;
	constants->has_tags_in = has_tags && port->filter.n > 0;
	constants->meta_magic = port->lease.meta_magic;
	constants->passes_unserved =
		port->options.partial || rules->is_simulated;
	constants->n_buckets = rules->n_buckets;
	constants->magic = rules->base.magic;
	constants->id_step = rules->base.id_step;
	if (is_tracer && bpf_obj_get_info_by_fd(
				 bpf_map__fd(rules->programs[0]->maps.targets),
				 &info, &n_bytes) == 0)
		constants->targets_id = info.id;
	*ret_err = share_maps(rules, port, s);
	if (*ret_err == 0)
		*ret_err = xdp_rules_bpf__load(s);
	if (*ret_err == 0 && is_tracer)
		*ret_err = xdp_rules_bpf__attach(s);
	if (*ret_err == 0)
		return s;
	xdp_rules_bpf__destroy(s);
	return NULL;
}

static size_t map_bytes(const struct bpf_map *map)
{
	return (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
}

static void *share_memory(const struct bpf_map *map, int *ret_err)
{
	void *memory = mmap(NULL, map_bytes(map), PROT_READ | PROT_WRITE,
			    MAP_SHARED, bpf_map__fd(map), 0);

	if (memory == MAP_FAILED) {
		*ret_err = -ENOMEM;
		return NULL;
	}
	(void)madvise(memory, map_bytes(map), MADV_DONTFORK);
	return memory;
}

static int share_arrays(struct xdp_rules *rules)
{
	const struct xdp_rules_bpf *first = rules->programs[0];
	int err = 0;

	rules->slots = share_memory(first->maps.slots, &err);
	rules->ports = share_memory(first->maps.ports, &err);
	rules->queues = share_memory(first->maps.queues, &err);
	rules->cells = share_memory(first->maps.cells, &err);
	rules->base.ways = share_memory(first->maps.ways, &err);
	rules->flows = share_memory(first->maps.flows, &err);
	rules->hops = share_memory(first->maps.hops, &err);
	rules->base.old_ids = share_memory(first->maps.old_ids, &err);
	/* Another process's go on. */
	for (uint32_t q = 0;
	     q < rules->n_queues && err == 0 && rules->parcel == NULL; q++)
		rules->queues[q].next_id = rules->base.first_id + q;
	return err;
}

int mri_xdp_rules_load(struct xdp_rules *rules)
{
	const uint32_t n = rules->base.n_ports;
	int err = 0;

	/* At most a quarter full: one pair in a million has no room. */
	rules->n_buckets = 2;
	while (rules->n_buckets < rules->base.n_max)
		rules->n_buckets *= 2;
	for (uint32_t i = 0; i < n; i++) {
		rules->queue_base[i] = rules->n_queues;
		rules->n_queues += xdp_rules_port(rules, i)->lease.n_queues;
	}
	for (uint32_t i = 0; i < n && err == 0; i++)
		rules->programs[i] = load_program(rules, i, false, &err);
	return err == 0 ? share_arrays(rules) : err;
}

static void unmap_array(void *memory, const struct bpf_map *map)
{
	if (memory != NULL)
		munmap(memory, map_bytes(map));
}

void mri_xdp_rules_unload(struct xdp_rules *rules)
{
	const struct xdp_rules_bpf *first = rules->programs[0];

	if (first != NULL) {
		unmap_array(rules->slots, first->maps.slots);
		unmap_array(rules->ports, first->maps.ports);
		unmap_array(rules->queues, first->maps.queues);
		unmap_array(rules->cells, first->maps.cells);
		unmap_array(rules->base.ways, first->maps.ways);
		unmap_array(rules->flows, first->maps.flows);
		unmap_array(rules->hops, first->maps.hops);
		unmap_array(rules->base.old_ids, first->maps.old_ids);
	}
	for (uint32_t i = rules->base.n_ports; i > 0; i--)
		if (rules->programs[i - 1] != NULL)
			xdp_rules_bpf__destroy(rules->programs[i - 1]);
}

/* Of frames from one port to another: where the tracer counts those lost. */
static struct xdp_rule_loss loss_key(const struct xdp_rules *rules,
				     uint32_t from, uint32_t to, bool is_index)
{
	return (struct xdp_rule_loss){
		.netns = rules->netns,
		.from = xdp_rules_port(rules, from)->dev.ifindex,
		.to = is_index ? to : xdp_rules_port(rules, to)->dev.ifindex,
		.is_index = is_index,
	};
}

/* Without it, the set works, and cannot tell what was lost. */
static void open_tracer(struct xdp_rules *rules)
{
	const int map_fd = bpf_map__fd(rules->programs[0]->maps.losses);
	const uint32_t n_ports = rules->base.n_ports;
	const uint64_t zero = 0;
	int err = mri_xdp_netns_cookie(&rules->netns);

	for (uint32_t i = 0; i < 2 * n_ports * n_ports && err == 0; i++) {
		const struct xdp_rule_loss key = loss_key(
			rules, i / 2 / n_ports, i / 2 % n_ports, i & 1);

		err = bpf_map_update_elem(map_fd, &key, &zero, BPF_ANY);
	}
	if (err == 0)
		rules->tracer = load_program(rules, 0, true, &err);
	if (err != 0)
		mr_log(rules->base.ctx, MR_LOG_WARNING,
		       "%s: frames that are lost after a redirect cannot be "
		       "counted: no tracepoint xdp_devmap_xmit: %s",
		       rules->base.ports[0]->info->name, mr_strerror(-err));
}

static const struct bpf_program *program_of(const struct xdp_rules *rules,
					    uint32_t i)
{
	const struct xdp_rules_bpf *s = rules->programs[i];

	return xdp_rules_port(rules, i)->lease.has_frags ?
		       s->progs.millrace_rules_frags :
		       s->progs.millrace_rules;
}

static int add_parts(struct xdp_rules *rules, uint32_t i,
		     struct mr_reason *reterr_reason)
{
	const struct xdp_port *port = xdp_rules_port(rules, i);
	int fd;

	if (port->filter.n == 0 && !xdp_is_bound(port))
		return 0;
	fd = mri_xdp_filter_load(port, program_of(rules, i),
				 port->lease.has_frags, reterr_reason);
	rules->copy_fds[i] = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

static int prog_fd(const struct xdp_rules *rules, uint32_t i)
{
	return rules->copy_fds[i] >= 0 ? rules->copy_fds[i] :
					 bpf_program__fd(program_of(rules, i));
}

/* What the port can send now, as the program is to see it. */
static bool refresh_port(struct xdp_rules *rules, uint32_t i)
{
	const struct xdp_port *port = xdp_rules_port(rules, i);
	const int map_fd = bpf_map__fd(rules->programs[0]->maps.targets);
	struct xdp_rule_port *entry = &rules->ports[i];
	const bool is_gone = __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED);
	const bool is_up = __atomic_load_n(&port->is_up, __ATOMIC_RELAXED);
	const uint64_t features = is_up && !is_gone ? rules->features[i] : 0;
	const uint32_t max_bytes =
		features & CAN_XMIT ? xdp_max_bytes(port) : 0;
	const bool could = entry->max_bytes != 0;

	/* The program stays on an interface that went to another namespace. */
	if (is_gone)
		__atomic_store_n(&entry->is_off, 1, __ATOMIC_RELAXED);
	/* First the map: a frame that finds the entry finds a device. */
	if (max_bytes != 0 && !could &&
	    bpf_map_update_elem(map_fd, &i, &port->dev.ifindex, BPF_ANY) < 0)
		return false;
	__atomic_store_n(&entry->max_sg_bytes,
			 features & CAN_XMIT_SG ? max_bytes : 0,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&entry->max_bytes, max_bytes, __ATOMIC_RELEASE);
	if (max_bytes == 0 && could)
		(void)bpf_map_delete_elem(map_fd, &i);
	if (could == (max_bytes != 0))
		return false;
	mr_log(port->base.ctx, max_bytes != 0 ? MR_LOG_INFO : MR_LOG_WARNING,
	       "%s: %s", port->base.info->name,
	       max_bytes != 0 ? "rules can send from it" :
	       is_up ? "its driver no longer sends redirected frames: they go "
		       "to user space" :
		       "is down: frames that rules would send from it go to "
		       "user space");
	return true;
}

void mri_xdp_rules_read_features(struct xdp_rules *rules)
{
	for (uint32_t i = 0; i < rules->base.n_ports; i++)
		rules->features[i] = features_of(xdp_rules_port(rules, i),
						 rules->features[i]);
}

static uint32_t rules_poll(struct mr_rules *base)
{
	struct xdp_rules *rules = (struct xdp_rules *)base;
	int n_changed = 0;

	if (mri_xdp_drain_events(base->fd))
		mri_xdp_rules_read_features(rules);
	for (uint32_t i = 0; i < base->n_ports; i++)
		n_changed += refresh_port(rules, i);
	return n_changed;
}

/* What is counted of a queue, and not yet in its own counters. */
static void add_queue(const struct xdp_rules *rules, uint32_t queue,
		      struct mr_rx_stats *stats)
{
	const struct xdp_rule_queue *counts = &rules->queues[queue];
	const struct xdp_rule_cell *cells =
		&rules->cells[queue * rules->base.n_ports];
	const uint64_t n_dropped = xdp_rules_get(&counts->dropped);
	uint64_t n_offloaded = 0;

	for (uint32_t i = 0; i < rules->base.n_ports; i++)
		n_offloaded += xdp_rules_get(&cells[i].frames);
	stats->received += n_offloaded + n_dropped;
	stats->offloaded += n_offloaded;
	stats->drops[MR_RX_DROP_RULE] += n_dropped;
	stats->events[MR_RX_EVENT_OFFLOAD_NO_TARGET] +=
		xdp_rules_get(&counts->no_target);
	stats->events[MR_RX_EVENT_OFFLOAD_TOO_LONG] +=
		xdp_rules_get(&counts->too_long);
	stats->events[MR_RX_EVENT_OFFLOAD_CSUM_PARTIAL] +=
		xdp_rules_get(&counts->partial);
	stats->events[MR_RX_EVENT_OFFLOAD_NO_HOP] +=
		xdp_rules_get(&counts->no_hop);
	stats->events[MR_RX_EVENT_OFFLOAD_SEGMENT] +=
		xdp_rules_get(&counts->segment);
}

void mri_xdp_rules_stats(const struct mr_rxq *base, struct mr_rx_stats *stats)
{
	const struct xdp_port *port = ((const struct xdp_rxq *)base)->port;
	const struct xdp_rules *rules = port->rules;
	const uint32_t i = port->base.rules_idx;

	if (rules != NULL && base->queue.idx < xdp_rules_n_queues(rules, i))
		add_queue(rules, rules->queue_base[i] + base->queue.idx, stats);
}

/* What the rules counted goes to the counters of the queues. */
static void detach_rules(struct xdp_rules *rules, uint32_t i)
{
	struct xdp_port *port = xdp_rules_port(rules, i);
	const int err =
		mri_xdp_prog_replace(port, prog_fd(rules, i), port->prog.fd);

	/* -ENOLINK: the interface is gone. */
	if (err < 0 && err != -ENOLINK)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: the program for rules stays, without rules: %s",
		       port->base.info->name, mr_strerror(-err));
	for (uint32_t q = 0; q < xdp_rules_n_queues(rules, i); q++)
		add_queue(rules, rules->queue_base[i] + q,
			  &port->rxqs[q].base.stats);
	port->rules = NULL;
}

static void rules_stop(struct mr_rules *base)
{
	const struct timespec grace = { .tv_nsec = GRACE_NS };
	struct xdp_rules *rules = (struct xdp_rules *)base;

	for (uint32_t i = 0; i < base->n_ports; i++)
		__atomic_store_n(&rules->ports[i].is_off, 1, __ATOMIC_RELEASE);
	/* Programs that run now end first: synchronize_rcu(), except on kernels
	 * with nohz_full. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		nanosleep(&grace, NULL);
}

static void detach_all(struct xdp_rules *rules)
{
	if (rules->ports != NULL)
		rules_stop(&rules->base);
	for (uint32_t i = 0; i < rules->base.n_ports; i++)
		if (xdp_rules_port(rules, i)->rules == rules)
			detach_rules(rules, i);
}

static void leave_ports(struct xdp_rules *rules)
{
	for (uint32_t i = 0; i < rules->base.n_ports; i++)
		xdp_rules_port(rules, i)->rules = NULL;
}

void mri_xdp_rules_close(struct mr_rules *base)
{
	struct xdp_rules *rules = (struct xdp_rules *)base;

	mri_xdp_quiet_begin();
	if (base->ports[0]->is_away) /* they stay */
		leave_ports(rules);
	else
		detach_all(rules);
	if (base->fd >= 0)
		close(base->fd);
	if (rules->tracer != NULL)
		xdp_rules_bpf__destroy(rules->tracer);
	for (uint32_t i = 0; i < 2; i++)
		mr_fd_close(rules->tracer_fds[i]);
	for (uint32_t i = 0; i < base->n_ports; i++)
		mr_fd_close(rules->copy_fds[i]);
	mri_xdp_rules_unload(rules);
	mri_xdp_quiet_end();
}

static int attach_rules(struct xdp_rules *rules, uint32_t i,
			struct mr_reason *reterr_reason)
{
	struct xdp_port *port = xdp_rules_port(rules, i);
	const int err =
		mri_xdp_prog_replace(port, port->prog.fd, prog_fd(rules, i));

	if (err < 0)
		return mr_fail(reterr_reason, -EIO,
			       "%s: the program with rules cannot take the "
			       "place of the port's own: %s",
			       port->base.info->name, mr_strerror(-err));
	port->rules = rules;
	return 0;
}

static int open_steps(struct xdp_rules *rules, struct mr_reason *reterr_reason)
{
	struct mr_rules *base = &rules->base;
	int err = mri_xdp_rules_load(rules);

	if (err == -ENOMEM)
		return mr_fail(reterr_reason, err,
			       "no memory for %u rules between %u ports",
			       base->n_max, base->n_ports);
	if (err < 0)
		return mri_xdp_refuse_load(xdp_rules_port(rules, 0), err, true,
					   reterr_reason);
	for (uint32_t i = 0; i < base->n_ports && err == 0; i++)
		err = add_parts(rules, i, reterr_reason);
	if (err < 0)
		return err;
	open_tracer(rules);
	base->fd = mri_xdp_features_open();
	if (base->fd < 0)
		base->fd = -1;
	mri_xdp_rules_read_features(rules);
	(void)rules_poll(base);
	for (uint32_t i = 0; i < base->n_ports && err == 0; i++)
		err = attach_rules(rules, i, reterr_reason);
	return err;
}

void mri_xdp_rules_begin(struct xdp_rules *rules)
{
	memset(rules->copy_fds, 0xff, sizeof(rules->copy_fds)); /* -1 */
	memset(rules->tracer_fds, 0xff, sizeof(rules->tracer_fds));
}

static int rules_open(struct mr_rules *base, struct mr_reason *reterr_reason)
{
	struct xdp_rules *rules = (struct xdp_rules *)base;
	int err;

	mri_xdp_quiet_begin();
	mri_xdp_rules_begin(rules);
	err = open_steps(rules, reterr_reason);
	if (err < 0)
		mri_xdp_rules_close(base);
	mri_xdp_quiet_end();
	return err;
}

static void rules_sent(struct mr_rules *base, uint32_t to,
		       struct mr_rules_sent *sent)
{
	const struct xdp_rules *rules = (const struct xdp_rules *)base;
	const int map_fd = bpf_map__fd(rules->programs[0]->maps.losses);

	sent->can_send = rules->ports[to].max_bytes != 0;
	sent->has_drops = rules->tracer != NULL || rules->tracer_fds[0] >= 0;
	for (uint32_t q = 0; q < rules->n_queues; q++) {
		const struct xdp_rule_cell *cell =
			&rules->cells[q * base->n_ports + to];

		sent->attempted += xdp_rules_get(&cell->frames);
		sent->bytes += xdp_rules_get(&cell->bytes);
	}
	for (uint32_t i = 0; i < 2 * base->n_ports && sent->has_drops; i++) {
		const struct xdp_rule_loss key =
			loss_key(rules, i / 2, to, i & 1);
		uint64_t n_lost = 0;

		(void)bpf_map_lookup_elem(map_fd, &key, &n_lost);
		sent->drops += n_lost;
	}
}

const struct mr_rules_ops mri_xdp_rules_ops = {
	.rules_bytes = sizeof(struct xdp_rules),
	.caps = rules_caps,
	.open = rules_open,
	.close = mri_xdp_rules_close,
	.stop = rules_stop,
	.add = mri_xdp_rules_add,
	.remove = mri_xdp_rules_remove,
	.set = mri_xdp_rules_set,
	.read = mri_xdp_rules_read,
	.link = mri_xdp_rules_link,
	.hop = mri_xdp_rules_hop,
	.flush = mri_xdp_rules_flush,
	.poll = rules_poll,
	.sent = rules_sent,
	.offer = mri_xdp_rules_offer,
	.take = mri_xdp_rules_take,
};

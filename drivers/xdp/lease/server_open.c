/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The broker's side: opens a port for a client that has no capabilities.
 *
 * The client gets bound sockets, so it cannot use another queue or interface,
 * and cannot add a tx ring unless it may transmit; for Linux before 6.4, see
 * unbound.c. It gets the only fd of the link, so the program ends with it.
 * The broker restores the interface when the connection ends.
 *
 * The client's memory is mapped only while the kernel pins it, and never read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "device/events.h"
#include "lease/server.h"
#include "program/filter.h"
#include "socket/queue.h"
#include "xdp.h"

enum { HUGE_BYTES = 1 << 30 }; /* alignment that any memfd can be mapped at */

struct memory {
	void *map; /* includes padding before base */
	size_t map_bytes;
	void *base;
};

void mri_xdp_served_free(struct xdp_served *served)
{
	struct xdp_port *port = served->port;

	if (port == NULL)
		return;
	mri_xdp_release(&port->base);
	mr_fd_close(served->record_fd);
	served->record_fd = -1;
	mr_free(served->ctx, port->rxqs);
	mr_free(served->ctx, port->txqs);
	mr_free(served->ctx, port);
	served->port = NULL;
}

static int check_memory(const struct xdp_port *port,
			const struct xdp_grant *grant, struct mr_reason *reason)
{
	const uint64_t n_bytes = port->lease.n_bytes;

	if (n_bytes <= grant->n_bytes_left)
		return 0;
	return mr_fail(reason, -ENOMEM,
		       "%s: the broker may not register %llu bytes more for "
		       "this user: its rule allows %llu, of which %llu are "
		       "left (memory:)",
		       port->base.info->name, (unsigned long long)n_bytes,
		       (unsigned long long)grant->max_bytes,
		       (unsigned long long)grant->n_bytes_left);
}

static int check_grant(const struct xdp_port *port,
		       const struct xdp_grant *grant, struct mr_reason *reason)
{
	const struct xdp_options *o = &port->options;
	const char *const name = port->base.info->name;

	if (o->first_queue < grant->first_queue ||
	    o->n_queues > grant->n_queues ||
	    o->first_queue - grant->first_queue > grant->n_queues - o->n_queues)
		return mr_fail(reason, -EPERM,
			       "%s: the broker's rule allows queues %u to %u, "
			       "not %u to %u (queues:)",
			       name, grant->first_queue,
			       grant->first_queue + grant->n_queues - 1,
			       o->first_queue,
			       o->first_queue + o->n_queues - 1);
	if (o->force && !grant->may_force)
		return mr_fail(reason, -EPERM,
			       "%s: the broker's rule does not allow 'force' "
			       "(force: yes)",
			       name);
	if (grant->filter != NULL && o->attach == XDP_ATTACH_GENERIC)
		return mr_fail(reason, -EPERM,
			       "%s: the broker's rule has a filter, which "
			       "cannot see VLAN tags outside the frame with "
			       "'attach=generic'",
			       name);
	if ((o->promisc || o->mtu_bytes != 0 || o->busy != 0) &&
	    !grant->may_set)
		return mr_fail(reason, -EPERM,
			       "%s: the broker's rule does not allow%s%s%s: "
			       "it needs 'settings: yes', or omit %s",
			       name, o->promisc ? " 'promisc'" : "",
			       o->mtu_bytes != 0 ? " 'mtu'" : "",
			       o->busy != 0 ? " 'busy'" : "",
			       o->promisc ? "them (--promisc off)" : "them");
	return check_memory(port, grant, reason);
}

/* Both filters end with a return. */
int mri_xdp_serve_filter(struct xdp_served *served,
			 const struct sock_filter *insns, uint32_t n_insns,
			 struct mr_reason *reason)
{
	const struct xdp_filter_count count = { .n_queues = 1 };
	const struct xdp_filter *rule = served->grant.filter;
	const uint32_t n_rule = rule != NULL ? rule->n : 0;
	struct xdp_port *port = served->port;
	struct xdp_filter *filter = &port->filter;
	uint32_t n;

	if (n_rule + n_insns == 0)
		return 0;
	filter->insns = mr_alloc(served->ctx, 0,
				 (n_rule + n_insns) * sizeof(filter->insns[0]));
	if (filter->insns == NULL)
		return -ENOMEM;
	filter->n = n_rule + n_insns;
	if (n_rule > 0)
		memcpy(filter->insns, rule->insns,
		       n_rule * sizeof(rule->insns[0]));
	memcpy(filter->insns + n_rule, insns, n_insns * sizeof(insns[0]));
	for (uint32_t i = 0; i < n_rule && n_insns > 0; i++) {
		struct sock_filter *insn = &filter->insns[i];

		if (insn->code == (BPF_RET | BPF_K) && insn->k != 0)
			*insn = (struct sock_filter){ .code = BPF_JMP | BPF_JA,
						      .k = n_rule - i - 1 };
	}
	if (filter->n > XDP_FILTER_MAX ||
	    mri_xdp_filter_translate(filter, &count, NULL, &n) < 0)
		return mr_fail(reason, -ENOTSUP,
			       "%s: with the broker's rule, the filter matches "
			       "no frame, or is too long",
			       port->base.info->name);
	return 0;
}

static int map_segment(uint8_t *at, uint64_t n_bytes, int fd)
{
	/* Only memfds have seals, so nothing here waits for a file system. */
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EINVAL;
	if (fstat(fd, &status) < 0 || status.st_size < 0 ||
	    (uint64_t)status.st_size < n_bytes)
		return -EINVAL;
	return mmap(at, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    fd, 0) == MAP_FAILED ?
		       -errno :
		       0;
}

/* Map the segments contiguously. */
static int map_memory(const struct xdp_port *port,
		      const struct xdp_wire_open *o, const int *fds,
		      struct memory *memory, struct mr_reason *reason)
{
	const uint64_t n_bytes = port->lease.n_bytes;
	uint64_t at;
	int err = 0;

	memory->map_bytes = n_bytes + HUGE_BYTES;
	memory->map = mmap(NULL, memory->map_bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory->map == MAP_FAILED)
		return mr_fail(reason, -ENOMEM,
			       "%s: no address space for the memory",
			       port->base.info->name);
	at = ((uintptr_t)memory->map + HUGE_BYTES - 1) / HUGE_BYTES *
	     HUGE_BYTES;
	memory->base = (void *)(uintptr_t)at;
	for (uint32_t i = 0; i < o->n_segments && err == 0; i++) {
		err = map_segment((uint8_t *)(uintptr_t)at, o->segment_bytes[i],
				  fds[i]);
		at += o->segment_bytes[i];
	}
	if (err < 0 && err != -EINVAL)
		return mr_fail(reason, err,
			       "%s: the broker cannot map the memory: %s",
			       port->base.info->name, mr_strerror(-err));
	if (err < 0)
		return mr_fail(reason, err,
			       "%s: the memory is not a memfd of that length "
			       "that is sealed against shrinking",
			       port->base.info->name);
	return 0;
}

static void read_options(struct xdp_port *port, const struct xdp_wire_open *o)
{
	port->options = xdp_served_options(o);
	port->base.page_bytes = o->chunk_bytes;
	port->base.headroom_bytes = o->headroom_bytes;
	port->base.tailroom_bytes = o->tailroom_bytes;
	mri_xdp_lease_sizes(port);
	port->lease.n_segments = o->n_segments;
	for (uint32_t i = 0; i < o->n_segments; i++) {
		port->lease.segment_bytes[i] = o->segment_bytes[i];
		port->lease.n_bytes += o->segment_bytes[i];
	}
}

/*
 * A client must not get a packet socket, which could send anywhere; one in the
 * broker would end with the broker.
 */
static int set_for_client(struct xdp_port *port, enum xdp_setting setting,
			  uint64_t value, struct mr_reason *reason)
{
	return setting == XDP_SETTING_PROMISC ||
			       setting == XDP_SETTING_ALLMULTI ?
		       mri_xdp_set_flag(port, setting, value != 0, reason) :
		       mri_xdp_set(port, setting, value, reason);
}

/* What a client may ask for. */
static const struct xdp_lessor for_client = {
	/* Nobody could detach ours after the broker has ended. */
	.why_alone = "the broker cannot join another program",
	.close = mri_xdp_lease_end,
	.set = set_for_client,
};

static struct xdp_port *make_port(struct xdp_served *served,
				  const struct xdp_wire_open *o)
{
	struct xdp_port *port = mr_alloc(served->ctx, 0, sizeof(*port));

	if (port == NULL)
		return NULL;
	port->base.ctx = served->ctx;
	served->info = (struct mr_port_info){ .size = sizeof(served->info) };
	snprintf(served->info.name, sizeof(served->info.name), "xdp:%s",
		 o->interface);
	port->base.info = &served->info;
	port->base.driver = &mr_driver_xdp;
	mri_xdp_port_init(port);
	port->lessor = &for_client;
	read_options(port, o);
	return port;
}

static int make_queues(struct xdp_port *port, struct mr_reason *reason)
{
	const uint32_t n = port->options.n_queues;
	const struct mr_ctx *ctx = port->base.ctx;
	int *fd = &port->lease.fds[XDP_LEASE_EVENTS];

	port->is_software = xdp_netdev_is_software(&port->dev);
	port->rxqs = mr_alloc(ctx, 0, n * sizeof(port->rxqs[0]));
	port->txqs = mr_alloc(ctx, 0, n * sizeof(port->txqs[0]));
	if (port->rxqs == NULL || port->txqs == NULL)
		return mr_fail(reason, -ENOMEM, "%s: the broker has no memory",
			       port->base.info->name);
	port->lease.n_queues = port->lease.n_queues_max = n;
	port->base.info->n_rxqs = n;
	for (uint32_t i = 0; i < n; i++)
		port->rxqs[i].has_partial_csums =
			mri_xdp_has_partial_csums(port);
	*fd = mri_xdp_events_open();
	return *fd < 0 ? *fd : 0;
}

/* Rules name interfaces by one name; the kernel also finds others. */
static int find_netdev(const char *name, struct xdp_netdev *ret_dev,
		       struct mr_reason *reason)
{
	const int err = mri_xdp_netdev_find(name, ret_dev, reason);

	if (err == 0 && strcmp(ret_dev->name, name) != 0)
		return mr_fail(reason, -ENODEV,
			       "xdp:%s: this interface is called %s", name,
			       ret_dev->name);
	return err < 0 ? err : mri_xdp_refuse_master(ret_dev, reason);
}

static int open_port(struct xdp_served *served, const struct xdp_wire_open *o,
		     const int *fds, struct memory *memory,
		     struct mr_reason *reason)
{
	struct xdp_port *port = served->port;
	bool may_pass_unbound;
	int err = find_netdev(o->interface, &port->dev, reason);

	if (err < 0 ||
	    (err = mri_xdp_choose_queues(&port->dev, &port->options, reason)) <
		    0 ||
	    (err = check_grant(port, &served->grant, reason)) < 0 ||
	    (err = mri_xdp_serve_filter(served, o->insns, o->n_insns, reason)) <
		    0 ||
	    (err = mri_xdp_refuse_used(port, reason)) < 0 ||
	    (err = make_queues(port, reason)) < 0 ||
	    (err = map_memory(port, o, fds, memory, reason)) < 0)
		return err;
	port->lease.is_mute = !served->grant.may_transmit;
	may_pass_unbound = served->grant.may_transmit &&
			   served->grant.first_queue == 0 &&
			   served->grant.n_queues >= port->dev.n_rx_channels &&
			   served->grant.n_queues >= port->dev.n_tx_channels;
	port->base.base = memory->base;
	if ((err = mri_xdp_lease_take(port, reason)) < 0 ||
	    (err = mri_xdp_unbound_open(port, may_pass_unbound, reason)) < 0)
		return err;
	return mri_xdp_lease_finish(port, reason);
}

/* Nobody else undoes the record while the client has it open, or before this
 * process, which has it open, too, has undone it. */
int mri_xdp_record_for_client(struct xdp_served *served)
{
	int fd;

	if (served->record_fd >= 0 ||
	    served->port->lease.fds[XDP_LEASE_RECORD] < 0)
		return -1;
	fd = mri_xdp_record_share(served->port);
	if (fd >= 0)
		served->record_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd;
}

uint32_t mri_xdp_linked_prog(const struct xdp_port *port, int link_fd)
{
	struct bpf_link_info info = { 0 };
	uint32_t n_bytes = sizeof(info);

	return bpf_obj_get_info_by_fd(link_fd, &info, &n_bytes) == 0 &&
			       info.type == BPF_LINK_TYPE_XDP &&
			       info.xdp.ifindex == port->dev.ifindex ?
		       info.prog_id :
		       0;
}

uint32_t mri_xdp_map_id(int map_fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t n_bytes = sizeof(info);

	return bpf_obj_get_info_by_fd(map_fd, &info, &n_bytes) == 0 ? info.id :
								      0;
}

/* Move the lease to the answer: only the client keeps sockets, link and the
 * filter's counters. The broker keeps sockets that are still to be bound. */
static void give_lease(struct xdp_served *served, const struct xdp_wire_open *o,
		       struct xdp_lease *given)
{
	struct xdp_lease *lease = &served->port->lease;
	const uint32_t ifindex = served->port->dev.ifindex;
	uint64_t netns = 0;

	*given = *lease;
	for (uint32_t i = 0; i < lease->n_queues; i++) {
		if (lease->is_unbound)
			given->sockets[i] =
				fcntl(lease->sockets[i], F_DUPFD_CLOEXEC, 0);
		else
			lease->sockets[i] = -1;
	}
	lease->fds[XDP_LEASE_LINK] = lease->fds[XDP_LEASE_PASSED] = -1;
	/* The next program uses the same counter. */
	given->fds[XDP_LEASE_UNSERVED] =
		fcntl(lease->fds[XDP_LEASE_UNSERVED], F_DUPFD_CLOEXEC, 0);
	given->fds[XDP_LEASE_EVENTS] = -1;
	given->fds[XDP_LEASE_RECORD] = mri_xdp_record_for_client(served);
	(void)mri_xdp_netns_cookie(&netns);
	if (netns == o->netns)
		return;
	given->fds[XDP_LEASE_EVENTS] = mri_xdp_query_open(ifindex);
	given->fds[XDP_LEASE_QUERY] = mri_xdp_query_open(ifindex);
}

/* Give the client its lease, and release what only open needed. */
static void fill_answer(struct xdp_served *served,
			const struct xdp_wire_open *o,
			struct xdp_answer *answer)
{
	struct xdp_port *port = served->port;
	struct xdp_wire_answer *a = xdp_answer_body(answer);

	a->mtu_bytes = port->base.info->mtu_bytes;
	memcpy(a->why, port->base.info->why, sizeof(a->why));
	a->dev = port->dev;
	served->prog_id =
		mri_xdp_linked_prog(port, port->lease.fds[XDP_LEASE_LINK]);
	served->count_id = mri_xdp_map_id(port->lease.fds[XDP_LEASE_PASSED]);
	give_lease(served, o, &a->lease);
	port->prog.n_steered = 0; /* they end with their sockets */
	mri_xdp_prog_close(port);
	mri_xdp_filter_close(port);
}

int mri_xdp_serve_open(struct xdp_served *served,
		       const struct xdp_request *request,
		       struct xdp_answer *answer, struct mr_reason *reason)
{
	const struct xdp_wire_open *o = request->bytes;
	struct memory memory = { .map = MAP_FAILED };
	int err;

	if (served->port != NULL)
		return mr_fail(reason, -EBUSY,
			       "xdp:%s: this connection already has a port",
			       o->interface);
	err = served->allow(served->opaque, o->interface, &served->grant,
			    reason);
	if (err < 0)
		return err;
	served->port = make_port(served, o);
	if (served->port == NULL)
		return mr_fail(reason, -ENOMEM, "xdp:%s: no memory",
			       o->interface);
	served->count_id = 0;
	err = open_port(served, o, request->fds, &memory, reason);
	if (memory.map != MAP_FAILED)
		munmap(memory.map, memory.map_bytes);
	served->port->base.base = NULL;
	if (err < 0)
		mri_xdp_served_free(served);
	else
		fill_answer(served, o, answer);
	return err;
}

int mri_xdp_serve_find(struct xdp_served *served,
		       const struct xdp_request *request,
		       struct xdp_answer *answer, struct mr_reason *reason)
{
	const struct xdp_wire_find *f = request->bytes;
	struct xdp_netdev *dev = &xdp_answer_body(answer)->dev;
	struct xdp_grant grant;
	const int err =
		served->allow(served->opaque, f->interface, &grant, reason);

	return err < 0 ? err : find_netdev(f->interface, dev, reason);
}

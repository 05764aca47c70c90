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
#include "lease/client.h"
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
	mri_xdp_release(port);
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
	const uint64_t n_bytes = port->n_registered_bytes;

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
	const struct xdp_cbpf *rule = served->grant.filter;
	const uint32_t n_rule = rule != NULL ? rule->n : 0;
	struct xdp_port *port = served->port;
	struct xdp_filter *filter;
	uint32_t n;

	if (n_rule + n_insns == 0)
		return 0;
	filter = mr_alloc(served->ctx, 0, sizeof(*filter));
	if (filter == NULL)
		return -ENOMEM;
	filter->count.map_fd = -1;
	port->filter = filter;
	filter->cbpf.n = n_rule + n_insns;
	filter->cbpf.insns = mr_alloc(
		served->ctx, 0, filter->cbpf.n * sizeof(filter->cbpf.insns[0]));
	if (filter->cbpf.insns == NULL)
		return -ENOMEM;
	if (n_rule > 0)
		memcpy(filter->cbpf.insns, rule->insns,
		       n_rule * sizeof(rule->insns[0]));
	memcpy(filter->cbpf.insns + n_rule, insns, n_insns * sizeof(insns[0]));
	for (uint32_t i = 0; i < n_rule && n_insns > 0; i++) {
		struct sock_filter *insn = &filter->cbpf.insns[i];

		if (insn->code == (BPF_RET | BPF_K) && insn->k != 0)
			*insn = (struct sock_filter){ .code = BPF_JMP | BPF_JA,
						      .k = n_rule - i - 1 };
	}
	if (filter->cbpf.n > XDP_FILTER_MAX ||
	    mri_xdp_cbpf_translate(&filter->cbpf, &filter->count, NULL, &n) < 0)
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
	const uint64_t n_bytes = port->n_registered_bytes;
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
	port->base.chunk_bytes = o->chunk_bytes;
	port->base.headroom_bytes = o->headroom_bytes;
	port->base.tailroom_bytes = o->tailroom_bytes;
	if (o->headroom_bytes > XSK_PACKET_HEADROOM)
		port->umem_headroom_bytes =
			o->headroom_bytes - XSK_PACKET_HEADROOM;
	for (uint32_t i = 0; i < o->n_segments; i++)
		port->n_registered_bytes += o->segment_bytes[i];
}

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
	port->role = XDP_SERVER;
	port->promisc_fd = port->allmulti_fd = port->filter_fd = -1;
	port->prog.link_fd = port->prog.copy_fd = port->prog.fd = -1;
	port->record.fd = port->kernel.fd = port->broker_fd = -1;
	port->base.fd = port->events_fd = port->channels_fd = -1;
	port->unserved_fd = -1;
	read_options(port, o);
	return port;
}

static int make_queues(struct xdp_port *port, struct mr_reason *reason)
{
	const uint32_t n = port->options.n_queues;
	const struct mr_ctx *ctx = port->base.ctx;

	port->is_software = xdp_netdev_is_software(&port->dev);
	port->rxqs = mr_alloc(ctx, 0, n * sizeof(port->rxqs[0]));
	port->txqs = mr_alloc(ctx, 0, n * sizeof(port->txqs[0]));
	port->fds = mr_alloc(ctx, 0, n * sizeof(port->fds[0]));
	if (port->rxqs == NULL || port->txqs == NULL || port->fds == NULL) {
		mr_free(ctx, port->fds);
		port->fds = NULL;
		return mr_fail(reason, -ENOMEM, "%s: the broker has no memory",
			       port->base.info->name);
	}
	memset(port->fds, 0xff, n * sizeof(port->fds[0])); /* -1 */
	port->n_queues = port->n_queues_max = port->base.info->n_rxqs = n;
	for (uint32_t i = 0; i < n; i++)
		port->rxqs[i].has_partial_csums =
			mri_xdp_has_partial_csums(port);
	port->events_fd = mri_xdp_events_open();
	return port->events_fd < 0 ? port->events_fd : 0;
}

/* Rules name interfaces by one name; the kernel also finds others. */
static int find(const char *name, struct xdp_netdev *ret_dev,
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
	int err = find(o->interface, &port->dev, reason);

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
	port->is_mute = !served->grant.may_transmit;
	port->may_pass_unbound =
		served->grant.may_transmit && served->grant.first_queue == 0 &&
		served->grant.n_queues >= port->dev.n_rx_channels &&
		served->grant.n_queues >= port->dev.n_tx_channels;
	port->base.base = memory->base;
	return mri_xdp_take(port, reason);
}

/* Add an fd to the answer. Only the client keeps it. */
static void give(struct xdp_answer *answer, enum xdp_wire_fd kind, int fd)
{
	if (fd < 0)
		return;
	answer->fds[answer->n_fds++] = fd;
	xdp_answer_body(answer)->fds |= kind;
}

/* Nobody else undoes the record while the client has it open, or before this
 * process, which has it open, too, has undone it. */
void mri_xdp_give_record(struct xdp_served *served, struct xdp_answer *answer)
{
	int fd;

	if (served->record_fd >= 0 || served->port->record.fd < 0)
		return;
	fd = mri_xdp_record_share(served->port);
	if (fd >= 0)
		served->record_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	give(answer, XDP_WIRE_RECORD, fd);
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

/* Give the fds to the client, and release what only open needed. */
static void fill_answer(struct xdp_served *served,
			const struct xdp_wire_open *o,
			struct xdp_answer *answer)
{
	struct xdp_port *port = served->port;
	struct xdp_wire_answer *a = xdp_answer_body(answer);
	uint64_t netns = 0;

	a->n_sockets = port->n_queues;
	a->is_unbound = port->is_unbound;
	a->is_zc = port->is_unbound ? port->is_unbound_zc :
				      port->n_zc_queues > 0;
	a->max_segs = port->max_segs;
	a->mtu_bytes = port->base.info->mtu_bytes;
	a->tx_metadata_bytes = port->tx_metadata_bytes;
	a->is_native = port->prog.is_native;
	a->has_frags = port->prog.has_frags;
	a->meta_magic = port->prog.meta_magic;
	memcpy(a->kfuncs, port->prog.kfuncs, sizeof(a->kfuncs));
	a->is_busy = port->rxqs[0].is_busy;
	a->is_mute = port->is_mute;
	memcpy(a->why, port->base.info->why, sizeof(a->why));
	a->dev = port->dev;
	for (uint32_t i = 0; i < port->n_queues; i++) {
		answer->fds[answer->n_fds++] =
			port->is_unbound ?
				fcntl(port->fds[i], F_DUPFD_CLOEXEC, 0) :
				port->fds[i];
		if (!port->is_unbound)
			port->fds[i] = -1;
	}
	served->prog_id = mri_xdp_linked_prog(port, port->prog.link_fd);
	give(answer, XDP_WIRE_LINK, port->prog.link_fd);
	port->prog.link_fd = -1;
	if (port->filter != NULL) {
		served->count_id = mri_xdp_map_id(port->filter->count.map_fd);
		give(answer, XDP_WIRE_PASSED, port->filter->count.map_fd);
		port->filter->count.map_fd = -1;
	}
	mri_xdp_give_record(served, answer);
	(void)mri_xdp_netns_cookie(&netns);
	if (netns != o->netns) {
		give(answer, XDP_WIRE_EVENTS,
		     mri_xdp_query_open(port->dev.ifindex));
		give(answer, XDP_WIRE_QUERY,
		     mri_xdp_query_open(port->dev.ifindex));
	}
	/* The next program uses the same counter. */
	give(answer, XDP_WIRE_UNSERVED,
	     fcntl(port->unserved_fd, F_DUPFD_CLOEXEC, 0));
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

	return err < 0 ? err : find(f->interface, dev, reason);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The broker's side of a client's open port: settings, RSS, steering, filter.
 *
 * The requests become calls to public functions, which check them.
 */
#include <errno.h>
#include <string.h>

#include "lease/server.h"
#include "program/filter.h"
#include "xdp.h"

int mri_xdp_serve_set(struct xdp_served *served,
		      const struct xdp_request *request,
		      struct xdp_answer *answer, struct mr_reason *reason)
{
	const struct xdp_wire_set *s = request->bytes;
	struct mr_port *port = &served->port->base;
	uint8_t mac[6];

	(void)answer;
	memcpy(mac, &s->value, sizeof(mac));
	switch (s->setting) {
	case XDP_SETTING_MTU:
		return mr_port_set_mtu(port, (uint32_t)s->value, reason);
	case XDP_SETTING_MAC:
		return mr_port_set_mac(port, mac, reason);
	case XDP_SETTING_PROMISC:
		return mr_port_set_promisc(port, s->value != 0, reason);
	case XDP_SETTING_ALLMULTI:
		return mr_port_set_allmulti(port, s->value != 0, reason);
	default:
		return mr_fail(reason, -EINVAL, "no such setting");
	}
}

int mri_xdp_serve_rss(struct xdp_served *served,
		      const struct xdp_request *request,
		      struct xdp_answer *answer, struct mr_reason *reason)
{
	const struct xdp_wire_rss *r = request->bytes;
	const struct mr_rss_config config = {
		.size = sizeof(config),
		.keep = r->keep,
		.fields = r->fields,
		.n_key_bytes = r->n_key_bytes,
		.key = r->n_key_bytes > 0 ? r->key : NULL,
		.table = r->n_entries > 0 ? r->table : NULL,
		.n_entries = r->n_entries,
	};

	(void)answer;
	return mr_port_set_rss(&served->port->base, &config, reason);
}

int mri_xdp_serve_steer(struct xdp_served *served,
			const struct xdp_request *request,
			struct xdp_answer *answer, struct mr_reason *reason)
{
	const struct xdp_wire_steer *s = request->bytes;

	return mr_port_steer(&served->port->base, &s->rule,
			     &xdp_answer_body(answer)->id, reason);
}

int mri_xdp_serve_unsteer(struct xdp_served *served,
			  const struct xdp_request *request,
			  struct xdp_answer *answer, struct mr_reason *reason)
{
	const struct xdp_wire_unsteer *u = request->bytes;

	(void)answer;
	return mr_port_unsteer(&served->port->base, u->id, reason);
}

/* Lend the port the client's fds, and load a program that uses them. */
static int renew(struct xdp_served *served, const int *fds,
		 struct mr_reason *reason)
{
	struct xdp_port *port = served->port;
	struct xdp_lease *lease = &port->lease;
	const size_t n_bytes = lease->n_queues * sizeof(lease->sockets[0]);
	int err;

	lease->fds[XDP_LEASE_LINK] = fds[0];
	lease->fds[XDP_LEASE_PASSED] = fds[1];
	memcpy(lease->sockets, fds + XDP_WIRE_FILTER_FDS, n_bytes);
	err = mri_xdp_refuse_used(port, reason);
	if (err == 0)
		err = mri_xdp_prog_renew(port, reason);
	if (err == 0)
		served->prog_id = mri_xdp_linked_prog(port, fds[0]);
	/* The caller still owns them. */
	lease->fds[XDP_LEASE_LINK] = lease->fds[XDP_LEASE_PASSED] = -1;
	memset(lease->sockets, 0xff, n_bytes);
	return err;
}

int mri_xdp_serve_new_filter(struct xdp_served *served,
			     const struct xdp_request *request,
			     struct xdp_answer *answer,
			     struct mr_reason *reason)
{
	const struct xdp_wire_filter *f = request->bytes;
	struct xdp_port *port = served->port;
	int err;

	(void)answer;
	if (request->n_fds != XDP_WIRE_FILTER_FDS + port->lease.n_queues)
		return mr_fail(reason, -EPROTO, "not a valid request");
	/* Until then, the broker's own sockets are in the lease, where renew()
	 * puts the client's. */
	if (port->lease.is_unbound)
		return mr_fail(reason, -EINVAL,
			       "%s: its sockets are not bound yet",
			       port->base.info->name);
	/* Nobody but the client has the link, so this stays true. The program
	 * could write to maps that the client may only read. */
	if (served->prog_id == 0 || served->count_id == 0 ||
	    mri_xdp_linked_prog(port, request->fds[0]) != served->prog_id ||
	    mri_xdp_map_id(request->fds[1]) != served->count_id)
		return mr_fail(reason, -EINVAL,
			       "%s: not the link of the port's program, or not "
			       "its filter's counters",
			       port->base.info->name);
	err = mri_xdp_serve_filter(served, f->insns, f->n_insns, reason);
	if (err == 0)
		err = renew(served, request->fds, reason);
	port->prog.n_steered = 0; /* they end with their sockets */
	mri_xdp_prog_close(port);
	mri_xdp_filter_close(port);
	return err;
}

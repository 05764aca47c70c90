/* SPDX-License-Identifier: BSD-3-Clause */
/* The broker's side: which requests are valid and permitted. */
#include <errno.h>
#include <string.h>

#include "lease/server.h"
#include "program/filter.h"
#include "xdp.h"

struct xdp_served *mri_xdp_served_create(struct mr_ctx *ctx,
					 xdp_allow_fn *allow, void *opaque)
{
	struct xdp_served *served = mr_alloc(ctx, 0, sizeof(*served));

	if (served != NULL)
		*served = (struct xdp_served){ .ctx = ctx,
					       .allow = allow,
					       .opaque = opaque,
					       .record_fd = -1 };
	return served;
}

uint64_t mri_xdp_served_bytes(const struct xdp_served *served)
{
	return served->port != NULL ? served->port->lease.n_bytes : 0;
}

void mri_xdp_served_destroy(struct xdp_served *served)
{
	mri_xdp_served_free(served);
	mr_free(served->ctx, served);
}

static bool is_name(const char *name)
{
	const size_t n = strnlen(name, IFNAMSIZ);

	for (size_t i = 0; i < n; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
			return false;
	return n > 0 && n < IFNAMSIZ;
}

static bool is_within(uint32_t value, uint32_t min, uint32_t max)
{
	return value >= min && value <= max;
}

/* Whether xdp.c could have read these options from a spec. */
static bool has_valid_options(const struct xdp_wire_open *request)
{
	const struct xdp_options options = xdp_served_options(request),
				 *o = &options;
	const uint32_t ring = o->ring_entries;

	/* Checked as bytes: any other value is not a bool. */
	for (size_t i = offsetof(struct xdp_options, promisc);
	     i <= offsetof(struct xdp_options, meta); i++)
		if (request->options[i] > 1)
			return false;
	return is_name(request->interface) && o->mode <= XDP_MODE_COPY &&
	       o->attach <= XDP_ATTACH_GENERIC && o->sg <= XDP_OFF &&
	       o->csum <= XDP_OFF && o->first_queue <= UINT16_MAX &&
	       o->n_queues <= XDP_MAX_QUEUES && is_within(ring, 64, 32768) &&
	       (ring & (ring - 1)) == 0 &&
	       (o->mtu_bytes == 0 || is_within(o->mtu_bytes, 68, 65535)) &&
	       (o->budget == 0 || is_within(o->budget, 32, ring)) &&
	       o->busy <= UINT16_MAX &&
	       (request->chunk_bytes == 2048 || request->chunk_bytes == 4096) &&
	       request->headroom_bytes <= request->chunk_bytes &&
	       request->tailroom_bytes <= request->chunk_bytes;
}

/* Whether the lengths match the message. */
static bool has_valid_lengths(const struct xdp_wire_open *o, size_t n_bytes,
			      uint32_t n_fds)
{
	if (!is_within(o->n_segments, 1, XDP_MAX_SEGMENTS) ||
	    o->n_segments != n_fds || o->n_insns > XDP_FILTER_MAX ||
	    n_bytes != sizeof(*o) + o->n_insns * sizeof(o->insns[0]))
		return false;
	for (uint32_t i = 0; i < o->n_segments; i++)
		if (o->segment_bytes[i] == 0 || o->segment_bytes[i] % 4096 ||
		    o->segment_bytes[i] > UINT64_C(1) << 44)
			return false;
	return true;
}

typedef bool valid_fn(const void *request, size_t n_bytes, uint32_t n_fds);

static bool is_valid_find(const void *request, size_t n_bytes, uint32_t n_fds)
{
	const struct xdp_wire_find *f = request;

	return n_bytes == sizeof(*f) && n_fds == 0 && is_name(f->interface);
}

static bool is_valid_open(const void *request, size_t n_bytes, uint32_t n_fds)
{
	return has_valid_lengths(request, n_bytes, n_fds) &&
	       has_valid_options(request);
}

static bool is_valid_rss(const void *request, size_t n_bytes, uint32_t n_fds)
{
	const struct xdp_wire_rss *r = request;

	return n_fds == 0 && r->n_key_bytes <= sizeof(r->key) &&
	       r->n_entries <= XDP_MAX_TABLE &&
	       n_bytes == sizeof(*r) + r->n_entries * sizeof(r->table[0]);
}

/* The library reads as much as the rule's size says. */
static bool is_valid_steer(const void *request, size_t n_bytes, uint32_t n_fds)
{
	const struct xdp_wire_steer *s = request;

	return n_fds == 0 && n_bytes == sizeof(*s) &&
	       s->rule.size == sizeof(s->rule);
}

static bool is_valid_filter(const void *request, size_t n_bytes, uint32_t n_fds)
{
	const struct xdp_wire_filter *f = request;

	return n_fds > XDP_WIRE_FILTER_FDS &&
	       is_within(f->n_insns, 1, XDP_FILTER_MAX) &&
	       n_bytes == sizeof(*f) + f->n_insns * sizeof(f->insns[0]);
}

/* Other requests are valid with this length and without fds. */
static const struct row {
	uint32_t n_bytes; /* at least */
	valid_fn *is_valid;
	xdp_serve_fn *serve;
	bool is_for_port;  /* that the client has opened */
	size_t permission; /* a bool in struct xdp_grant; 0: none needed */
	const char *rule_key;
} requests[XDP_WIRE_N_TYPES] = {
	[XDP_WIRE_FIND] = { sizeof(struct xdp_wire_find), is_valid_find,
			    mri_xdp_serve_find },
	[XDP_WIRE_OPEN] = { sizeof(struct xdp_wire_open), is_valid_open,
			    mri_xdp_serve_open },
	[XDP_WIRE_SET] = { sizeof(struct xdp_wire_set), NULL, mri_xdp_serve_set,
			   true, offsetof(struct xdp_grant, may_set),
			   "settings" },
	[XDP_WIRE_RSS] = { sizeof(struct xdp_wire_rss), is_valid_rss,
			   mri_xdp_serve_rss, true,
			   offsetof(struct xdp_grant, may_rss), "rss" },
	[XDP_WIRE_STEER] = { sizeof(struct xdp_wire_steer), is_valid_steer,
			     mri_xdp_serve_steer, true,
			     offsetof(struct xdp_grant, may_steer),
			     "steering" },
	[XDP_WIRE_UNSTEER] = { sizeof(struct xdp_wire_unsteer), NULL,
			       mri_xdp_serve_unsteer, true,
			       offsetof(struct xdp_grant, may_steer),
			       "steering" },
	/* It could also reopen the port with this filter. */
	[XDP_WIRE_FILTER] = { sizeof(struct xdp_wire_filter), is_valid_filter,
			      mri_xdp_serve_new_filter, true },
	[XDP_WIRE_BIND] = { sizeof(struct xdp_wire_head), NULL,
			    mri_xdp_serve_bind, true },
};

/* Whether the client may make a request for its port. Looks up name and grant
 * again: both may have changed, and reloading frees the old grant's filter. */
static int check_port(struct xdp_served *served, const struct row *row,
		      struct mr_reason *reason)
{
	int err;

	if (served->port == NULL)
		return mr_fail(reason, -EINVAL,
			       "this connection has no port yet");
	(void)if_indextoname(served->port->dev.ifindex, served->port->dev.name);
	err = served->allow(served->opaque, served->port->dev.name,
			    &served->grant, reason);
	if (err < 0)
		return err;
	if (row->permission == 0 ||
	    *((const bool *)&served->grant + row->permission))
		return 0;
	return mr_fail(reason, -EPERM,
		       "%s: the broker's rule does not allow this (%s: yes)",
		       served->port->base.info->name, row->rule_key);
}

/* -EPROTO: not a valid request. */
static int serve_request(struct xdp_served *served, const void *request,
			 size_t n_bytes, const int *fds, uint32_t n_fds,
			 struct xdp_answer *answer, struct mr_reason *reason)
{
	const struct xdp_request r = { request, fds, n_fds };
	const struct xdp_wire_head *head = request;
	const struct row *row;
	int err = 0;

	if (n_bytes < sizeof(*head) || head->n_bytes != n_bytes)
		return mr_fail(reason, -EPROTO, "not a request");
	if (head->version != XDP_WIRE_VERSION)
		return mr_fail(reason, -EPROTO,
			       "the broker has protocol version %d, the client "
			       "%u: use the same release of Millrace",
			       XDP_WIRE_VERSION, head->version);
	row = &requests[head->type < XDP_WIRE_N_TYPES ? head->type : 0];
	if (row->serve == NULL || n_bytes < row->n_bytes ||
	    (row->is_valid != NULL ? !row->is_valid(request, n_bytes, n_fds) :
				     n_bytes != row->n_bytes || n_fds > 0))
		return mr_fail(reason, -EPROTO, "not a valid request");
	if (row->is_for_port)
		err = check_port(served, row, reason);
	if (err == 0)
		err = row->serve(served, &r, answer, reason);
	/* A client that gets an error does not use the fds. */
	if (err == 0 && row->is_for_port)
		xdp_answer_body(answer)->lease.fds[XDP_LEASE_RECORD] =
			mri_xdp_record_for_client(served);
	return err;
}

void mri_xdp_answer_error(struct xdp_answer *ret_answer, int err,
			  const struct mr_reason *reason)
{
	struct xdp_wire_answer *a = xdp_answer_body(ret_answer);

	memset(a, 0, sizeof(*a));
	mri_xdp_lease_init(&a->lease);
	ret_answer->n_fds = 0;
	ret_answer->n_bytes = sizeof(*a);
	a->head = (struct xdp_wire_head){ sizeof(*a), XDP_WIRE_VERSION, 0 };
	a->err = err;
	if (reason != NULL)
		a->reason = *reason;
}

int mri_xdp_serve(struct xdp_served *served, const void *request,
		  size_t n_bytes, const int *fds, uint32_t n_fds,
		  struct xdp_answer *ret_answer)
{
	struct xdp_wire_answer *a = xdp_answer_body(ret_answer);

	mri_xdp_answer_error(ret_answer, 0, NULL);
	a->err = serve_request(served, request, n_bytes, fds, n_fds, ret_answer,
			       &a->reason);
	if (a->err < 0 && a->reason.text[0] == '\0')
		mr_fail(&a->reason, a->err, "the broker: %s",
			mr_strerror(-a->err));
	ret_answer->n_fds = mri_xdp_lease_pack(&a->lease, ret_answer->fds);
	return a->err == -EPROTO ? -EPROTO : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/lease: a message keeps a lease intact, and a broker
 * keeps its own sockets. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <linux/filter.h>

#include "lease/server.h"
#include "support/test.h"
#include "support/unit_ctx.h"

enum { N_QUEUES = 3, N_MORE = 2 };

static struct xdp_lease make_lease(void)
{
	struct xdp_lease lease;

	mri_xdp_lease_init(&lease);
	lease.n_queues = N_QUEUES;
	for (uint32_t i = 0; i < N_QUEUES; i++)
		lease.sockets[i] = dup(0);
	lease.fds[XDP_LEASE_LINK] = dup(0);
	lease.fds[XDP_LEASE_UNSERVED] = dup(0);
	return lease;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

TEST(a_received_lease_has_its_fds_in_their_places)
{
	struct xdp_lease lease = make_lease(), received;
	int sent[XDP_MAX_QUEUES + XDP_LEASE_N_FDS], got[N_QUEUES + N_MORE];

	assert_int_equal(mri_xdp_lease_pack(&lease, sent), N_QUEUES + N_MORE);
	for (uint32_t i = 0; i < N_QUEUES + N_MORE; i++)
		got[i] = dup(sent[i]);
	received = lease;
	mri_xdp_lease_close(&lease);
	assert_false(is_open(sent[0]));
	assert_int_equal(
		mri_xdp_lease_unpack(&received, got, N_QUEUES + N_MORE), 0);
	for (uint32_t i = 0; i < N_QUEUES; i++)
		assert_int_equal(received.sockets[i], got[i]);
	assert_int_equal(received.sockets[N_QUEUES], -1);
	assert_int_equal(received.fds[XDP_LEASE_LINK], got[N_QUEUES]);
	assert_int_equal(received.fds[XDP_LEASE_PASSED], -1);
	assert_int_equal(received.fds[XDP_LEASE_UNSERVED], got[N_QUEUES + 1]);
	mri_xdp_lease_close(&received);
	for (uint32_t i = 0; i < N_QUEUES + N_MORE; i++)
		assert_false(is_open(got[i]));
}

TEST(a_lease_with_another_number_of_fds_is_refused)
{
	struct xdp_lease lease = make_lease(), received = lease;
	int fds[XDP_MAX_QUEUES + XDP_LEASE_N_FDS];
	const uint32_t n = mri_xdp_lease_pack(&lease, fds);

	assert_int_equal(mri_xdp_lease_unpack(&received, fds, n - 1), -EPROTO);
	received = lease;
	received.fds[XDP_LEASE_RECORD] = 0;
	assert_int_equal(mri_xdp_lease_unpack(&received, fds, n), -EPROTO);
	received = lease;
	received.n_queues = XDP_MAX_QUEUES + 1;
	assert_int_equal(mri_xdp_lease_unpack(&received, fds,
					      XDP_MAX_QUEUES + 1 + N_MORE),
			 -EPROTO);
	mri_xdp_lease_close(&lease);
}

static int allow_all(void *opaque, const char *interface,
		     struct xdp_grant *ret_grant, struct mr_reason *reason)
{
	(void)opaque;
	(void)interface;
	(void)reason;
	*ret_grant = (struct xdp_grant){ 0 };
	return 0;
}

/* Before Linux 6.4, the broker keeps its own sockets until it binds them. */
TEST_CTX(a_filter_that_arrives_before_the_sockets_are_bound_is_refused)
{
	struct xdp_served *served = mri_xdp_served_create(ctx, allow_all, NULL);
	struct mr_port_info info = { .name = "xdp:p0" };
	struct xdp_port port = { .base = { .ctx = ctx, .info = &info },
				 .lease = make_lease() };
	struct {
		struct xdp_wire_filter filter;
		struct sock_filter insn;
	} request = { .filter = { .head = { sizeof(request), XDP_WIRE_VERSION,
					    XDP_WIRE_FILTER },
				  .n_insns = 1 },
		      .insn = { BPF_RET | BPF_K, 0, 0, 65535 } };
	const int fds[XDP_WIRE_FILTER_FDS + N_QUEUES] = { 0 };
	const struct xdp_wire_answer *a;
	struct xdp_answer answer;

	port.lease.is_unbound = 1;
	served->port = &port;
	assert_int_equal(mri_xdp_serve(served, &request, sizeof(request), fds,
				       XDP_WIRE_FILTER_FDS + N_QUEUES, &answer),
			 0);
	a = xdp_answer_body(&answer);
	assert_int_equal(a->err, -EINVAL);
	assert_non_null(strstr(a->reason.text, "not bound yet"));
	for (uint32_t i = 0; i < N_QUEUES; i++)
		assert_true(is_open(port.lease.sockets[i]));
	mri_xdp_lease_close(&port.lease);
	served->port = NULL;
	mri_xdp_served_destroy(served);
}

int main(void)
{
	return test_run(NULL, NULL, NULL);
}

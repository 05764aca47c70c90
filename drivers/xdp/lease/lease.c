/* SPDX-License-Identifier: BSD-3-Clause */
/* The fds of a lease. */
#include <errno.h>
#include <string.h>

#include "lease/lease.h"
#include "xdp.h"

void mri_xdp_lease_init(struct xdp_lease *lease)
{
	*lease = (struct xdp_lease){ .n_queues = 0 };
	memset(lease->sockets, 0xff, sizeof(lease->sockets)); /* -1 */
	memset(lease->fds, 0xff, sizeof(lease->fds));
}

void mri_xdp_lease_sizes(struct xdp_port *port)
{
	const uint32_t n_headroom = port->base.headroom_bytes;
	struct xdp_lease *lease = &port->lease;

	lease->first_queue = port->options.first_queue;
	lease->n_entries = port->options.ring_entries;
	lease->chunk_bytes = port->base.page_bytes;
	/* The kernel adds its own. */
	lease->headroom_bytes = n_headroom > XSK_PACKET_HEADROOM ?
					n_headroom - XSK_PACKET_HEADROOM :
					0;
}

void mri_xdp_lease_close(struct xdp_lease *lease)
{
	for (uint32_t i = 0; i < XDP_MAX_QUEUES; i++)
		mr_fd_close(lease->sockets[i]);
	for (uint32_t i = 0; i < XDP_LEASE_N_FDS; i++)
		mr_fd_close(lease->fds[i]);
	memset(lease->sockets, 0xff, sizeof(lease->sockets));
	memset(lease->fds, 0xff, sizeof(lease->fds));
}

uint32_t mri_xdp_lease_pack(const struct xdp_lease *lease, int *ret_fds)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < lease->n_queues; i++)
		ret_fds[n++] = lease->sockets[i];
	for (uint32_t i = 0; i < XDP_LEASE_N_FDS; i++)
		if (lease->fds[i] >= 0)
			ret_fds[n++] = lease->fds[i];
	return n;
}

int mri_xdp_lease_unpack(struct xdp_lease *lease, const int *fds,
			 uint32_t n_fds)
{
	uint32_t n = lease->n_queues;

	for (uint32_t i = 0; i < XDP_LEASE_N_FDS; i++)
		n += lease->fds[i] >= 0;
	if (lease->n_queues > XDP_MAX_QUEUES || n != n_fds)
		return -EPROTO;
	for (uint32_t i = 0; i < XDP_MAX_QUEUES; i++)
		lease->sockets[i] =
			i < lease->n_queues ? mr_fd_guard(*fds++) : -1;
	for (uint32_t i = 0; i < XDP_LEASE_N_FDS; i++)
		if (lease->fds[i] >= 0)
			lease->fds[i] = mr_fd_guard(*fds++);
	return 0;
}

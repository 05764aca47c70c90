/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A crash: the next process gets the devices with the frames in their rings.
 *
 * While all is well, the offer of an upgrade lies unread in a socketpair. A
 * keeper has a copy of the end that would read it. Once this process is dead,
 * that copy is the last one, and the next process reads the offer from it. The
 * keeper needs neither understand nor update it: this process takes the offer
 * back by reading it, and writes another.
 *
 * The end of the stream proves that the old process is gone: the kernel closes
 * its fds after the last of its threads has left user space.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/experimental/hand_over.h>

#include "dataplane/dataplane.h"
#include "pool/hand_over.h"
#include "port/hand_over.h"

/* ---- before ---- */

static int make_pair(struct mr_pool *pool, struct mr_reason *reterr_reason)
{
	int fds[2];

	if (pool->keep_fds[1] > 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0, fds) < 0)
		return mr_fail(reterr_reason, -errno, "socketpair: %s",
			       mr_strerror(errno));
	pool->keep_fds[0] = mr_fd_guard(fds[0]);
	pool->keep_fds[1] = mr_fd_guard(fds[1]);
	return 0;
}

int mr_dataplane_keep(struct mr_dataplane *base, int *ret_socket_fd,
		      struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_pool *pool = base->pool;
	int err;

	if (pool->is_away || dp->hand.socket_fd >= 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "it is being handed over");
	err = make_pair(pool, reterr_reason);
	if (err < 0)
		return err;
	*ret_socket_fd = pool->keep_fds[1];
	if (__atomic_load_n(&pool->is_kept, __ATOMIC_ACQUIRE))
		return 0;
	__atomic_store_n(&pool->is_kept, true, __ATOMIC_SEQ_CST);
	mri_pool_freeze(pool, true);
	err = mri_hand_send_offer(dp, mri_port_keep, pool->keep_fds[0],
				  reterr_reason);
	mri_pool_freeze(pool, false);
	/* Another thread may have begun a change: it is for the next call. */
	if (err < 0 || !__atomic_load_n(&pool->is_kept, __ATOMIC_SEQ_CST))
		mri_pool_forget_kept(pool);
	return err;
}

void mri_dataplane_end_keep(struct mri_dataplane *dp)
{
	int *fds = dp->base.pool->keep_fds;

	if (fds[1] <= 0)
		return;
	mri_pool_forget_kept(dp->base.pool);
	mr_fd_close(fds[0]);
	mr_fd_close(fds[1]);
	fds[0] = fds[1] = 0;
}

/* ---- after ---- */

/* What was left, if its process is gone. */
static int read_kept(const struct mr_dataplane_config *config, int socket_fd,
		     struct mr_parcel **ret_parcel,
		     struct mr_reason *reterr_reason)
{
	char byte;
	int err = mri_parcel_receive(config->ctx, socket_fd, 0, ret_parcel,
				     NULL);

	if (err == -ECONNRESET || err == -ETIMEDOUT)
		return mr_fail(reterr_reason, -ENOENT, "nothing was left");
	if (err < 0)
		return mr_fail(reterr_reason, err, "what was left: %s",
			       mr_strerror(-err));
	if (recv(socket_fd, &byte, 1, MSG_DONTWAIT) != 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "the process that left it still runs");
	return mri_hand_check_offer(*ret_parcel, config, reterr_reason);
}

static int recover_ports(struct mri_dataplane *dp, struct mr_parcel *parcel,
			 struct mr_reason *reterr_reason)
{
	int err = 0;

	for (uint32_t p = 0; p < dp->base.n_ports && err == 0; p++)
		err = mri_port_recover(dp->ports[p], p, parcel, reterr_reason);
	if (err < 0)
		return err;
	mri_dataplane_set_away(dp, false);
	for (uint32_t p = 0; p < dp->base.n_ports; p++)
		mri_port_own(dp->ports[p]);
	return 0;
}

int mr_dataplane_recover(int socket_fd,
			 const struct mr_dataplane_config *caller_config,
			 struct mr_dataplane **ret_dp,
			 struct mr_reason *reterr_reason)
{
	struct mr_dataplane_config config;
	struct mr_parcel *parcel = NULL;
	struct mr_ctx *own_ctx;
	struct mr_dataplane *dp = NULL;
	int err = mri_hand_copy_config(caller_config, &config, &own_ctx,
				       reterr_reason);

	if (err == 0)
		err = read_kept(&config, socket_fd, &parcel, reterr_reason);
	if (err == 0)
		err = mri_dataplane_make(&config, parcel, &dp, reterr_reason);
	if (err == 0)
		err = recover_ports((struct mri_dataplane *)dp, parcel,
				    reterr_reason);
	mri_parcel_destroy(parcel);
	if (err < 0) {
		(void)mr_dataplane_close(dp, NULL);
		mr_ctx_destroy(own_ctx);
		return err;
	}
	((struct mri_dataplane *)dp)->owns_ctx = own_ctx != NULL;
	*ret_dp = dp;
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The old process's side of a hand-over, and code that both sides use.
 *
 * A word in shared memory says who may touch the rings. The old process stops,
 * and then writes OFFERED. The new process may touch the rings after it has
 * changed OFFERED to NEW, and the old one after it has changed OFFERED to OLD.
 * Only one of these changes can succeed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <millrace/experimental/hand_over.h>

#include "dataplane/dataplane.h"
#include "pool/hand_over.h"
#include "port/hand_over.h"

/* ---- both sides ---- */

int mri_hand_say(const struct mr_ctx *ctx, int socket_fd, const char *name,
		 uint32_t layout, const void *bytes, size_t n_bytes,
		 struct mr_reason *reterr_reason)
{
	struct mr_parcel *parcel = mri_parcel_create(ctx);
	int err;

	if (parcel == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory");
	mr_parcel_put(parcel, name, layout, bytes, n_bytes);
	err = mri_parcel_send(parcel, socket_fd, reterr_reason);
	mri_parcel_destroy(parcel);
	return err;
}

int mri_hand_hear(const struct mr_ctx *ctx, int socket_fd, int timeout_ms,
		  struct mr_parcel **ret_parcel,
		  struct mr_reason *reterr_reason)
{
	struct mr_parcel *parcel = NULL;
	const void *why = NULL;
	size_t n = 0;
	int err = mri_parcel_receive(ctx, socket_fd, timeout_ms, &parcel,
				     reterr_reason);

	if (err < 0)
		return err;
	if (mr_parcel_find(parcel, "why", 0, &why, &n, NULL) == 0) {
		err = mr_fail(reterr_reason, -ECANCELED, "%.*s", (int)n,
			      (const char *)why);
		mri_parcel_destroy(parcel);
		return err;
	}
	*ret_parcel = parcel;
	return 0;
}

void mr_dataplane_refuse(int socket_fd, const char *why)
{
	struct mr_ctx *ctx;

	if (mr_ctx_create(NULL, &ctx, NULL) < 0)
		return;
	(void)mri_hand_say(ctx, socket_fd, "why", 0, why, strlen(why), NULL);
	mr_ctx_destroy(ctx);
}

int mri_hand_map(struct mri_hand_over *hand)
{
	void *page = mmap(NULL, MRI_HAND_OWNER_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED, hand->owner_fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	hand->owner = page;
	return 0;
}

void mri_dataplane_set_away(struct mri_dataplane *dp, bool is_away)
{
	for (uint32_t p = 0; p < dp->base.n_ports; p++)
		dp->ports[p]->is_away = is_away;
	dp->base.pool->is_away = is_away;
}

void mri_hand_close(struct mri_hand_over *hand)
{
	if (hand->owner != NULL)
		munmap(hand->owner, MRI_HAND_OWNER_BYTES);
	mr_fd_close(hand->owner_fd);
	mri_parcel_destroy(hand->offer);
	mri_parcel_destroy(hand->parcel);
	*hand = (struct mri_hand_over){ .socket_fd = -1, .owner_fd = -1 };
}

/* ---- the offer ---- */

/* Check that the other process can read the format that we write. */
static int hear_hello(const struct mri_dataplane *dp,
		      struct mr_reason *reterr_reason)
{
	uint32_t formats[2]; /* the oldest that it reads, and the newest */
	struct mr_parcel *parcel = NULL;
	int err = mri_hand_hear(dp->base.ctx, dp->hand.socket_fd,
				MRI_HAND_WAIT_MS, &parcel, reterr_reason);

	if (err < 0)
		return err;
	err = mr_parcel_get(parcel, "hello", 0, formats, sizeof(formats),
			    reterr_reason);
	mri_parcel_destroy(parcel);
	if (err == 0 &&
	    (formats[0] > MRI_HAND_FORMAT || formats[1] < MRI_HAND_FORMAT))
		err = mr_fail(reterr_reason, -EPROTO,
			      "the new program reads formats %u to %u of the "
			      "state, and this one writes %d: restart instead",
			      formats[0], formats[1], MRI_HAND_FORMAT);
	return err;
}

static int make_owner(struct mri_hand_over *hand)
{
	hand->owner_fd = mr_memfd_create("millrace-owner", 0);
	if (hand->owner_fd < 0 ||
	    ftruncate(hand->owner_fd, MRI_HAND_OWNER_BYTES) < 0 ||
	    fcntl(hand->owner_fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return mri_hand_map(hand);
}

int mri_hand_send_offer(const struct mri_dataplane *dp,
			mri_hand_port_fn *put_port, int socket_fd,
			struct mr_reason *reterr_reason)
{
	const uint32_t format = MRI_HAND_FORMAT, n_ports = dp->base.n_ports;
	struct mr_parcel *parcel = mri_parcel_create(dp->base.ctx);
	int err;

	if (parcel == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory");
	mr_parcel_put(parcel, "format", 0, &format, sizeof(format));
	mr_parcel_put(parcel, "n_ports", 0, &n_ports, sizeof(n_ports));
	mr_parcel_put_fd(parcel, "owner", dp->hand.owner_fd);
	err = mri_pool_put(dp->base.pool, parcel, reterr_reason);
	for (uint32_t p = 0; p < n_ports && err == 0; p++)
		err = put_port(dp->ports[p], p, parcel, reterr_reason);
	if (err == 0)
		err = mri_parcel_send(parcel, socket_fd, reterr_reason);
	mri_parcel_destroy(parcel);
	return err;
}

/* The offer has failed. Tell the other process, if it still listens. */
static void end_offer(struct mri_dataplane *dp, const char *why)
{
	(void)mri_hand_say(dp->base.ctx, dp->hand.socket_fd, "why", 0, why,
			   strlen(why), NULL);
	mri_pool_freeze(dp->base.pool, false);
	mri_hand_close(&dp->hand);
}

int mr_dataplane_offer(struct mr_dataplane *base, int socket_fd,
		       uint64_t n_bytes, struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_reason why = { "" };
	int err;

	if (dp->hand.socket_fd >= 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "it is being handed over already");
	dp->hand.socket_fd = socket_fd;
	mri_pool_freeze(base->pool, true);
	err = hear_hello(dp, &why);
	if (err == 0 && (err = make_owner(&dp->hand)) < 0)
		mr_fail(&why, err, "no memory to share: %s", mr_strerror(-err));
	if (err == 0)
		err = mri_hand_send_offer(dp, mri_port_offer, socket_fd, &why);
	if (err == 0) {
		dp->hand.parcel = mri_parcel_create(base->ctx);
		if (dp->hand.parcel != NULL)
			mri_parcel_reserve(dp->hand.parcel, n_bytes);
		return 0;
	}
	end_offer(dp, why.text);
	return mr_fail(reterr_reason, err, "%s", why.text);
}

/* ---- the hand-over ---- */

int mr_dataplane_wait_ready(struct mr_dataplane *base,
			    struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_parcel *parcel = NULL;
	struct mr_reason why = { "" };
	int err;

	if (dp->hand.owner == NULL)
		return mr_fail(reterr_reason, -EINVAL, "it was not offered");
	if (dp->hand.is_ready)
		return 0;
	err = mri_hand_hear(base->ctx, dp->hand.socket_fd, MRI_HAND_WAIT_MS,
			    &parcel, &why);
	mri_parcel_destroy(parcel);
	dp->hand.is_ready = err == 0;
	if (err < 0)
		end_offer(dp, why.text);
	return err == 0 ? 0 : mr_fail(reterr_reason, err, "%s", why.text);
}

static void put_workers(const struct mri_dataplane *dp,
			struct mr_parcel *parcel)
{
	char name[MR_PARCEL_NAME_BYTES];

	for (uint32_t w = 0; w < dp->base.n_workers; w++) {
		struct mr_worker_stats stats = { .size = sizeof(stats) };

		mr_worker_stats(mr_workers_get(dp->base.workers, w), &stats);
		mr_parcel_name(name, "worker", w);
		mr_parcel_put(parcel, name, 0, &stats, sizeof(stats));
	}
}

static int send_state(const struct mri_dataplane *dp, mr_dataplane_put_fn *put,
		      void *opaque, struct mr_reason *reterr_reason)
{
	struct mr_parcel *parcel = dp->hand.parcel;
	const uint32_t n_ports = dp->base.n_ports;
	int err = 0;

	if (parcel == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory");
	put_workers(dp, parcel);
	if (put != NULL) /* first: it may still change rules of ports */
		put(parcel, opaque);
	for (uint32_t p = 0; p < n_ports && err == 0; p++)
		err = mri_port_give(dp->ports[p], p, parcel, reterr_reason);
	mr_parcel_enter(parcel, "");
	/* From here on, this process touches no ring. */
	if (err == 0)
		__atomic_store_n(dp->hand.owner, MRI_OWNER_OFFERED,
				 __ATOMIC_RELEASE);
	if (err == 0)
		err = mri_parcel_send(parcel, dp->hand.socket_fd,
				      reterr_reason);
	return err;
}

/* Wait until the new process has taken over, has exited, or is too late. */
static int hear_taken(const struct mri_dataplane *dp,
		      struct mr_reason *reterr_reason)
{
	struct mr_parcel *parcel = NULL;
	const int err = mri_hand_hear(dp->base.ctx, dp->hand.socket_fd,
				      MRI_HAND_OWNER_MS, &parcel,
				      reterr_reason);

	if (err == 0)
		mri_parcel_destroy(parcel);
	else if (err == -ETIMEDOUT)
		(void)mr_fail(reterr_reason, err,
			      "the new process did not go on within %d s",
			      MRI_HAND_OWNER_MS / 1000);
	return err;
}

/* Become the owner again. False: the new process is the owner. */
static bool take_back(const struct mri_hand_over *hand)
{
	uint32_t owner = MRI_OWNER_OFFERED;

	return __atomic_compare_exchange_n(hand->owner, &owner, MRI_OWNER_OLD,
					   false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE) ||
	       owner == MRI_OWNER_OLD;
}

int mr_dataplane_hand_over(struct mr_dataplane *base, mr_dataplane_put_fn *put,
			   void *opaque, struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_reason why = { "" };
	int err = mr_dataplane_wait_ready(base, reterr_reason);

	if (err < 0)
		return err;
	mri_pool_forget_kept(base->pool);
	mr_dataplane_drain(base, MRI_HAND_DRAIN_MS, NULL, NULL);
	err = send_state(dp, put, opaque, &why);
	if (err == 0)
		err = hear_taken(dp, &why);
	if (take_back(&dp->hand)) {
		end_offer(dp, err < 0 ? why.text : "it did not own it");
		return mr_fail(reterr_reason, err < 0 ? err : -ECANCELED, "%s",
			       err < 0 ? why.text :
					 "the new process did not own it");
	}
	mri_dataplane_set_away(dp, true);
	/* The state stays until this process ends: freeing it takes a while. */
	return 0;
}

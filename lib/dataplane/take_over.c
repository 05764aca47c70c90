/* SPDX-License-Identifier: BSD-3-Clause */
/* The new process's side of a hand-over. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <millrace/experimental/hand_over.h>

#include "dataplane/dataplane.h"
#include "pool/hand_over.h"
#include "port/hand_over.h"

static int say_hello(const struct mr_ctx *ctx, int socket_fd,
		     struct mr_reason *reterr_reason)
{
	const uint32_t formats[2] = { MRI_HAND_OLDEST, MRI_HAND_FORMAT };

	return mri_hand_say(ctx, socket_fd, "hello", 0, formats,
			    sizeof(formats), reterr_reason);
}

int mri_hand_copy_config(const struct mr_dataplane_config *caller_config,
			 struct mr_dataplane_config *ret_config,
			 struct mr_ctx **ret_own_ctx,
			 struct mr_reason *reterr_reason)
{
	int err = mri_copy_sized(ret_config, caller_config, sizeof(*ret_config),
				 "mr_dataplane_config", reterr_reason);

	*ret_own_ctx = NULL;
	if (err < 0 || ret_config->ctx != NULL)
		return err;
	err = mr_ctx_create(NULL, ret_own_ctx, reterr_reason);
	ret_config->ctx = *ret_own_ctx;
	return err;
}

int mri_hand_check_offer(const struct mr_parcel *parcel,
			 const struct mr_dataplane_config *config,
			 struct mr_reason *reterr_reason)
{
	uint32_t format, n_ports, n_specs = 0;
	int err;

	if ((err = mr_parcel_get(parcel, "format", 0, &format, sizeof(format),
				 reterr_reason)) < 0 ||
	    (err = mr_parcel_get(parcel, "n_ports", 0, &n_ports,
				 sizeof(n_ports), reterr_reason)) < 0)
		return err;
	if (format < MRI_HAND_OLDEST || format > MRI_HAND_FORMAT)
		return mr_fail(reterr_reason, -EPROTO,
			       "the state has format %u, and this release "
			       "reads %d to %d",
			       format, MRI_HAND_OLDEST, MRI_HAND_FORMAT);
	while (config->specs != NULL &&
	       (config->n_specs == 0 || n_specs < config->n_specs) &&
	       config->specs[n_specs] != NULL)
		n_specs++;
	if (n_ports != n_specs)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u ports, and the running data plane has %u: "
			       "this needs a restart",
			       n_specs, n_ports);
	return 0;
}

/* Check the offer, and map the word that says who owns the ports. */
static int read_offer(struct mr_parcel *parcel,
		      const struct mr_dataplane_config *config,
		      struct mri_hand_over *hand,
		      struct mr_reason *reterr_reason)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat found;
	int err = mri_hand_check_offer(parcel, config, reterr_reason);

	if (err < 0)
		return err;
	hand->owner_fd = mr_parcel_take_fd(parcel, "owner");
	if (hand->owner_fd < 0 || fstat(hand->owner_fd, &found) < 0 ||
	    found.st_size != MRI_HAND_OWNER_BYTES ||
	    !mri_is_sealed(hand->owner_fd, seals))
		return mr_fail(reterr_reason, -EPROTO,
			       "the state does not say whose the ports are");
	err = mri_hand_map(hand);
	return err == 0 ? 0 :
			  mr_fail(reterr_reason, err, "no memory to share: %s",
				  mr_strerror(-err));
}

/* Send hello, and receive the offer. */
static int get_offer(int socket_fd, const struct mr_dataplane_config *config,
		     struct mr_parcel **ret_parcel, struct mri_hand_over *hand,
		     struct mr_reason *reterr_reason)
{
	int err = say_hello(config->ctx, socket_fd, reterr_reason);

	if (err == 0)
		err = mri_hand_hear(config->ctx, socket_fd, MRI_HAND_WAIT_MS,
				    ret_parcel, reterr_reason);
	return err < 0 ? err :
			 read_offer(*ret_parcel, config, hand, reterr_reason);
}

int mr_dataplane_take_over(int socket_fd,
			   const struct mr_dataplane_config *caller_config,
			   struct mr_dataplane **ret_dp,
			   struct mr_reason *reterr_reason)
{
	struct mri_hand_over hand = { .socket_fd = socket_fd, .owner_fd = -1 };
	struct mr_dataplane_config config;
	struct mr_parcel *parcel = NULL;
	struct mr_ctx *own_ctx;
	struct mr_dataplane *dp;
	int err = mri_hand_copy_config(caller_config, &config, &own_ctx,
				       reterr_reason);

	if (err == 0)
		err = get_offer(socket_fd, &config, &parcel, &hand,
				reterr_reason);
	if (err == 0)
		err = mri_dataplane_make(&config, parcel, &dp, reterr_reason);
	hand.offer = parcel;
	if (err < 0) {
		mri_hand_close(&hand);
		mr_ctx_destroy(own_ctx);
		return err;
	}
	((struct mri_dataplane *)dp)->owns_ctx = own_ctx != NULL;
	((struct mri_dataplane *)dp)->hand = hand;
	*ret_dp = dp;
	return 0;
}

/* Continue the workers' counters. The number of workers may differ. */
static void take_workers(const struct mri_dataplane *dp)
{
	char name[MR_PARCEL_NAME_BYTES];
	struct mr_worker_stats stats;

	for (uint32_t w = 0;; w++) {
		struct mri_worker *worker = mri_worker_of(mr_workers_get(
			dp->base.workers, w % dp->base.n_workers));

		mr_parcel_name(name, "worker", w);
		if (mr_parcel_get(dp->hand.parcel, name, 0, &stats,
				  sizeof(stats), NULL) < 0)
			return;
		mri_worker_add_stats(worker, &stats);
	}
}

int mr_dataplane_take_state(struct mr_dataplane *base,
			    struct mr_parcel **ret_parcel,
			    struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mri_hand_over *hand = &dp->hand;
	int err;

	if (hand->owner == NULL || hand->parcel != NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "the data plane was not taken over");
	/* A device may have that page. */
	if (!mri_pool_is_untouched(base->pool))
		return mr_fail(reterr_reason, -EBUSY,
			       "pages were allocated, which the other process "
			       "may use");
	err = mri_hand_say(base->ctx, hand->socket_fd, "ready", 0, NULL, 0,
			   reterr_reason);
	if (err == 0)
		err = mri_hand_hear(base->ctx, hand->socket_fd,
				    MRI_HAND_WAIT_MS, &hand->parcel,
				    reterr_reason);
	for (uint32_t p = 0; p < base->n_ports && err == 0; p++)
		err = mri_port_resume(dp->ports[p], p, hand->parcel,
				      reterr_reason);
	if (err < 0)
		return err;
	take_workers(dp);
	*ret_parcel = hand->parcel;
	return 0;
}

int mr_dataplane_own(struct mr_dataplane *base, struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	uint32_t owner = MRI_OWNER_OFFERED;

	if (dp->hand.parcel == NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "the data plane was not taken over");
	if (!__atomic_compare_exchange_n(dp->hand.owner, &owner, MRI_OWNER_NEW,
					 false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return mr_fail(reterr_reason, -ECANCELED,
			       "it took too long: the old process went on");
	mri_dataplane_set_away(dp, false);
	for (uint32_t p = 0; p < base->n_ports; p++)
		mri_port_own(dp->ports[p]);
	/* It may have exited by now. */
	(void)mri_hand_say(base->ctx, dp->hand.socket_fd, "taken", 0, NULL, 0,
			   NULL);
	mri_hand_close(&dp->hand);
	return 0;
}

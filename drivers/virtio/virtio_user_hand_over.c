/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand over a virtio-user port to another process. The back end notices
 * nothing: memory, rings, eventfds and the connection stay, and so do all
 * addresses that it was told, which are those of the first process.
 *
 *     offer   features, the rings' memory, eventfds, the listener
 *     give    the connection, positions, posted buffers: a back end may leave
 *             and return until then
 *
 * The new process opens the port as usual, over a transport that takes what the
 * old one offered instead of asking a back end.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "virtio_parcel.h"
#include "virtio_user.h"

enum {
	PORT_LAYOUT = 1,   /* of struct port_image, and of the rings' memory */
	LINK_LAYOUT = 1,   /* of struct link_state */
	QUEUE_LAYOUT = 1,  /* of struct queue_state */
	CHAINS_LAYOUT = 1, /* a byte for each posted tx descriptor: */
	HAS_BUF = 0x40,    /* chains[], and whether it has a buffer */
};

/* What stays as it is. */
struct port_image {
	uint64_t features;
	uint64_t region_iova, rings_iova;
	uint8_t mac[6], reserved[2];
};

/* The back end, and what was agreed with it. */
struct link_state {
	uint64_t offered, protocol;
	uint32_t max_regions, mtu_bytes;
	uint8_t has_memory, is_up, reserved[6];
};

struct queue_state {
	uint32_t head, tail; /* tx */
	uint32_t n_skip;     /* rx */
	uint32_t state, is_started;
	uint16_t n_avail, n_used;
};

static uint32_t n_vqs(const struct virtio_port *port)
{
	return 2 * port->options.n_queues;
}

static struct virtio_vq *vq_of(const struct virtio_port *port, uint32_t i)
{
	return i % 2 ? &port->txqs[i / 2].vq : &port->rxqs[i / 2].vq;
}

static int say_damaged(const struct virtio_port *port, const char *what,
		       struct mr_reason *reason)
{
	return mr_fail(reason, -EPROTO, "%s: %s of the state is damaged",
		       port->base.info->name, what);
}

/* ---- offer ---- */

static int check_port(const struct virtio_port *port, struct mr_reason *reason)
{
	if (port->user->n_devices > 0)
		return mr_fail(reason, -ENOTSUP,
			       "%s: cannot be handed over: the kernel's device "
			       "serves the process that opened it",
			       port->base.info->name);
	if (__atomic_load_n(&port->is_gone, __ATOMIC_RELAXED))
		return mr_fail(reason, -ENODEV, "%s: the device is gone",
			       port->base.info->name);
	return 0;
}

static int offer(struct mr_port *base, struct mr_parcel *parcel,
		 struct mr_reason *reason)
{
	const struct virtio_port *port = (const struct virtio_port *)base;
	const struct virtio_user *user = port->user;
	struct port_image image = { .features = port->features,
				    .region_iova = user->region_iova,
				    .rings_iova = user->regions[0].guest_addr };
	const int err = check_port(port, reason);

	if (err < 0)
		return err;
	memcpy(image.mac, port->options.mac, sizeof(image.mac));
	mr_parcel_put(parcel, "image", PORT_LAYOUT, &image, sizeof(image));
	mr_parcel_put_fd(parcel, "rings", user->region_fds[0]);
	for (uint32_t i = 0; i < n_vqs(port); i++)
		put_numbered_fd(parcel, "kick", i, user->kick_fds[i]);
	for (uint32_t i = 0; i < port->n_irqs; i++)
		put_numbered_fd(parcel, "irq", i, port->irq_fds[i]);
	mri_vhost_listener_put(&user->listener, parcel);
	return 0;
}

/* ---- take: steps of a transport ---- */

static int take_eventfd(struct virtio_port *port, const char *what, uint32_t i,
			int *ret_fd, struct mr_reason *reason)
{
	*ret_fd = take_numbered_fd(port->parcel, what, i);
	return *ret_fd >= 0 && mri_vhost_is_eventfd(*ret_fd) ?
		       0 :
		       say_damaged(port, "an eventfd", reason);
}

static int open_taken(struct virtio_port *port, const char *path,
		      struct mr_reason *reason)
{
	struct virtio_user *user;
	struct port_image image;
	int err = mri_user_create(port, path, reason);

	if (err == 0)
		err = mr_parcel_get(port->parcel, "image", PORT_LAYOUT, &image,
				    sizeof(image), reason);
	if (err < 0)
		return err;
	user = port->user;
	user->offered = image.features;
	user->region_iova = image.region_iova;
	user->regions[0].guest_addr = image.rings_iova;
	user->regions[0].user_addr = image.rings_iova;
	memcpy(port->options.mac, image.mac, sizeof(image.mac));
	user->max_pairs = port->options.n_queues;
	user->max_regions = VHOST_MAX_SLOTS; /* resume() checks it */
	user->region_fds[0] = mr_parcel_take_fd(port->parcel, "rings");
	err = mri_vhost_listener_take(&user->listener, port->parcel, reason);
	if (err == 0 && (user->listener.fd >= 0) != port->options.is_server)
		err = say_damaged(port, "the listener", reason);
	for (uint32_t i = 0; i < n_vqs(port) && err == 0; i++)
		err = take_eventfd(port, "kick", i, &user->kick_fds[i], reason);
	return err;
}

static int begin_taken(struct virtio_port *port, struct mr_reason *reason)
{
	(void)reason;
	port->offered = port->user->offered & mri_user_features;
	return 0;
}

/* The same options choose the same features, unless it is another release. */
static int accept_taken(struct virtio_port *port, uint64_t features,
			struct mr_reason *reason)
{
	if (features != port->user->offered)
		return mr_fail(reason, -EINVAL,
			       "%s: the back end was asked for other features: "
			       "this needs a restart",
			       port->base.info->name);
	port->features = features;
	return mri_user_memory_open(port, reason);
}

static int take_irqs(struct virtio_port *port, uint32_t n, int *ret_fds,
		     struct mr_reason *reason)
{
	int err = 0;

	for (uint32_t i = 0; i < n && err == 0; i++) {
		err = take_eventfd(port, "irq", i, &ret_fds[i], reason);
		port->n_irqs = i + 1; /* to close */
	}
	return err < 0 ? err : (int)n;
}

static int take(struct mr_port *base, const struct mr_spec *spec,
		struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct virtio_port *port = (struct virtio_port *)base;
	struct virtio_transport taken = mri_virtio_user;
	int err;

	taken.open = open_taken;
	taken.begin = begin_taken;
	taken.accept = accept_taken;
	taken.set_irqs = take_irqs;
	port->parcel = parcel;
	err = mri_virtio_open(base, spec, &taken, reason);
	port->transport = &mri_virtio_user;
	port->parcel = NULL;
	return err;
}

/* ---- give ---- */

static void put_queue(const struct virtio_port *port, uint32_t i,
		      struct queue_state state, struct mr_parcel *parcel)
{
	const struct virtio_vq *vq = vq_of(port, i);
	char name[MR_PARCEL_NAME_BYTES];

	state.n_avail = vq->n_avail;
	state.n_used = vq->n_used;
	state.is_started = port->user->is_started[i];
	mr_parcel_put(parcel, mr_parcel_name(name, "queue", i), QUEUE_LAYOUT,
		      &state, sizeof(state));
}

static void put_rxq(const struct virtio_port *port, uint32_t i,
		    struct mr_parcel *parcel)
{
	const struct virtio_rxq *rxq = &port->rxqs[i / 2];
	char name[MR_PARCEL_NAME_BYTES];

	put_queue(port, i,
		  (struct queue_state){ .n_skip = rxq->n_skip,
					.state = rxq->state },
		  parcel);
	mr_pool_put_posted(port->base.pool, parcel,
			   mr_parcel_name(name, "posted", i), rxq->bufs,
			   rxq->n_bufs);
}

static int put_txq(const struct virtio_port *port, uint32_t i,
		   struct mr_parcel *parcel, struct mr_reason *reason)
{
	const struct virtio_txq *txq = &port->txqs[i / 2];
	const uint32_t n = txq->head - txq->tail;
	/* One more: no request is for nothing. */
	uint64_t *addrs = mr_alloc(port->base.ctx, 0,
				   (n + 1) * (sizeof(addrs[0]) + 1));
	uint8_t *chains = (uint8_t *)(addrs + n);
	char name[MR_PARCEL_NAME_BYTES];
	uint32_t n_addrs = 0;

	if (addrs == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for its state",
			       port->base.info->name);
	put_queue(port, i,
		  (struct queue_state){ .head = txq->head,
					.tail = txq->tail,
					.state = txq->state },
		  parcel);
	for (uint32_t at = 0; at < n; at++) {
		const uint32_t place = (txq->tail + at) & txq->vq.mask;
		const bool has_buf = txq->bufs[place] != MR_ADDR_NONE;

		chains[at] = txq->chains[place] | (has_buf ? HAS_BUF : 0);
		if (has_buf)
			addrs[n_addrs++] = txq->bufs[place];
	}
	mr_parcel_put(parcel, mr_parcel_name(name, "chains", i), CHAINS_LAYOUT,
		      chains, n);
	mr_pool_put_posted(port->base.pool, parcel,
			   mr_parcel_name(name, "posted", i), addrs, n_addrs);
	mr_free(port->base.ctx, addrs);
	return 0;
}

static int give(struct mr_port *base, struct mr_parcel *parcel,
		struct mr_reason *reason)
{
	const struct virtio_port *port = (const struct virtio_port *)base;
	const struct virtio_user *user = port->user;
	const struct link_state link = {
		.offered = user->offered,
		.protocol = user->protocol,
		.max_regions = user->max_regions,
		.mtu_bytes = base->info->mtu_bytes,
		.has_memory = user->has_memory,
		.is_up = port->is_up != 0,
	};
	int err = check_port(port, reason);

	if (err < 0)
		return err;
	mr_parcel_put(parcel, "link", LINK_LAYOUT, &link, sizeof(link));
	mr_parcel_put_fd(parcel, "socket", user->fd);
	for (uint32_t i = 0; i < n_vqs(port) && err == 0; i += 2) {
		put_rxq(port, i, parcel);
		err = put_txq(port, i + 1, parcel, reason);
	}
	return err;
}

/* ---- resume ---- */

static int resume_link(struct virtio_port *port, struct mr_parcel *parcel,
		       struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	struct mr_port *base = &port->base;
	struct link_state link;
	int err = mr_parcel_get(parcel, "link", LINK_LAYOUT, &link,
				sizeof(link), reason);

	if (err < 0)
		return err;
	if (link.max_regions > VHOST_MAX_SLOTS ||
	    (link.has_memory && user->n_regions > link.max_regions) ||
	    link.mtu_bytes < MR_MTU_MIN_BYTES)
		return say_damaged(port, "the link", reason);
	user->offered = link.offered;
	user->protocol = link.protocol;
	user->max_regions = link.max_regions;
	user->has_memory = link.has_memory != 0;
	user->is_open = true;
	port->is_up = link.is_up != 0;
	port->generation = user->generation - 1; /* mr_port_poll() looks */
	base->info->mtu_bytes = link.mtu_bytes;
	err = base->driver->set_mtu(base, link.mtu_bytes, reason);
	if (err < 0)
		return err;
	user->fd = mr_parcel_take_fd(parcel, "socket");
	if (user->fd < 0)
		user->fd = -1; /* the back end is away */
	err = mri_virtio_watch(port, user->fd);
	return err < 0 ? mr_fail(reason, -EIO, "%s: cannot wait for it: %s",
				 base->info->name, mr_strerror(-err)) :
			 0;
}

static int resume_queue(struct virtio_port *port, uint32_t i,
			const struct mr_parcel *parcel,
			struct queue_state *ret_state, struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	struct virtio_vq *vq = vq_of(port, i);
	char name[MR_PARCEL_NAME_BYTES];
	const int err = mr_parcel_get(parcel, mr_parcel_name(name, "queue", i),
				      QUEUE_LAYOUT, ret_state,
				      sizeof(*ret_state), reason);

	if (err < 0)
		return err;
	vq->kick_fd = user->kick_fds[i];
	vq->n_avail = ret_state->n_avail;
	vq->n_used = ret_state->n_used;
	/* mr_port_poll() resets a broken one. */
	vq->reset_until_tick = ret_state->state == VIRTIO_BROKEN;
	port->n_resets += ret_state->state == VIRTIO_BROKEN;
	user->is_started[i] = ret_state->is_started != 0;
	return ret_state->state == VIRTIO_GONE ||
			       ret_state->state > VIRTIO_LINKED ?
		       say_damaged(port, "a queue", reason) :
		       0;
}

static int resume_rxq(struct virtio_port *port, uint32_t i,
		      const struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct virtio_rxq *rxq = &port->rxqs[i / 2];
	const uint32_t n = rxq->vq.n_entries;
	char name[MR_PARCEL_NAME_BYTES];
	struct queue_state state;
	int err = resume_queue(port, i, parcel, &state, reason);

	if (err == 0)
		err = mr_pool_claim_posted(port->base.pool, parcel,
					   mr_parcel_name(name, "posted", i),
					   rxq->bufs, n, reason);
	if (err < 0)
		return err;
	for (uint32_t at = 0; at < n; at++)
		if (rxq->bufs[at] % rxq->page_bytes != 0)
			return say_damaged(port, "an rx buffer", reason);
	if (state.n_skip > n || state.state > VIRTIO_BROKEN)
		return say_damaged(port, "an rx queue", reason);
	rxq->vq.n_avail = (uint16_t)(rxq->vq.n_used + n); /* a lap */
	rxq->n_bufs = n;
	rxq->n_skip = state.n_skip;
	rxq->state = state.state;
	rxq->is_armed = true; /* perhaps */
	return 0;
}

/* The length of the chain at the start of n places; 0: that is none. */
static uint32_t check_chain(const uint8_t *chains, uint32_t n)
{
	const uint32_t len = chains[0] & ~(HAS_BUF | VIRTIO_CHAIN_DONE);

	if (len == 0 || len > VIRTIO_MAX_CHAIN || len > n ||
	    (len == 1 && !(chains[0] & HAS_BUF)))
		return 0;
	for (uint32_t i = 1; i < len; i++)
		if ((chains[i] & ~HAS_BUF) != 0)
			return 0;
	return len;
}

static uint32_t count_bufs(const uint8_t *chains, size_t n)
{
	uint32_t n_bufs = 0;

	for (size_t i = 0; i < n; i++)
		n_bufs += (chains[i] & HAS_BUF) != 0;
	return n_bufs;
}

/* Fill in what is posted. False: these are no chains. */
static bool set_chains(struct virtio_txq *txq, const uint8_t *chains,
		       const uint64_t *addrs)
{
	const uint32_t n = txq->head - txq->tail;
	uint32_t len;

	for (uint32_t i = 0; i < n; i += len) {
		len = check_chain(chains + i, n - i);
		if (len == 0)
			return false;
		txq->n_frames++;
		txq->n_odd += (len > 1) +
			      ((chains[i] & VIRTIO_CHAIN_DONE) != 0);
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t place = (txq->tail + i) & txq->vq.mask;

		txq->chains[place] = chains[i] & (uint8_t)~HAS_BUF;
		txq->bufs[place] =
			chains[i] & HAS_BUF ? *addrs++ : MR_ADDR_NONE;
	}
	return true;
}

static int resume_txq(struct virtio_port *port, uint32_t i,
		      const struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct virtio_txq *txq = &port->txqs[i / 2];
	const void *chains = NULL;
	char name[MR_PARCEL_NAME_BYTES];
	struct queue_state state;
	uint64_t *addrs;
	size_t n = 0;
	int err = resume_queue(port, i, parcel, &state, reason);

	if (err == 0)
		err = mr_parcel_find(parcel, mr_parcel_name(name, "chains", i),
				     CHAINS_LAYOUT, &chains, &n, reason);
	if (err < 0)
		return err;
	if (n > txq->vq.n_entries || n != state.head - state.tail)
		return say_damaged(port, "a tx queue", reason);
	addrs = mr_alloc(port->base.ctx, 0, (n + 1) * sizeof(addrs[0]));
	if (addrs == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for queues",
			       port->base.info->name);
	txq->head = state.head;
	txq->tail = state.tail;
	txq->state = state.state;
	txq->is_armed = true; /* perhaps */
	err = mr_pool_claim_posted(port->base.pool, parcel,
				   mr_parcel_name(name, "posted", i), addrs,
				   count_bufs(chains, n), reason);
	if (err == 0 && !set_chains(txq, chains, addrs))
		err = say_damaged(port, "a tx queue", reason);
	mr_free(port->base.ctx, addrs);
	return err;
}

static int resume(struct mr_port *base, struct mr_parcel *parcel,
		  struct mr_reason *reason)
{
	struct virtio_port *port = (struct virtio_port *)base;
	int err = resume_link(port, parcel, reason);

	for (uint32_t i = 0; i < n_vqs(port) && err == 0; i += 2) {
		err = resume_rxq(port, i, parcel, reason);
		if (err == 0)
			err = resume_txq(port, i + 1, parcel, reason);
	}
	if (err == 0)
		mri_virtio_tick(port); /* for a back end that is away */
	return err;
}

const struct mr_hand_over_ops mri_virtio_user_hand_over = {
	.offer = offer,
	.take = take,
	.give = give,
	.resume = resume,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of virtio-user: one piece for all rings, and the segments of the
 * region. The back end maps their memfds.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <millrace/driver_mem.h>

#include "virtio_user.h"

enum {
	OS_PAGE_BYTES = 4096,
	/* Of a ring's entry: descriptor, avail, used, header slot. */
	ENTRY_BYTES = 16 + 2 + 8 + VIRTIO_HEADER_SLOT_BYTES,
};

static int tell_region(struct virtio_user *user, uint32_t i)
{
	struct vhost_msg msg = { .request = VHOST_ADD_MEM_REG,
				 .n_bytes = sizeof(msg.slot),
				 .slot.region = user->regions[i] };

	return mri_user_tell(user, &msg, &user->region_fds[i], 1);
}

static int tell_table(struct virtio_user *user)
{
	struct vhost_msg msg = { .request = VHOST_SET_MEM_TABLE,
				 .n_bytes = 8, /* its number, padding */
				 .table.n = user->n_regions };

	for (uint32_t i = 0; i < user->n_regions; i++)
		msg.table.regions[i] = user->regions[i];
	msg.n_bytes += user->n_regions * (uint32_t)sizeof(user->regions[0]);
	return mri_user_tell(user, &msg, user->region_fds, user->n_regions);
}

/* Wait until the back end has mapped its memory. */
static int await_memory(struct virtio_user *user)
{
	uint64_t features;

	if (virtio_user_has(user, VHOST_P_REPLY_ACK))
		return 0; /* mri_user_tell() has waited */
	return mri_user_ask_u64(user, VHOST_GET_FEATURES, &features);
}

int mri_user_tell_memory(struct virtio_user *user)
{
	int err = 0;

	if (user->n_regions > user->max_regions)
		return -EREMOTEIO; /* a new back end, which takes fewer */
	if (!virtio_user_has(user, VHOST_P_CONFIGURE_MEM_SLOTS))
		err = tell_table(user);
	else
		for (uint32_t i = 0; i < user->n_regions && err == 0; i++)
			err = tell_region(user, i);
	if (err == 0)
		err = await_memory(user);
	user->has_memory = err == 0;
	return err;
}

/* Add the last piece, unless the back end is away: it gets all on return. */
static int tell_last_region(struct virtio_user *user)
{
	int err;

	if (!user->has_memory)
		return 0;
	if (virtio_user_has(user, VHOST_P_CONFIGURE_MEM_SLOTS))
		err = tell_region(user, user->n_regions - 1);
	else
		err = tell_table(user);
	if (err == 0)
		err = await_memory(user);
	if (err == 0 || err == -EREMOTEIO)
		return err;
	(void)shutdown(user->fd, SHUT_RDWR); /* take_events() starts over */
	return 0;
}

/* The region has another segment. */
static int add_segment(void *opaque, const struct mr_segment_info *segment,
		       struct mr_reason *reason)
{
	const struct virtio_port *port = opaque;
	struct virtio_user *user = port->user;
	const uint64_t addr = user->region_iova + segment->addr;
	int err = 0;

	pthread_mutex_lock(&user->lock);
	mri_user_allow(user, VIRTIO_USER_TIMEOUT_MS);
	if (user->n_regions == user->max_regions) {
		err = mr_fail(reason, -ENOSPC,
			      "%s: the back end takes %u pieces of memory, all "
			      "in use: give the pool its full size at once",
			      port->base.info->name, user->max_regions);
	} else {
		user->regions[user->n_regions] =
			(struct vhost_region){ addr, segment->n_bytes, addr,
					       0 };
		user->region_fds[user->n_regions++] = segment->fd;
		err = tell_last_region(user);
		if (err < 0) {
			user->n_regions--;
			err = mri_user_refuse(port, err, reason);
		}
	}
	pthread_mutex_unlock(&user->lock);
	return err;
}

/* Segments are pinned: none is removed before the port closes. */
static void remove_segment(void *opaque, const struct mr_segment_info *segment)
{
	(void)opaque;
	(void)segment;
}

/* Whether it is what make_file() made: no access can kill this process. */
static bool is_file(int fd, uint64_t n_bytes)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat found;

	return seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &found) == 0 &&
	       (uint64_t)found.st_size == n_bytes;
}

static bool make_file(uint64_t n_bytes, int *ret_fd)
{
	*ret_fd = mr_memfd_create("virtio-rings", 0);
	return *ret_fd >= 0 && ftruncate(*ret_fd, (off_t)n_bytes) == 0 &&
	       fcntl(*ret_fd, F_ADD_SEALS,
		     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

/* Memory for all rings, in one piece, because pieces are few. */
static int make_ring_memory(struct virtio_port *port, struct mr_reason *reason)
{
	const struct virtio_options *o = &port->options;
	struct virtio_user *user = port->user;
	struct vhost_region *region = &user->regions[0];
	uint64_t n_bytes = 0;
	void *memory;

	n_bytes +=
		o->n_rx_entries != 0 ? o->n_rx_entries : VIRTIO_DEFAULT_ENTRIES;
	n_bytes +=
		o->n_tx_entries != 0 ? o->n_tx_entries : VIRTIO_DEFAULT_ENTRIES;
	/* Three pieces per pair, each on OS pages of its own. */
	n_bytes = o->n_queues * (n_bytes * ENTRY_BYTES + 6 * OS_PAGE_BYTES);
	n_bytes =
		(n_bytes + OS_PAGE_BYTES - 1) & ~(uint64_t)(OS_PAGE_BYTES - 1);
	if (port->base.is_away && !is_file(user->region_fds[0], n_bytes))
		return mr_fail(reason, -EPROTO,
			       "%s: the state lacks the memory of the rings",
			       port->base.info->name);
	if (!port->base.is_away && !make_file(n_bytes, &user->region_fds[0]))
		return mr_fail(reason, -ENOMEM, "%s: no memory for rings: %s",
			       port->base.info->name, mr_strerror(errno));
	memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      user->region_fds[0], 0);
	if (memory == MAP_FAILED)
		return mr_fail(reason, -ENOMEM, "%s: no memory for rings: %s",
			       port->base.info->name, mr_strerror(errno));
	(void)madvise(memory, n_bytes, MADV_DONTFORK);
	user->rings = memory;
	if (!port->base.is_away)
		region->guest_addr = region->user_addr = (uintptr_t)memory;
	region->n_bytes = n_bytes;
	user->n_regions = 1;
	return 0;
}

int mri_user_alloc_dma(struct virtio_port *port, uint64_t n_bytes,
		       struct mr_dma *ret_dma, struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	const uint64_t at = user->n_used_bytes;

	n_bytes =
		(n_bytes + OS_PAGE_BYTES - 1) & ~(uint64_t)(OS_PAGE_BYTES - 1);
	if (at + n_bytes > user->regions[0].n_bytes)
		return mr_fail(reason, -ENOMEM, "%s: no memory for rings",
			       port->base.info->name);
	user->n_used_bytes += n_bytes;
	*ret_dma = (struct mr_dma){ user->rings + at,
				    user->regions[0].guest_addr + at, n_bytes };
	return 0;
}

void mri_user_free_dma(struct virtio_port *port, struct mr_dma *dma)
{
	(void)port;
	*dma = (struct mr_dma){ 0 };
}

int mri_user_memory_open(struct virtio_port *port, struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	int err = mr_region_pin(port->base.region, port->base.info->name,
				UINT64_MAX);

	if (err < 0)
		return mr_fail(reason, err, "%s: too many ports on one region",
			       port->base.info->name);
	user->is_pinned = true;
	err = make_ring_memory(port, reason);
	return err < 0 ? err :
			 mr_region_listen(port->base.region, add_segment,
					  remove_segment, port, reason);
}

void mri_user_memory_close(struct virtio_port *port)
{
	struct virtio_user *user = port->user;

	mr_region_unlisten(port->base.region, port);
	if (user->is_pinned)
		mr_region_unpin(port->base.region, port->base.info->name,
				UINT64_MAX);
	if (user->rings != NULL)
		munmap(user->rings, user->regions[0].n_bytes);
	mr_fd_close(user->region_fds[0]);
}

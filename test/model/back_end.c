/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "model/back_end.h"
#include "support/unit.h"

enum {
	HEADER_BYTES = 12,
	VERSION = 1,
	REPLY = 4,
	NEED_REPLY = 8,
	MAX_AREAS = 40,
	MAX_FDS = 8,
	N_QUEUES = 4,
	RECONNECT_MS = 10,
};

#define BIT(n) (UINT64_C(1) << (n))

struct region {
	uint64_t guest_addr, n_bytes, user_addr, offset;
};

/* On the socket the payload follows the header without a gap. */
struct message {
	uint32_t request, flags, n_bytes;
	union {
		uint64_t u64;
		uint32_t u32[2];
		uint64_t words[40];
	};
};

struct ring {
	uint32_t n_entries;
	uint64_t parts[3]; /* descriptors, avail, used */
	uint16_t n_used;
};

struct area {
	struct region region;
	uint8_t *bytes; /* of its file, from 0 */
};

struct back_end {
	struct back_end_config config;
	struct sockaddr_un addr;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	int listen_fd, fd, stop_fd;
	uint64_t protocol; /* as agreed */
	struct area areas[MAX_AREAS];
	uint32_t n_areas;
	struct ring rings[N_QUEUES];
	uint32_t counts[BACK_END_N_REQUESTS];
	uint64_t values[BACK_END_N_REQUESTS];
};

static void forget(struct back_end *b)
{
	pthread_mutex_lock(&b->lock);
	for (uint32_t i = 0; i < b->n_areas; i++)
		munmap(b->areas[i].bytes,
		       b->areas[i].region.offset + b->areas[i].region.n_bytes);
	b->n_areas = 0;
	memset(b->rings, 0, sizeof(b->rings));
	b->protocol = 0;
	pthread_mutex_unlock(&b->lock);
}

/* ---- rings ---- */

/* n_bytes at an address of the port's; NULL: in no area. */
static void *at(const struct back_end *b, uint64_t addr, uint64_t n_bytes)
{
	for (uint32_t i = 0; i < b->n_areas; i++) {
		const struct region *region = &b->areas[i].region;
		const uint64_t offset = addr - region->user_addr;

		if (offset < region->n_bytes &&
		    n_bytes <= region->n_bytes - offset)
			return b->areas[i].bytes + region->offset + offset;
	}
	return NULL;
}

uint32_t back_end_use(struct back_end *b, uint32_t queue, uint32_t n,
		      uint32_t n_bytes)
{
	struct ring *ring = &b->rings[queue % N_QUEUES];
	uint32_t n_used = 0;
	uint16_t *avail, *used;

	pthread_mutex_lock(&b->lock);
	avail = at(b, ring->parts[1], 4 + 2 * ring->n_entries);
	used = at(b, ring->parts[2], 4 + 8 * ring->n_entries);
	while (avail != NULL && used != NULL && ring->n_entries != 0 &&
	       n_used < n &&
	       ring->n_used != __atomic_load_n(&avail[1], __ATOMIC_ACQUIRE)) {
		const uint32_t i = ring->n_used++ % ring->n_entries;
		const uint64_t entry = avail[2 + i] | (uint64_t)n_bytes << 32;

		__atomic_store_n((uint64_t *)(void *)(used + 2 + 4 * i), entry,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&used[1], ring->n_used, __ATOMIC_RELEASE);
		n_used++;
	}
	pthread_mutex_unlock(&b->lock);
	return n_used;
}

void back_end_scribble(struct back_end *b, uint32_t queue, uint32_t part,
		       uint32_t offset, uint16_t value)
{
	uint16_t *word;

	pthread_mutex_lock(&b->lock);
	word = at(b, (b->rings[queue % N_QUEUES].parts[part % 3] + offset) & ~1,
		  2);
	if (word != NULL)
		__atomic_store_n(word, value, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&b->lock);
}

/* ---- requests ---- */

static void map(struct back_end *b, const uint64_t words[4], int fd)
{
	struct area *area = &b->areas[b->n_areas];
	void *bytes;

	if (fd < 0 || b->n_areas == MAX_AREAS)
		return;
	memcpy(&area->region, words, sizeof(area->region));
	bytes = mmap(NULL, area->region.offset + area->region.n_bytes,
		     PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	area->bytes = bytes;
	b->n_areas++;
}

/* What to answer to a request that asks; false: it only tells. */
static bool answer(const struct back_end *b, const struct message *msg,
		   uint64_t *ret_value)
{
	switch (msg->request) {
	case BACK_END_GET_FEATURES:
		*ret_value = b->config.features | BIT(30) | BIT(32);
		return true;
	case BACK_END_GET_PROTOCOL:
		*ret_value = BIT(0) | BIT(3) | BIT(4) | BIT(15);
		return true;
	case BACK_END_GET_QUEUE_NUM:
		*ret_value = N_QUEUES / 2;
		return true;
	case BACK_END_GET_MAX_SLOTS:
		*ret_value = MAX_AREAS;
		return true;
	case BACK_END_GET_VRING_BASE:
		*ret_value = msg->u32[0]; /* at entry 0 */
		return true;
	default:
		return false;
	}
}

/* Do what a request says. */
static void obey(struct back_end *b, const struct message *msg, const int *fds)
{
	struct ring *ring = &b->rings[msg->u32[0] % N_QUEUES];

	if (msg->request == 16)
		b->protocol = msg->u64;
	else if (msg->request == BACK_END_ADD_MEM_REG)
		map(b, &msg->words[1], fds[0]);
	else if (msg->request == BACK_END_SET_MEM_TABLE)
		for (uint32_t i = 0; i < msg->u32[0] && i < MAX_FDS; i++)
			map(b, &msg->words[1 + 4 * i], fds[i]);
	else if (msg->request == BACK_END_SET_VRING_NUM)
		*ring = (struct ring){ .n_entries = msg->u32[1] };
	else if (msg->request == BACK_END_SET_VRING_ADDR) {
		ring->parts[0] = msg->words[1];
		ring->parts[1] = msg->words[3];
		ring->parts[2] = msg->words[2];
	}
}

static enum back_end_trick choose(const struct back_end *b, uint32_t request)
{
	return b->config.choose == NULL ?
		       BACK_END_HONEST :
		       b->config.choose(b->config.arg, request);
}

static void spoil(struct message *reply, enum back_end_trick trick)
{
	if (trick == BACK_END_REFUSES)
		reply->u64 = 1;
	else if (trick == BACK_END_LIES)
		reply->u64 = UINT64_MAX;
	else if (trick == BACK_END_WRONG_REQUEST)
		reply->request++;
	else if (trick == BACK_END_WRONG_FLAGS)
		reply->flags = VERSION;
	else if (trick == BACK_END_WRONG_SIZE)
		reply->n_bytes = 4;
}

/* False: the connection ends. */
static bool reply_to(const struct back_end *b, const struct message *msg)
{
	const enum back_end_trick trick = choose(b, msg->request);
	struct message reply = { .request = msg->request,
				 .flags = VERSION | REPLY,
				 .n_bytes = 8 };
	const bool asks = answer(b, msg, &reply.u64);
	uint8_t bytes[HEADER_BYTES + 8];
	size_t n_bytes = sizeof(bytes);

	if (trick == BACK_END_CLOSES)
		return false;
	if (trick == BACK_END_SILENT ||
	    (!asks && trick != BACK_END_UNASKED &&
	     !(msg->flags & NEED_REPLY && b->protocol & BIT(3))))
		return true;
	spoil(&reply, trick);
	if (trick == BACK_END_LATE)
		usleep(b->config.late_ms * 1000);
	memcpy(bytes, &reply, HEADER_BYTES);
	memcpy(bytes + HEADER_BYTES, &reply.u64, sizeof(reply.u64));
	if (trick == BACK_END_HALF_HEADER)
		n_bytes = HEADER_BYTES / 2;
	for (int i = 0; i < 1 + (trick == BACK_END_TWICE); i++)
		if (send(b->fd, bytes, n_bytes, MSG_NOSIGNAL) < 0)
			return false;
	return true;
}

static ssize_t receive(int fd, struct message *msg, int fds[MAX_FDS])
{
	union {
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec data = { msg, HEADER_BYTES };
	struct msghdr header = { .msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	const ssize_t n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	const struct cmsghdr *c = CMSG_FIRSTHDR(&header);

	for (int i = 0; i < MAX_FDS; i++)
		fds[i] = -1;
	if (n == HEADER_BYTES && c != NULL)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (n != HEADER_BYTES || msg->n_bytes > sizeof(msg->words))
		return -1;
	return msg->n_bytes == 0 ?
		       0 :
		       recv(fd, msg->words, msg->n_bytes, MSG_WAITALL);
}

static bool serve_one(struct back_end *b)
{
	struct message msg = { 0 };
	int fds[MAX_FDS];
	const ssize_t n = receive(b->fd, &msg, fds);
	const bool is_good =
		n == (ssize_t)msg.n_bytes && msg.request < BACK_END_N_REQUESTS;

	pthread_mutex_lock(&b->lock);
	if (is_good) {
		b->counts[msg.request]++;
		b->values[msg.request] = msg.u64;
		obey(b, &msg, fds);
	}
	pthread_mutex_unlock(&b->lock);
	for (int i = 0; i < MAX_FDS; i++)
		if (n >= 0 && fds[i] >= 0)
			close(fds[i]);
	return is_good && reply_to(b, &msg);
}

/* ---- the thread ---- */

static void hang_up(struct back_end *b)
{
	if (b->fd < 0)
		return;
	close(b->fd);
	b->fd = -1;
	forget(b);
}

/* Wait for a moment, or for the end, which it returns. */
static bool is_over(const struct back_end *b, int fd, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = b->stop_fd, .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };

	(void)poll(fds, 2, timeout_ms);
	return fds[0].revents != 0;
}

static void meet(struct back_end *b)
{
	if (!b->config.connects) {
		b->fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		return;
	}
	b->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(b->fd, (const struct sockaddr *)&b->addr, sizeof(b->addr)) <
	    0)
		hang_up(b);
}

static void *run(void *arg)
{
	struct back_end *b = arg;

	for (;;) {
		const int fd = b->fd >= 0 ? b->fd : b->listen_fd;

		if (is_over(b, fd, fd >= 0 ? -1 : RECONNECT_MS))
			break;
		if (b->fd < 0)
			meet(b);
		else if (!serve_one(b))
			hang_up(b);
	}
	hang_up(b);
	return NULL;
}

struct back_end *back_end_start(const struct back_end_config *config)
{
	struct back_end *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->config = *config;
	b->addr.sun_family = AF_UNIX;
	snprintf(b->addr.sun_path, sizeof(b->addr.sun_path), "%s",
		 config->path);
	b->fd = b->listen_fd = -1;
	b->stop_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&b->lock, NULL);
	if (!config->connects) {
		unlink(config->path);
		b->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(b->listen_fd,
				      (const struct sockaddr *)&b->addr,
				      sizeof(b->addr)),
				 0);
		assert_int_equal(listen(b->listen_fd, 1), 0);
	}
	assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
	return b;
}

void back_end_stop(struct back_end *b)
{
	if (b == NULL)
		return;
	assert_int_equal(eventfd_write(b->stop_fd, 1), 0);
	pthread_join(b->thread, NULL);
	if (b->listen_fd >= 0) {
		close(b->listen_fd);
		unlink(b->config.path);
	}
	close(b->stop_fd);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

uint32_t back_end_count(struct back_end *b, uint32_t request)
{
	uint32_t n;

	pthread_mutex_lock(&b->lock);
	n = b->counts[request];
	pthread_mutex_unlock(&b->lock);
	return n;
}

uint64_t back_end_last(struct back_end *b, uint32_t request)
{
	uint64_t value;

	pthread_mutex_lock(&b->lock);
	value = b->values[request];
	pthread_mutex_unlock(&b->lock);
	return value;
}

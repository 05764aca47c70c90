/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "support/random.h"
#include "vhost_flood.h"
#include "virtio_spec.h"

enum {
	AT_ONCE = 8,
	MAX_FDS = VHOST_MAX_REGIONS,
	HEADER_BYTES = VHOST_HEADER_BYTES
};

static struct {
	uint64_t n_refused; /* by a reply, */
	uint64_t n_dropped; /* or with the connection */
} counts;

static void print_counts(void)
{
	printf("vhost: %" PRIu64 " malformed messages: %" PRIu64
	       " refused, %" PRIu64 " ended the connection\n",
	       counts.n_refused + counts.n_dropped, counts.n_refused,
	       counts.n_dropped);
}

/* ---- a message ---- */

struct letter {
	struct vhost_msg msg;
	int fds[MAX_FDS];
	uint32_t n_fds;
};

/* Nearly always one that the port can refuse by a reply: others end the
 * connection, and a new one takes longer. */
static uint32_t choose_request(uint64_t *state)
{
	static const uint8_t known[] = {
		VHOST_SET_FEATURES,   VHOST_SET_PROTOCOL_FEATURES,
		VHOST_SET_MEM_TABLE,  VHOST_ADD_MEM_REG,
		VHOST_REM_MEM_REG,    VHOST_SET_VRING_NUM,
		VHOST_SET_VRING_ADDR, VHOST_SET_VRING_BASE,
		VHOST_SET_VRING_KICK, VHOST_SET_VRING_CALL,
		VHOST_SET_VRING_ERR,  VHOST_SET_VRING_ENABLE,
		VHOST_SET_IN_FLIGHT,  VHOST_SET_MTU,
		VHOST_SET_STATUS,
	};

	return test_random(state, 64) == 0 ?
		       test_random(state, VHOST_N_REQUESTS + 4) :
		       known[test_random(state, sizeof(known))];
}

/* What would do, by request. Others have no payload. */
static void write_valid(const struct vhost_flood *flood, struct letter *letter,
			uint64_t *state)
{
	struct vhost_msg *msg = &letter->msg;
	uint32_t n_bytes = 8;

	letter->fds[0] = flood->memory_fd;
	letter->n_fds = 0;
	memset(&msg->table, 0, sizeof(msg->table));
	switch (msg->request) {
	case VHOST_SET_MEM_TABLE:
		n_bytes = 8 + sizeof(flood->region);
		msg->table.n = 1;
		msg->table.regions[0] = flood->region;
		letter->n_fds = 1;
		break;
	case VHOST_ADD_MEM_REG:
	case VHOST_REM_MEM_REG:
		n_bytes = sizeof(msg->slot);
		msg->slot.region = flood->region;
		letter->n_fds = msg->request == VHOST_ADD_MEM_REG;
		break;
	case VHOST_SET_LOG_BASE:
		n_bytes = sizeof(msg->log);
		msg->log.n_bytes = 64;
		letter->n_fds = 1;
		break;
	case VHOST_GET_IN_FLIGHT:
	case VHOST_SET_IN_FLIGHT:
		n_bytes = sizeof(msg->in_flight);
		msg->in_flight = (struct vhost_in_flight){ 2048, 0, 2, 16, 0 };
		letter->n_fds = msg->request == VHOST_SET_IN_FLIGHT;
		break;
	case VHOST_SET_VRING_ADDR:
		n_bytes = sizeof(msg->addr);
		msg->addr = (struct vhost_vring_addr){
			test_random(state, 2),
			0,
			flood->region.user_addr,
			flood->region.user_addr + 0x800,
			flood->region.user_addr + 0x400,
			0
		};
		break;
	case VHOST_SET_VRING_KICK:
	case VHOST_SET_VRING_CALL:
	case VHOST_SET_VRING_ERR:
		msg->u64 = test_random(state, 2);
		letter->n_fds = 1;
		break;
	case VHOST_GET_FEATURES:
	case VHOST_GET_PROTOCOL_FEATURES:
	case VHOST_GET_QUEUE_NUM:
	case VHOST_GET_MAX_MEM_SLOTS:
	case VHOST_GET_STATUS:
	case VHOST_SET_OWNER:
	case VHOST_RESET_OWNER:
	case VHOST_RESET_DEVICE:
		n_bytes = 0;
		break;
	default:
		msg->vring = (struct vhost_vring){ test_random(state, 2), 16 };
	}
	msg->n_bytes = n_bytes;
}

static uint64_t edge(uint64_t *state)
{
	const uint64_t near = UINT64_C(1) << test_random(state, 64);

	switch (test_random(state, 5)) {
	case 0:
		return near + test_random(state, 3) - 1;
	case 1:
		return test_random_u64(state);
	case 2:
	case 3:
		return -near;
	default:
		return test_random(state, 256);
	}
}

/* Change a part of a message. */
static void spoil(struct letter *letter, uint64_t *state)
{
	struct vhost_msg *msg = &letter->msg;
	const uint32_t size = 1u << test_random(state, 4);
	const uint32_t n =
		msg->n_bytes < sizeof(msg->table) ? msg->n_bytes / size : 0;
	const uint64_t value = edge(state);

	switch (test_random(state, 64)) {
	case 0:
		msg->request = (uint32_t)value;
		break;
	case 1:
		msg->flags ^= 1u << test_random(state, 32);
		break;
	case 2:
		msg->n_bytes = test_random(state, sizeof(msg->table) + 64);
		break;
	case 3:
		letter->n_fds = test_random(state, MAX_FDS + 1);
		break;
	default:
		if (n > 0)
			memcpy((uint8_t *)&msg->table +
				       test_random(state, n) * size,
			       &value, size);
	}
}

/* ---- sending them ---- */

static int files[4]; /* what messages may carry; the first is the memory's */

static void fill_fds(const struct vhost_flood *flood, struct letter *letter,
		     uint64_t *state)
{
	const bool is_event = letter->msg.request >= VHOST_SET_VRING_KICK &&
			      letter->msg.request <= VHOST_SET_VRING_ERR;

	files[0] = flood->memory_fd;
	for (uint32_t i = 0; i < letter->n_fds; i++) {
		const bool is_wrong = test_random(state, 16) == 0;

		letter->fds[i] = is_wrong ? files[test_random(state, 4)] :
					    files[is_event];
	}
}

/* All bytes that the header announces, so that the next one is separate. */
static void send_letter(const struct vhost_flood *flood,
			const struct letter *letter)
{
	const struct vhost_msg *msg = &letter->msg;

	/* A longer payload is refused before it is read. */
	if (msg->n_bytes > sizeof(msg->table))
		(void)send(flood->fd, msg, HEADER_BYTES, MSG_NOSIGNAL);
	else
		(void)mri_vhost_send(flood->fd, msg, letter->fds,
				     letter->n_fds);
}

/* Whether it has a reply of its own; if it is wrong, the connection ends. */
static bool is_question(uint32_t request)
{
	const uint64_t questions = UINT64_C(1) << VHOST_GET_FEATURES |
				   UINT64_C(1) << VHOST_GET_VRING_BASE |
				   UINT64_C(1) << VHOST_GET_PROTOCOL_FEATURES |
				   UINT64_C(1) << VHOST_GET_QUEUE_NUM |
				   UINT64_C(1) << VHOST_GET_MAX_MEM_SLOTS |
				   UINT64_C(1) << VHOST_GET_STATUS;

	return request < 64 && questions >> request & 1;
}

static uint32_t count_refused(const uint8_t *bytes, size_t n_bytes)
{
	struct vhost_msg reply;
	uint32_t n = 0;

	for (size_t at = 0; at + HEADER_BYTES + 8 <= n_bytes;
	     at += HEADER_BYTES + reply.n_bytes) {
		memcpy(&reply, bytes + at, HEADER_BYTES + 8);
		n += reply.n_bytes == 8 && reply.u64 == 1 &&
		     !is_question(reply.request);
	}
	return n;
}

/* Take the replies. False: the port has ended the connection. */
static bool receive(const struct vhost_flood *flood, uint32_t *n_refused)
{
	uint8_t bytes[4096];
	size_t n_bytes = 0;
	ssize_t n;

	do {
		n = recv(flood->fd, bytes + n_bytes, sizeof(bytes) - n_bytes,
			 MSG_DONTWAIT);
		n_bytes += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	*n_refused = count_refused(bytes, n_bytes);
	return n < 0 && errno == EAGAIN;
}

static void send_one(struct vhost_flood *flood, uint64_t *state)
{
	struct letter letter = {
		.msg = { .request = choose_request(state),
			 .flags = VHOST_VERSION },
	};

	if (test_random(state, 64) != 0)
		letter.msg.flags |= VHOST_NEED_REPLY;
	write_valid(flood, &letter, state);
	for (uint32_t k = test_random(state, 2) + 1; k > 0; k--)
		spoil(&letter, state);
	fill_fds(flood, &letter, state);
	send_letter(flood, &letter);
}

static void make_files(void)
{
	int sockets[2];

	FUZZ_CHECK(atexit(print_counts) == 0);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
			      sockets) == 0);
	files[1] = eventfd(0, EFD_CLOEXEC);
	files[2] = sockets[0];
	files[3] = sockets[1];
}

void vhost_flood(struct vhost_flood *flood, uint64_t *state, uint32_t n)
{
	if (files[1] == 0)
		make_files();
	for (uint32_t i = 0; i < n; i += AT_ONCE) {
		uint32_t n_refused;

		for (uint32_t k = 0; k < AT_ONCE; k++)
			send_one(flood, state);
		mr_port_poll(flood->port);
		if (!receive(flood, &n_refused)) {
			counts.n_dropped++;
			flood->connect(flood->opaque, flood);
		}
		counts.n_refused += n_refused;
	}
}

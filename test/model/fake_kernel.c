/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/genetlink.h>
#include <linux/rtnetlink.h>

#include "fake_kernel.h"
#include "support/invariants.h"
#include "support/test.h"

struct fake fake;

static uint64_t held[4096];
static uint32_t n_held;

ssize_t __wrap_sendto(int fd, const void *bytes, size_t n, int flags,
		      const struct sockaddr *to, socklen_t n_to);
ssize_t __wrap_recvfrom(int fd, void *bytes, size_t n, int flags,
			struct sockaddr *from, socklen_t *n_from);
int __wrap_setsockopt(int fd, int level, int option, const void *value,
		      socklen_t n_bytes);
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest);
int __wrap_getsockopt(int fd, int level, int option, void *value,
		      socklen_t *n_bytes);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);

static void complete_one(uint64_t addr)
{
	struct xring *comp = &fake.txq->comp;
	const uint32_t producer = *comp->producer;

	assert_true(producer - *comp->consumer < FAKE_RING);
	((uint64_t *)comp->entries)[producer & comp->mask] = addr;
	*comp->producer = producer + 1;
}

static uint64_t take_one(void)
{
	struct xring *tx = &fake.txq->tx;
	const uint32_t consumer = *tx->consumer;
	const struct mr_frame *entries = tx->entries;

	*tx->consumer = consumer + 1;
	return entries[consumer & tx->mask].addr;
}

static uint32_t n_in_tx(void)
{
	return *fake.txq->tx.producer - *fake.txq->tx.consumer;
}

ssize_t __wrap_sendto(int fd, const void *bytes, size_t n, int flags,
		      const struct sockaddr *to, socklen_t n_to)
{
	struct fake_answer answer = { .n_taken = UINT32_MAX };

	(void)fd, (void)bytes, (void)n, (void)flags, (void)to, (void)n_to;
	if (fake.n_sendto < fake.n_answers)
		answer = fake.answers[fake.n_sendto];
	fake.n_sendto++;
	fake.is_in_kernel = true;
	for (uint32_t i = 0; i < answer.n_taken && n_in_tx() > 0; i++)
		complete_one(take_one());
	for (uint32_t i = 0; i < answer.n_held && n_in_tx() > 0; i++)
		held[n_held++] = take_one();
	fake.is_in_kernel = false;
	errno = answer.error;
	return answer.error != 0 ? -1 : 0;
}

ssize_t __wrap_recvfrom(int fd, void *bytes, size_t n, int flags,
			struct sockaddr *from, socklen_t *n_from)
{
	(void)fd, (void)bytes, (void)n, (void)flags, (void)from, (void)n_from;
	fake.n_recvfrom++;
	errno = EAGAIN;
	return -1;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value,
		      socklen_t n_bytes)
{
	(void)fd, (void)level, (void)value, (void)n_bytes;
	errno = ENOPROTOOPT;
	return option == fake.refused_option ? -1 : 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	(void)ret_rest;
	fake_complete(fake.n_completed_per_sleep);
	fake.now_ns += (uint64_t)time->tv_nsec;
	return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value,
		      socklen_t *n_bytes)
{
	struct xsk_statistics *statistics = value;

	(void)fd;
	if (level == SOL_SOCKET) { /* the cookie of the network namespace */
		memset(value, 1, *n_bytes);
		return 0;
	}
	assert_int_equal(level, SOL_XSK);
	assert_int_equal(option, XSK_STATISTICS);
	assert_int_equal(*n_bytes, sizeof(*statistics));
	statistics->tx_invalid_descs = fake.n_invalid_descs;
	return 0;
}

/*
 * Generic netlink: the driver asks the controller for the family, and the
 * family for an interface. Each answer has one attribute.
 */
static struct {
	struct nlmsghdr header;
	struct genlmsghdr command;
	struct rtattr attribute;
	uint32_t value;
	struct nlmsghdr end;
	struct nlmsgerr error;
} fake_answer;

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	enum { FAMILY = 77, ZC_MAX_SEGS = 4 };
	const struct nlmsghdr *request = bytes;
	const bool is_control = request->nlmsg_type == GENL_ID_CTRL;

	(void)fd, (void)flags;
	fake_answer.header.nlmsg_len = offsetof(typeof(fake_answer), end);
	fake_answer.header.nlmsg_type = request->nlmsg_type;
	/* If both are 0: an ACK, or the end of a dump. */
	fake_answer.end.nlmsg_type =
		is_control || fake.dump_error == 0 ? NLMSG_ERROR : NLMSG_DONE;
	fake_answer.end.nlmsg_len = NLMSG_LENGTH(sizeof(struct nlmsgerr));
	fake_answer.error.error = !is_control           ? fake.dump_error :
				  fake.zc_max_segs == 0 ? -2 :
							  0;
	fake_answer.attribute.rta_len =
		RTA_LENGTH(is_control ? sizeof(uint16_t) : sizeof(uint32_t));
	fake_answer.attribute.rta_type =
		is_control ? CTRL_ATTR_FAMILY_ID : ZC_MAX_SEGS;
	fake_answer.value = is_control ? FAMILY : fake.zc_max_segs;
	assert_true(is_control || request->nlmsg_type == FAMILY);
	return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
	(void)fd, (void)n, (void)flags;
	memcpy(bytes, &fake_answer, sizeof(fake_answer));
	return sizeof(fake_answer);
}

static uint64_t fake_clock(void *opaque)
{
	(void)opaque;
	fake.n_clock_reads++;
	return fake.now_ns;
}

static void make_ring(struct xring *ring, uint32_t n_entries,
		      size_t entry_bytes)
{
	*ring = (struct xring){
		.producer = test_calloc(1, sizeof(uint32_t)),
		.consumer = test_calloc(1, sizeof(uint32_t)),
		.flags = test_calloc(1, sizeof(uint32_t)),
		.entries = test_calloc(n_entries, entry_bytes),
		.n_entries = n_entries,
		.mask = n_entries - 1,
	};
}

static void free_ring(struct xring *ring)
{
	test_free(ring->producer);
	test_free(ring->consumer);
	test_free(ring->flags);
	test_free(ring->entries);
}

static void make_queues(struct fake_config config)
{
	struct xdp_rxq *rxq = fake.rxq;
	struct xdp_txq *txq = fake.txq;

	make_ring(&rxq->rx, FAKE_RING, sizeof(struct mr_frame));
	make_ring(&rxq->fill, 2 * FAKE_RING, sizeof(uint64_t));
	make_ring(&txq->tx, FAKE_RING, sizeof(struct mr_frame));
	make_ring(&txq->comp, FAKE_RING, sizeof(uint64_t));
	rxq->port = txq->port = fake.port;
	rxq->chunk_shift = txq->chunk_shift =
		(uint32_t)__builtin_ctz(fake.port->base.page_bytes);
	rxq->n_bufs = FAKE_RING;
	rxq->base.n_min = config.max_segs > 1 ? MR_MAX_SEGS : 1;
	rxq->base.burst = mri_xdp_rx_burst;
	rxq->base.queue.port = &fake.port->base;
	rxq->posted = test_calloc(4096 * 64, 1);
	txq->base.burst = mri_xdp_tx_burst;
	txq->base.queue.port = &fake.port->base;
	txq->chunk_mask = fake.port->base.page_bytes - 1;
	txq->max_segs = config.max_segs != 0 ? config.max_segs : 1;
	txq->has_csum = config.has_csum;
	txq->n_front_bytes = config.has_csum ? sizeof(struct xsk_tx_meta) : 0;
	txq->n_registered_bytes = fake.port->lease.n_bytes;
	txq->left = test_calloc(FAKE_RING, sizeof(uint64_t));
	txq->unknown = test_calloc(1, sizeof(uint64_t));
	*txq->tx.flags = XSK_RING_NEED_WAKEUP; /* always, as in copy mode */
}

void fake_open(struct fake_config config)
{
	struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
					    .clock = fake_clock };
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30, /* as much as Valgrind allows */
	};
	struct mr_pool_config pool_config = { .size = sizeof(pool_config),
					      .n_pages = FAKE_PAGES,
					      .page_bytes = config.page_bytes };
	struct mr_port *base;

	memset(&fake, 0, sizeof(fake));
	n_held = 0;
	assert_int_equal(mr_ctx_create(&ctx_config, &fake.ctx, NULL), 0);
	assert_int_equal(
		mr_region_create(fake.ctx, &region_config, &fake.region, NULL),
		0);
	pool_config.region = fake.region;
	assert_int_equal(
		mr_pool_create(fake.ctx, &pool_config, &fake.pool, NULL), 0);
	assert_int_equal(mr_cache_create(fake.pool, &fake.cache, NULL), 0);
	fake.port = test_calloc(1, sizeof(*fake.port));
	fake.rxq = aligned_alloc(64, sizeof(*fake.rxq));
	fake.txq = aligned_alloc(64, sizeof(*fake.txq));
	memset(fake.rxq, 0, sizeof(*fake.rxq));
	memset(fake.txq, 0, sizeof(*fake.txq));

	base = &fake.port->base;
	base->ctx = fake.ctx;
	base->pool = fake.pool;
	base->region = fake.region;
	base->base = mr_region_base(base->region);
	base->page_bytes = config.page_bytes != 0 ? config.page_bytes : 4096;
	base->headroom_bytes = 128;
	fake.info = (struct mr_port_info){ .mtu_bytes = 9000 };
	base->info = &fake.info;
	fake.port->lease.n_bytes = mr_region_n_contiguous_bytes(base->region);
	make_queues(config);
	assert_int_equal(mri_xdp_rx_fill(fake.rxq), 0);
}

void fake_close(void)
{
	mri_xdp_tx_note_left(fake.txq);
	free_ring(&fake.rxq->rx);
	free_ring(&fake.rxq->fill);
	free_ring(&fake.txq->tx);
	free_ring(&fake.txq->comp);
	mri_xdp_rx_take_back(fake.rxq);
	mri_xdp_tx_take_back(fake.txq);
	test_free(fake.rxq->posted);
	test_free(fake.txq->left);
	test_free(fake.txq->unknown);
	free(fake.rxq);
	free(fake.txq);
	test_free(fake.port);
	mr_cache_destroy(fake.cache);
	assert_int_equal(mr_pool_destroy(fake.pool, NULL), 0);
	assert_int_equal(mr_region_destroy(fake.region, NULL), 0);
	mr_ctx_destroy(fake.ctx);
}

struct mr_frame fake_frame(uint32_t n_bytes, uint8_t seed)
{
	struct mr_frame frame = { .len = n_bytes };
	uint64_t addr;

	assert_int_equal(mr_frag_alloc_bulk(fake.cache, &addr, 1,
					    fake.port->base.page_bytes),
			 1);
	frame.addr = addr + fake.port->base.headroom_bytes;
	for (uint32_t i = 0; i < n_bytes; i++)
		mr_frame_data(fake.port->base.base, &frame)[i] =
			(uint8_t)(seed + i);
	return frame;
}

uint64_t fake_receive(uint32_t n_bytes, uint32_t flags)
{
	struct xring *fill = &fake.rxq->fill, *rx = &fake.rxq->rx;
	const uint32_t consumer = *fill->consumer, producer = *rx->producer;
	const uint64_t *buffers = fill->entries;

	assert_true(*fill->producer != consumer);
	assert_true(producer - *rx->consumer < FAKE_RING);
	((struct mr_frame *)rx->entries)[producer & rx->mask] =
		(struct mr_frame){ buffers[consumer & fill->mask] + 256,
				   n_bytes, flags };
	*fill->consumer = consumer + 1;
	*rx->producer = producer + 1;
	return buffers[consumer & fill->mask] + 256;
}

struct mr_frame fake_sent(uint32_t i)
{
	const struct mr_frame *entries = fake.txq->tx.entries;

	return entries[i & fake.txq->tx.mask];
}

void fake_complete(uint32_t n)
{
	while (n-- > 0 && n_held > 0)
		complete_one(held[--n_held]);
}

void fake_complete_addr(uint64_t addr)
{
	complete_one(addr);
}

struct mr_tx_stats fake_tx_stats(void)
{
	return fake.txq->base.stats;
}

struct mr_rx_stats fake_rx_stats(void)
{
	return fake.rxq->base.stats;
}

void fake_check_invariants(void)
{
	const struct mr_tx_stats tx = fake_tx_stats();
	const struct mr_rx_stats rx = fake_rx_stats();

	assert_true(invariants_of_tx_hold(&tx));
	assert_true(invariants_of_rx_hold(&rx));
}

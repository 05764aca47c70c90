/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost: whatever a peer and its guest write, no page is lost, and nothing
 * outside the memory that was shared is read or written.
 *
 * The first byte of an input chooses the features of a connection; the others
 * are steps: messages, stores into the rings and the records of what is in
 * flight, bursts, and floods of malformed messages. In one input of 16 a thread
 * changes the rings and records during the bursts.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <millrace/millrace.h>

#include "fuzz.h"
#include "support/invariants.h"
#include "vhost_flood.h"
#include "vhost_user.h"
#include "virtio_spec.h"

enum {
	SHARED_BYTES = 64 * 1024, /* in the table; the other half is not */
	GUEST_ADDR = 0x100000,
	N_ENTRIES = 16,
	RING_BYTES = 0x1000, /* of a pair's ring: desc, avail, used */
	AVAIL_AT = 0x400,
	USED_AT = 0x800,
	LOG_AT = 4 * RING_BYTES,
	LOG_BYTES = 36,          /* for fewer pages than there are */
	OTHER_BYTES = 64 * 1024, /* of a file: records, memory in floods */
	FLOOD_FACTOR = 4,
	UNTOUCHED = 0xa5,
};

#define FEATURES_PLAIN "\x01"
#define FEATURES_PACKED "\x03"
#define RX "\3"
#define TX "\4\x40"
#define POLL "\5"
#define RECORDS(at, bytes) "\x08" at "\x04" bytes
#define DESC(flags, length) "\7\1\0\x20" length flags

const struct fuzz_seed fuzz_seeds[] = {
	SEED(FEATURES_PLAIN DESC("\0\0", "\x80\0") RX TX POLL),
	SEED(FEATURES_PACKED DESC("\0\0", "\x80\0") RX TX POLL),
	SEED("\x0d" DESC("\1\0", "\x0c\0") DESC("\0\0", "\x80\1") RX RX),
	SEED("\x05\7\0\0\x20\x80\1\2\0" TX TX "\6" TX),
	SEED("\x00\0\1\1\0" POLL "\0\5\1\x48" POLL),
	SEED("\x01\0\x25\1\x28" POLL "\0\x26\1\x28" POLL "\0\x0b\1\x08" RX),
	SEED("\x01\1\x40nonsense instead of messages, in bytes" POLL),
	SEED("\x11\2\0\4\x08\0\0\1\0\0\0\1\0" RX RX),
	SEED("\x21" DESC("\0\0", "\x80\0") "\7\0\0\x20\x80\1\2\0" RX TX),
	SEED("\x01\2\0\x20\1\2" DESC("\0\0", "\x80\0") RX),
	SEED("\x41" DESC("\0\0", "\x80\0") RX RECORDS("\x08\0", "\1\0\x10\0")
		     RX),
	SEED("\x43" RECORDS("\x08\0", "\1\0\x10\0")
		     TX RECORDS("\x10\0", "\3\0\0\0") RX TX),
	SEED("\x43" RECORDS("\x40\2", "\1\0\0\0\1\0\1\0")
		     RX RECORDS("\x20\0", "\1\0\0\0\1\0\2\0") TX TX),
	SEED("\x00\x09\xff\1\2" RX TX),
	SEED("\x43\x09\xff\3\4" RX TX),
	{ NULL, 0 },
};

static struct {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_port *idle;
	int memory_fd;
	uint8_t *memory;
	int other_fd;
	uint8_t *other; /* OTHER_BYTES */
	struct sockaddr_un addr;
} world;

/* One connection, and the input that is left. */
struct run {
	struct mr_port *port;
	struct mr_cache *cache;
	int fd;
	bool is_packed;
	const uint8_t *bytes;
	size_t n_bytes;
	uint16_t n_avail[2];
	uint8_t choice;
};

static void *make_memory(size_t n_bytes, int *ret_fd)
{
	const int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(ftruncate(fd, (off_t)n_bytes) == 0);
	memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	FUZZ_CHECK(memory != MAP_FAILED);
	*ret_fd = fd;
	return memory;
}

static void make_world(void)
{
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 1024 };
	struct mr_port_config config = { .size = sizeof(config) };
	char spec[64];

	FUZZ_CHECK(mr_ctx_create(NULL, &world.ctx, NULL) == 0);
	FUZZ_CHECK(mr_pool_create(world.ctx, &pool_config, &world.pool, NULL) ==
		   0);
	/* What ports share is slow to close: this one keeps it. */
	snprintf(spec, sizeof(spec), "vhost:/tmp/fuzz-vhost-%d-idle.sock",
		 (int)getpid());
	config.pool = world.pool;
	FUZZ_CHECK(mr_port_open(world.ctx, spec, &config, &world.idle, NULL) ==
		   0);
	(void)unlink(strchr(spec, '/'));
	world.memory = make_memory(2 * SHARED_BYTES, &world.memory_fd);
	world.other = make_memory(OTHER_BYTES, &world.other_fd);
	world.addr.sun_family = AF_UNIX;
	snprintf(world.addr.sun_path, sizeof(world.addr.sun_path),
		 "/tmp/fuzz-vhost-%d.sock", (int)getpid());
}

static uint8_t next_u8(struct run *run)
{
	if (run->n_bytes == 0)
		return 0;
	run->n_bytes--;
	return *run->bytes++;
}

static uint16_t next_u16(struct run *run)
{
	const uint16_t low = next_u8(run);

	return (uint16_t)(low | next_u8(run) << 8);
}

/* The next n bytes, fewer at the end. */
static const uint8_t *next_bytes(struct run *run, size_t *n)
{
	const uint8_t *bytes = run->bytes;

	*n = *n < run->n_bytes ? *n : run->n_bytes;
	run->bytes += *n;
	run->n_bytes -= *n;
	return bytes;
}

/* ---- messages ---- */

static void send_message(struct run *run, const struct vhost_msg *msg, int fd)
{
	(void)mri_vhost_send(run->fd, msg, &fd, fd < 0 ? 0 : 1);
	mr_port_poll(run->port);
}

static void say_u64(struct run *run, uint32_t request, uint64_t value, int fd)
{
	const struct vhost_msg msg = { .request = request,
				       .flags = VHOST_VERSION,
				       .n_bytes = 8,
				       .u64 = value };

	send_message(run, &msg, fd);
}

static void say_vring(struct run *run, uint32_t request, uint32_t number,
		      uint32_t value)
{
	say_u64(run, request, number | (uint64_t)value << 32, -1);
}

static uint64_t features_of(uint8_t choice)
{
	return UINT64_C(1) << VIRTIO_F_VERSION_1 |
	       UINT64_C(1) << VIRTIO_F_INDIRECT_DESC |
	       (choice & 2 ? UINT64_C(1) << VIRTIO_F_RING_PACKED : 0) |
	       (choice & 4 ? UINT64_C(1) << VIRTIO_F_MRG_RXBUF : 0) |
	       (choice & 8 ? UINT64_C(1) << VIRTIO_F_EVENT_IDX : 0) |
	       (choice & 16 ? UINT64_C(1) << VIRTIO_F_CSUM |
				      UINT64_C(1) << VIRTIO_F_GUEST_CSUM |
				      UINT64_C(1) << VIRTIO_F_GUEST_TSO4 |
				      UINT64_C(1) << VIRTIO_F_HOST_TSO4 :
			      0) |
	       (choice & 32 ? UINT64_C(1) << VHOST_F_LOG_ALL : 0) |
	       UINT64_C(1) << VHOST_F_PROTOCOL_FEATURES;
}

static struct vhost_region shared_region(void)
{
	return (struct vhost_region){ GUEST_ADDR, SHARED_BYTES,
				      (uintptr_t)world.memory, 0 };
}

static void start_ring(struct run *run, uint32_t number)
{
	const uint64_t at = (uintptr_t)world.memory + number * RING_BYTES;
	const struct vhost_msg addr = {
		.request = VHOST_SET_VRING_ADDR,
		.flags = VHOST_VERSION,
		.n_bytes = sizeof(addr.addr),
		.addr = { number, 0, at, at + USED_AT, at + AVAIL_AT, 0 },
	};
	const int fd = eventfd(0, EFD_CLOEXEC);

	say_vring(run, VHOST_SET_VRING_NUM, number, N_ENTRIES);
	say_vring(run, VHOST_SET_VRING_BASE, number,
		  run->is_packed ? 0x80008000u : 0);
	send_message(run, &addr, -1);
	say_u64(run, VHOST_SET_VRING_CALL, number, fd);
	say_u64(run, VHOST_SET_VRING_KICK, number, fd);
	say_vring(run, VHOST_SET_VRING_ENABLE, number, 1);
	close(fd);
}

/* Let the rings resume where their records say. */
static void set_records(struct run *run)
{
	const struct vhost_msg msg = {
		.request = VHOST_SET_IN_FLIGHT,
		.flags = VHOST_VERSION,
		.n_bytes = sizeof(msg.in_flight),
		.in_flight = { OTHER_BYTES, 0, 2, N_ENTRIES, 0 },
	};

	send_message(run, &msg, world.other_fd);
}

/* What a driver does that behaves. */
static void set_up(struct run *run, uint8_t choice)
{
	const struct vhost_msg slot = { .request = VHOST_ADD_MEM_REG,
					.flags = VHOST_VERSION,
					.n_bytes = sizeof(slot.slot),
					.slot.region = shared_region() };

	const struct vhost_msg log = { .request = VHOST_SET_LOG_BASE,
				       .flags = VHOST_VERSION,
				       .n_bytes = sizeof(log.log),
				       .log = { LOG_BYTES, LOG_AT } };

	run->is_packed = choice & 2;
	if (choice & 32)
		send_message(run, &log, world.memory_fd);
	say_u64(run, VHOST_SET_FEATURES, features_of(choice), -1);
	send_message(run, &slot, world.memory_fd);
	if (choice & 64)
		set_records(run);
	start_ring(run, 0);
	start_ring(run, 1);
}

/* A message of any kind; in parts the payload of one that would do. */
static void step_message(struct run *run)
{
	struct vhost_msg msg = { .request = next_u8(run) % 48,
				 .flags = VHOST_VERSION };
	const uint8_t kind = next_u8(run);
	size_t n = next_u8(run);
	const bool has_records = msg.request == VHOST_SET_IN_FLIGHT;
	const int fds[] = { -1, has_records ? world.other_fd : world.memory_fd,
			    run->fd };

	if (kind & 1)
		msg.slot.region = shared_region();
	msg.n_bytes = (uint32_t)n;
	if (kind & 4) {
		const uint8_t *bytes = next_bytes(run, &n);

		memcpy(&msg.u64, bytes, n);
	}
	if (kind & 8)
		msg.flags |= VHOST_NEED_REPLY;
	if (msg.n_bytes > sizeof(msg) - VHOST_HEADER_BYTES)
		msg.n_bytes = sizeof(msg) - VHOST_HEADER_BYTES;
	send_message(run, &msg, fds[(kind >> 4) % 3]);
}

static void step_raw(struct run *run)
{
	size_t n = next_u8(run);
	const uint8_t *bytes = next_bytes(run, &n);

	(void)send(run->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	mr_port_poll(run->port);
}

/* ---- rings ---- */

static void step_store(struct run *run)
{
	const size_t at = next_u16(run) % (4 * RING_BYTES);
	size_t n = next_u8(run);
	const uint8_t *bytes = next_bytes(run, &n);

	memcpy(world.memory + at, bytes, n);
}

static void step_records(struct run *run)
{
	const size_t at = next_u16(run) % (4 * RING_BYTES);
	size_t n = next_u8(run);
	const uint8_t *bytes = next_bytes(run, &n);

	memcpy(world.other + at, bytes, n);
	set_records(run);
}

/* Make a descriptor available, which is valid more often than not. */
static void step_descriptor(struct run *run)
{
	const uint32_t number = next_u8(run) % 2;
	const uint64_t addr = GUEST_ADDR + next_u16(run);
	const uint32_t n_bytes = next_u16(run);
	const uint32_t flags = next_u16(run);
	uint8_t *ring = world.memory + number * RING_BYTES;
	const uint16_t at = run->n_avail[number]++;
	struct virtio_avail *avail = (void *)(ring + AVAIL_AT);
	struct virtio_packed_desc *packed = (void *)ring;
	struct virtio_desc *desc = (void *)ring;

	if (run->is_packed) {
		packed[at % N_ENTRIES].addr = addr;
		packed[at % N_ENTRIES].word =
			n_bytes | (uint64_t)at << 32 |
			(uint64_t)((flags & 0x7f7f) |
				   (at & N_ENTRIES ? VIRTIO_PACKED_USED :
						     VIRTIO_PACKED_AVAIL))
				<< 48;
		return;
	}
	desc[at % N_ENTRIES] =
		(struct virtio_desc){ addr, n_bytes, (uint16_t)flags,
				      (uint16_t)(at + 1) % N_ENTRIES };
	avail->ring[at % N_ENTRIES] = at % N_ENTRIES;
	avail->idx = run->n_avail[number];
}

static void step_receive(struct run *run)
{
	struct mr_frame frames[64];
	struct mr_meta meta[64];
	const uint32_t n = mr_rx_burst_meta(mr_port_rxq(run->port, 0),
					    run->cache, frames, meta, 64);

	FUZZ_CHECK(mr_frame_n_whole(frames, n) == n);
	for (uint32_t i = 0; i < n; i++) /* a guest vouches for nothing */
		FUZZ_CHECK(!(frames[i].flags & MR_FRAME_CSUM_VALID));
	mr_frame_free_bulk(run->cache, frames, n);
}

static void step_send(struct run *run)
{
	const uint32_t n_bytes = 14 + next_u8(run) * 5u;
	struct mr_frame frames[8];
	uint64_t addrs[8];
	const uint32_t n = mr_frag_alloc_bulk(run->cache, addrs, 8, 2048);
	uint32_t n_sent;

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){
			.addr = addrs[i] + 256,
			.len = n_bytes,
			.flags = i % 4 == 3 ? MR_FRAME_CSUM_PARTIAL : 0,
		};
	n_sent = mr_tx_burst(mr_port_txq(run->port, 0), run->cache, frames, n);
	mr_frame_free_bulk(run->cache, frames + n_sent, n - n_sent);
}

static void step_arm(struct run *run)
{
	(void)mr_queue_arm(&mr_port_rxq(run->port, 0)->queue);
	(void)mr_queue_arm(&mr_port_txq(run->port, 0)->queue);
}

static void reconnect(struct run *run)
{
	close(run->fd);
	mr_port_poll(run->port);
	run->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(connect(run->fd, (const struct sockaddr *)&world.addr,
			   sizeof(world.addr)) == 0);
	mr_port_poll(run->port);
}

/* What a flood connects to: half of the connections run. */
static void connect_flood(void *opaque, struct vhost_flood *flood)
{
	struct run *run = opaque;

	reconnect(run);
	flood->fd = run->fd;
	run->choice ^= 1;
	if (run->choice & 1)
		set_up(run, run->choice);
	say_u64(run, VHOST_SET_PROTOCOL_FEATURES, 1 << VHOST_P_REPLY_ACK, -1);
}

static void step_flood(struct run *run)
{
	struct vhost_flood flood = {
		.port = run->port,
		.fd = run->fd,
		.memory_fd = world.other_fd,
		.region = shared_region(),
		.connect = connect_flood,
		.opaque = run,
	};
	const uint32_t n = next_u8(run) * FLOOD_FACTOR;
	uint64_t state = next_u16(run) + 1;

	connect_flood(run, &flood);
	vhost_flood(&flood, &state, n);
}

static void step(struct run *run)
{
	switch (next_u8(run) % 10) {
	case 0:
		step_message(run);
		break;
	case 1:
		step_raw(run);
		break;
	case 2:
		step_store(run);
		break;
	case 3:
		step_receive(run);
		break;
	case 4:
		step_send(run);
		break;
	case 5:
		mr_port_poll(run->port);
		break;
	case 6:
		step_arm(run);
		break;
	case 7:
		step_descriptor(run);
		break;
	case 8:
		step_records(run);
		break;
	case 9:
		step_flood(run);
		break;
	}
}

/* ---- a guest that changes what is being read ---- */

struct meddler {
	pthread_t thread;
	const uint8_t *bytes;
	size_t n_bytes;
	bool is_over; /* atomic */
};

static void *meddle(void *opaque)
{
	const struct meddler *meddler = opaque;
	size_t at = 0;

	for (size_t i = 0;
	     !__atomic_load_n(&meddler->is_over, __ATOMIC_RELAXED); i++) {
		at = (at * 31 + i) % (2 * RING_BYTES);
		__atomic_store_n(&world.memory[at],
				 meddler->bytes[i % meddler->n_bytes],
				 __ATOMIC_RELAXED);
		__atomic_store_n(&world.other[at],
				 meddler->bytes[i % meddler->n_bytes],
				 __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- one input ---- */

static void check_untouched(void)
{
	for (size_t i = 0; i < SHARED_BYTES; i++)
		FUZZ_CHECK(world.memory[SHARED_BYTES + i] == UNTOUCHED);
}

/* What it does is a data race, which TSan would report. */
#if defined(__SANITIZE_THREAD__)
enum { CAN_MEDDLE = 0 };
#else
enum { CAN_MEDDLE = 1 };
#endif

static void run_steps(struct run *run, uint8_t choice)
{
	struct meddler meddler = { .bytes = run->bytes,
				   .n_bytes = run->n_bytes };
	const bool has_meddler =
		CAN_MEDDLE && choice >> 4 == 15 && run->n_bytes > 0;

	if (has_meddler)
		FUZZ_CHECK(pthread_create(&meddler.thread, NULL, meddle,
					  &meddler) == 0);
	while (run->n_bytes > 0)
		step(run);
	for (int i = 0; i < 4; i++) {
		step_receive(run);
		step_send(run);
	}
	if (!has_meddler)
		return;
	__atomic_store_n(&meddler.is_over, true, __ATOMIC_RELAXED);
	pthread_join(meddler.thread, NULL);
}

static void check_counts(struct run *run)
{
	struct mr_rx_stats rx = { .size = sizeof(rx) };
	struct mr_tx_stats tx = { .size = sizeof(tx) };

	mr_rxq_stats(mr_port_rxq(run->port, 0), &rx);
	mr_txq_stats(mr_port_txq(run->port, 0), &tx);
	FUZZ_CHECK(invariants_of_rx_hold(&rx));
	FUZZ_CHECK(invariants_of_tx_hold(&tx));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct run run = { .bytes = bytes, .n_bytes = n_bytes };
	struct mr_reason why = { .text = "" };
	char spec[160];
	uint8_t choice;

	if (world.ctx == NULL)
		make_world();
	memset(world.memory, 0, SHARED_BYTES);
	memset(world.other, 0, OTHER_BYTES);
	memset(world.memory + SHARED_BYTES, UNTOUCHED, SHARED_BYTES);
	choice = run.choice = next_u8(&run);
	config.pool = world.pool;
	snprintf(spec, sizeof(spec), "vhost:%s,sg=on%s", world.addr.sun_path,
		 choice & 16 ? ",tso=on" : "");
	FUZZ_CHECK(mr_cache_create(world.pool, &run.cache, NULL) == 0);
	if (mr_port_open(world.ctx, spec, &config, &run.port, &why) < 0)
		fuzz_broken(why.text, 0, "the port opens");
	run.fd = -1;
	reconnect(&run);
	if (choice & 1)
		set_up(&run, choice);
	run_steps(&run, choice);
	check_counts(&run);
	close(run.fd);
	mr_port_poll(run.port);
	mr_port_close(run.port);
	mr_cache_destroy(run.cache);
	check_untouched();
	mr_pool_stats(world.pool, &stats);
	FUZZ_CHECK(stats.n_in_flight == 0);
	FUZZ_CHECK(stats.n_free == stats.n_pages);
	return 0;
}

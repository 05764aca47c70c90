/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bed that a port under test stands on, and the rig at its far side.
 *
 *     rig->inject() --> [ wire ] --> port under test --> mr_rx_burst()
 *     rig->collect() <-- [ wire ] <-- port under test <-- mr_tx_burst()
 *
 * A rig is what the suite needs to know of a driver: how to name a port, and
 * how to be its other side. Everything here uses public headers alone, so that
 * the suite holds for a driver that someone else wrote.
 */
#ifndef CONFORMANCE_BED_H
#define CONFORMANCE_BED_H

#include <stdbool.h>

#include <millrace/millrace.h>

#include "support/laws.h"
#include "support/test.h"
#include "traffic.h"

struct bed;

/* What a rig's driver can do, and what its far side can see. Bits. */
enum {
	RIG_IN = 1 << 0,     /* the far side can send */
	RIG_OUT = 1 << 1,    /* the far side sees what was sent */
	RIG_LIVE = 1 << 2,   /* it does so while the port is open */
	RIG_SG = 1 << 3,     /* frames of several entries, if asked for */
	RIG_CHECKS = 1 << 4, /* tx looks at entries before it takes them */
	RIG_STALLS = 1 << 5, /* tx refuses if the far side does not collect */
	RIG_REGISTERS = 1 << 6, /* a device has the region registered */
	RIG_EXCLUSIVE = 1 << 7, /* the same spec is not opened twice */
	RIG_ENDLESS = 1 << 8,  /* rx is always full, of nothing in particular */
	RIG_OVERLONG = 1 << 9, /* frames of more than MR_MAX_SEGS can come */
	RIG_QUEUES = 1 << 10,  /* more than one queue each way */
	RIG_FILTERS = 1 << 11, /* rx by address: promiscuous mode, filter */
	RIG_POLLED = 1 << 12,  /* nothing tells that there is something to do */
	RIG_KEEPS = 1 << 13,   /* what was sent is the far side's until it
				* collects it, also when the port is closed */
	RIG_FOREIGN_FDS = 1 << 14, /* the port's fds are another library's */
	RIG_RANDOM_MAC = 1 << 15,  /* the device is made anew with each port */
	RIG_FORK_HOLDS = 1 << 16,  /* a child has another library's files of the
				    * device, which is busy with them */
	RIG_LAZY = 1 << 17, /* what was sent is pending until the device needs
			     * the room */
	RIG_LATE = 1 << 18, /* an interrupt may tell of frames that a poll has
			     * taken already */
	RIG_SAME_POOL = 1 << 19, /* the far side is on the bed's pool, too */
};

/* A spec that must be refused. */
struct bad_spec {
	const char *spec;
	int error;
	const char *word; /* in the reason */
};

struct rig {
	const char *driver;
	const char *name; /* on the command line; NULL: the driver's */
	uint32_t traits;
	uint32_t min_frame_bytes;    /* of the wire: it pads to that; 0: 14 */
	uint32_t max_frame_bytes;    /* in a port without SG; 4 KiB pages */
	uint32_t max_sg_frame_bytes; /* in one with SG */
	uint32_t n_sleeps;           /* rounds of arm, sleep, wake */
	uint32_t n_reopens;
	const struct bad_spec *bad_specs; /* spec NULL at the end */
	/* Another port, beside the one under test, that sends whatever it is
	 * given: of the same driver, if that has such. NULL: "null:". */
	const char *sink_spec;

	/* Once per process. NULL, or why the machine cannot run this rig. */
	const char *(*probe)(void);
	/* Before the port opens and after it closed. */
	void (*setup)(struct bed *bed);
	void (*teardown)(struct bed *bed);
	/* The port was opened, for the first time or anew. Or NULL. */
	void (*opened)(struct bed *bed);
	/* One frame towards the port. False: no room now. One thread. */
	bool (*inject)(struct bed *bed, const uint8_t *bytes, uint32_t n_bytes);
	/* The next frame that it sent, 0: none now. One thread. */
	uint32_t (*collect)(struct bed *bed, uint8_t *bytes, uint32_t room);
};

extern const struct rig rig_null, rig_pair, rig_pcap, rig_xdp, rig_nic, rig_igb,
	rig_e1000e, rig_virtio, rig_virtio_plain;
/* Their traits are known when they were probed. */
extern struct rig rig_vfio, rig_dpdk_nic;

/* What a test wants. Zero is the default of each member. */
struct wish {
	uint32_t n_pages;        /* 0: 8192 */
	uint32_t page_bytes;     /* 0: 4096 */
	uint32_t headroom_bytes; /* 0: the pool's default */
	uint32_t tailroom_bytes;
	uint32_t ring_entries; /* about; where the driver has rings */
	uint32_t n_queues;     /* 0: 1 */
	uint32_t is_sg;        /* 1: frames up to rig->max_sg_frame_bytes */
	uint32_t n_in;         /* frames that the far side sends */
	uint32_t (*len_of)(uint32_t id); /* their length; NULL: 60 */
	bool is_closed; /* leave opening the port to the test */
};

struct bed {
	const struct rig *rig;
	void *far; /* the rig's */
	struct wish wish;
	char spec[256];
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct mr_port *port; /* NULL: closed */
	struct mr_rxq *rxq;   /* queue 0 */
	struct mr_txq *txq;
	uint8_t *base;
	uint32_t n_injected; /* frames, since the port was opened */

	/* The context's allocator: blocks alive; and which one is refused. */
	int64_t n_blocks;
	int64_t n_until_refused; /* 0: none; 1: the next one */
	uint32_t n_fds;          /* of the process, when the bed was made */
};

/* The bed of the running test; made and torn down by bed_make(), bed_end(). */
struct bed *bed_make(const struct wish *wish);

/*
 * Close everything and assert that nothing is left over: each page is free,
 * each block of memory given back, each fd closed.
 */
void bed_end(struct bed *bed);

/* The pool, which has no port any more, goes; the next is somewhere else. */
void bed_renew_pool(struct bed *bed);

/* Takes away what a failed test left. For cmocka: teardown of each test. */
int bed_abandon(void **state);

#define BED_TEST(name) TEST_WITH(NULL, bed_abandon, name)
/* The same, with threads. */
#define BED_TEST_MT(name) TEST_AS(NULL, bed_abandon, name, true)

/* Frames are this long at least, so that nothing on the way pads them. */
uint32_t bed_min_bytes(void);

/* The rig that this process tests. */
const struct rig *bed_rig(void);

/* And options that go behind each of its specs: "" or ",key=value,...". */
void bed_set_rig(const struct rig *rig, const char *options);

/* Skip the running test, with a reason, unless the rig has all of traits. */
void bed_need(uint32_t traits, const char *why_not);

/* The same, if the rig has one of traits. */
void bed_lack(uint32_t traits, const char *why_not);

void bed_open(struct bed *bed);
int bed_try_open(struct bed *bed, struct mr_reason *why);
void bed_close(struct bed *bed);

/* Let the far side send what is due and fits. */
void bed_pump(struct bed *bed);

/* A burst of what came in; waits, with a deadline, for the first entry. */
uint32_t bed_rx(struct bed *bed, struct mr_frame *frames, uint32_t n);

/* Receive and free what bed_pump() sent since the port was opened: it might
 * arrive in the next test, and be taken for one of its frames. Ends when a NIC
 * seems to have lost some of it. */
void bed_receive_rest(struct bed *bed);

/* All frames that the far side was to send were received or dropped. */
bool bed_rx_is_done(struct bed *bed);

/* Send all entries; waits for room while the far side collects and checks. */
void bed_tx(struct bed *bed, const struct mr_frame *frames, uint32_t n);

/* The same with metadata beside them, or NULL. */
void bed_tx_meta(struct bed *bed, const struct mr_frame *frames,
		 const struct mr_meta *meta, uint32_t n);

/* What the far side gets next, with a deadline; how many bytes. */
uint32_t bed_collect_bytes(struct bed *bed, uint8_t *bytes);

/* The same as a frame of traffic.h; its number. -1: damaged. */
int64_t bed_collect(struct bed *bed, uint32_t *ret_n_bytes);

/* Get and check frames of the far side until none came for some 20 ms; how
 * many. On a busy machine more may follow: where the number is known,
 * bed_collect_last(). */
uint32_t bed_collect_rest(struct bed *bed);

/* Get and check what is left of n_sent frames, with a deadline for each, and
 * see no more come. */
void bed_collect_last(struct bed *bed, uint64_t n_sent, uint64_t n_collected);

/* Write frame number id of n_bytes to an address. */
void bed_write_frame(struct bed *bed, uint64_t addr, uint32_t n_bytes,
		     uint32_t id);

/* A frame of n_segs entries, at offset of its first page, from the cache. */
void bed_make_frame(struct bed *bed, struct mr_frame *frames, uint32_t n_segs,
		    uint32_t offset, uint32_t n_bytes, uint32_t id);

/* Check the frame that begins at frames[0]; its number, entries and bytes. */
int64_t bed_check_frame(const struct bed *bed, const struct mr_frame *frames,
			uint32_t *ret_n_segs, uint32_t *ret_n_bytes);

void bed_free(struct bed *bed, const struct mr_frame *frames, uint32_t n);

struct mr_rx_stats bed_rx_stats(const struct bed *bed);
struct mr_tx_stats bed_tx_stats(const struct bed *bed);
struct mr_pool_stats bed_pool_stats(const struct bed *bed);

/* Assert that all of n frames that were sent complete, or may be late. */
void bed_assert_completed(struct bed *bed, uint64_t n);

/* Open fds of this process. */
uint32_t bed_count_fds(void);

/* Nanoseconds of CLOCK_MONOTONIC: now, and when to give up a wait that begins
 * now; and a nap of some 50 us. */
uint64_t bed_now_ns(void);
uint64_t bed_deadline_ns(void);
uint32_t bed_deadline_ms(void);
void bed_nap(void);

/* Each wait in the suite ends after this: the machine may be busy. */
enum { BED_MAX_BYTES = 65536 };

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness of a port under test, and the fixture that is its peer.
 *
 *     fixture->inject() --> [ wire ] --> port under test --> mr_rx_burst()
 *     fixture->collect() <-- [ wire ] <-- port under test <-- mr_tx_burst()
 *
 * A fixture adapts the suite to a driver: how to name a port, and how to act as
 * its peer. Everything here uses only public headers, so that the suite also
 * applies to third-party drivers.
 */
#ifndef CONFORMANCE_HARNESS_H
#define CONFORMANCE_HARNESS_H

#include <stdbool.h>

#include <millrace/millrace.h>

#include "support/invariants.h"
#include "support/test.h"
#include "traffic.h"

struct harness;

/* Capabilities of a fixture's driver and peer. Bits. */
enum {
	FIXTURE_IN = 1 << 0,     /* the peer can send */
	FIXTURE_OUT = 1 << 1,    /* the peer sees what was sent */
	FIXTURE_LIVE = 1 << 2,   /* even while the port is open */
	FIXTURE_SG = 1 << 3,     /* frames of several entries, on request */
	FIXTURE_CHECKS = 1 << 4, /* tx checks entries before accepting them */
	FIXTURE_STALLS =
		1 << 5, /* tx refuses while the peer does not collect */
	FIXTURE_REGISTERS = 1 << 6, /* a device has the region registered */
	FIXTURE_EXCLUSIVE = 1 << 7, /* the same spec is not opened twice */
	FIXTURE_ENDLESS = 1 << 8,   /* rx is always full, of arbitrary frames */
	FIXTURE_OVERLONG = 1
			   << 9,  /* frames of more than MR_MAX_SEGS may come */
	FIXTURE_QUEUES = 1 << 10, /* more than one queue each way */
	FIXTURE_FILTERS = 1 << 11, /* rx by address: promiscuous mode, filter */
	FIXTURE_POLLED = 1 << 12,  /* nothing signals that there is work */
	FIXTURE_KEEPS = 1 << 13,   /* the peer keeps what was sent until it
				    * collects it, even after the port is
				    * closed */
	FIXTURE_FOREIGN_FDS = 1 << 14, /* another library's fds */
	FIXTURE_RANDOM_MAC = 1 << 15,  /* each port creates the device */
	FIXTURE_FORK_HOLDS = 1 << 16,  /* a child inherits another library's
					* files of the device, which keep it
					* busy */
	FIXTURE_LAZY = 1 << 17,        /* pending until the device needs room */
	FIXTURE_LATE = 1 << 18, /* an interrupt may signal frames that a poll
				 * has already taken */
	FIXTURE_SAME_POOL = 1 << 19, /* the peer also uses the harness's pool */
	FIXTURE_ALONE = 1 << 20,     /* there is no second port */
	FIXTURE_OLD_MAC = 1
			  << 21, /* a replaced MAC address is still received */
	FIXTURE_NO_STEERING = 1 << 22, /* steering rules have no effect */
	FIXTURE_LED = 1 << 24,  /* a port opens only beside its peer */
	FIXTURE_WIRE = 1 << 23, /* the peer sees segments as the device sent
				 * them; a kernel may merge them */
};

/* A spec that must be refused. */
struct bad_spec {
	const char *spec;
	int error;
	const char *word; /* in the reason */
};

struct fixture {
	const char *driver;
	const char *name; /* on the command line; NULL: the driver's */
	uint32_t traits;
	uint32_t min_frame_bytes;    /* on the wire, padded; 0: 14 */
	uint32_t max_frame_bytes;    /* in a port without SG; 4 KiB pages */
	uint32_t max_sg_frame_bytes; /* in one with SG */
	uint32_t max_page_bytes;     /* that it takes; 0: any */
	uint32_t n_sleeps;           /* rounds of arm, sleep, wake */
	uint32_t n_reopens;
	uint32_t ring_entries;            /* where a test has no wish */
	const struct bad_spec *bad_specs; /* spec NULL at the end */
	/* Another port that sends anything; if possible of the same driver.
	 * NULL: "null:". */
	const char *sink_spec;

	/* Once per process. NULL, or why the fixture cannot run here. No probe:
	 * it can. */
	const char *(*probe)(void);
	/* Before the port opens and after it closed, if there is anything. */
	void (*setup)(struct harness *harness);
	void (*teardown)(struct harness *harness);
	/* After each opening of the port. Or NULL. */
	void (*opened)(struct harness *harness);
	/* Send one frame to the port. False: no room now. One thread. */
	bool (*inject)(struct harness *harness, const uint8_t *bytes,
		       uint32_t n_bytes);
	/* Get the next frame that the port sent, 0: none now. One thread. */
	uint32_t (*collect)(struct harness *harness, uint8_t *bytes,
			    uint32_t room);
};

extern const struct fixture fixture_null, fixture_pair, fixture_ruled,
	fixture_pcap, fixture_xdp, fixture_igb, fixture_e1000e, fixture_virtio,
	fixture_virtio_plain, fixture_virtio_user,
	fixture_virtio_user_server, fixture_tap, fixture_vhost;

/* A test's requirements. Zero is the default of each member. */
struct wish {
	uint32_t n_pages;        /* 0: 8192 */
	uint32_t page_bytes;     /* 0: 4096 */
	uint32_t headroom_bytes; /* 0: the pool's default */
	uint32_t tailroom_bytes;
	uint32_t ring_entries; /* approximate; for drivers with rings */
	uint32_t n_queues;     /* 0: 1 */
	uint32_t is_sg;        /* 1: frames up to fixture->max_sg_frame_bytes */
	uint32_t n_in;         /* number of frames from the peer */
	uint32_t (*len_of)(uint32_t id); /* their length; NULL: 60 */
	bool is_closed;                  /* the test opens the port */
	bool has_rules;                  /* rules send from the port */
};

/* Frames: @p n from the peer, or a source's if it does not send. */
struct wish wish_frames(uint32_t n);

struct harness {
	const struct fixture *fixture;
	uint32_t number; /* 0; 1: harness_make_second() */
	void *far;       /* owned by the fixture */
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

	/* The context's allocator: live blocks, and which allocation fails. */
	int64_t n_blocks;
	int64_t n_until_refused; /* 0: none; 1: the next */
	uint32_t n_fds;          /* of the process, at creation */
};

/* For a probe: open and close a port. NULL, or why not; with the error. */
const char *harness_try(const char *spec, int *ret_err);

/* The harness of the running test, from harness_make() to harness_end(). */
struct harness *harness_make(const struct wish *wish);
/* A second port on the pool of the first, with its own peer. harness_end() of
 * the first port also ends the second. */
struct harness *harness_make_second(const struct harness *first);
/* The fixture's peer goes; harness_end() does it, too. */
void harness_tear_down(struct harness *harness);

/*
 * Close everything and assert that nothing is left: each page is free, each
 * block of memory freed, each fd closed.
 */
void harness_end(struct harness *harness);

/* Replace the pool, which has no port any more, by one at another address. */
void harness_renew_pool(struct harness *harness);

/* Clean up after a failed test. For cmocka: teardown of each test. */
int harness_abandon(void **state);

#define HARNESS_TEST(name) TEST_WITH(NULL, harness_abandon, name)
/* The same, with threads. */
#define HARNESS_TEST_MT(name) TEST_AS(NULL, harness_abandon, name, true)

/* Frames have at least this length, so that nothing pads them. */
uint32_t harness_min_bytes(void);
/* The largest pages that the fixture's ports take. */
uint32_t harness_max_page_bytes(void);

/* The fixture under test. */
const struct fixture *harness_fixture(void);

/* And options to append to each of its specs: "" or ",key=value,...". */
void harness_set_fixture(const struct fixture *fixture, const char *options);

/* Skip the running test, with a reason, unless it has all of traits. */
void harness_need(uint32_t traits, const char *why_not);

/* The same, if the fixture has one of traits. */
void harness_lack(uint32_t traits, const char *why_not);

void harness_open(struct harness *harness);
int harness_try_open(struct harness *harness, struct mr_reason *why);
void harness_close(struct harness *harness);

/* Let the peer send what is due and fits. */
void harness_pump(struct harness *harness);

/* A burst of received entries; waits, with a deadline, for the first one. */
uint32_t harness_rx(struct harness *harness, struct mr_frame *frames,
		    uint32_t n);

/* Receive and free what harness_pump() has sent since the port was opened: it
 * might arrive in the next test, and be taken for one of its frames. Ends if a
 * NIC seems to have lost some of it. */
void harness_receive_rest(struct harness *harness);

/* Whether all of the peer's frames were received or dropped. */
bool harness_rx_is_done(struct harness *harness);

/* Send all entries; waits for room while the peer collects and checks. */
void harness_tx(struct harness *harness, const struct mr_frame *frames,
		uint32_t n);

/* The same with metadata, or NULL. */
void harness_tx_meta(struct harness *harness, const struct mr_frame *frames,
		     const struct mr_meta *meta, uint32_t n);

/* The next frame at the peer, with a deadline. Returns its bytes. */
uint32_t harness_collect_bytes(struct harness *harness, uint8_t *bytes);

/* The same as a frame of traffic.h. Returns its number; -1: damaged. */
int64_t harness_collect(struct harness *harness, uint32_t *ret_n_bytes);

/* Get and check frames at the peer until none came for about 20 ms; how many.
 * On a busy machine more may follow: if the number is known, use
 * harness_collect_last(). */
uint32_t harness_collect_rest(struct harness *harness);

/* Get and check the rest of n_sent frames, with a deadline for each, and check
 * that no more come. */
void harness_collect_last(struct harness *harness, uint64_t n_sent,
			  uint64_t n_collected);

/* Write frame number id of n_bytes to an address. */
void harness_write_frame(struct harness *harness, uint64_t addr,
			 uint32_t n_bytes, uint32_t id);

/* A frame of n_segs entries from the cache, at offset of its first page. */
void harness_make_frame(struct harness *harness, struct mr_frame *frames,
			uint32_t n_segs, uint32_t offset, uint32_t n_bytes,
			uint32_t id);

/* Check the frame that begins at frames[0]: its number, entries and bytes. */
int64_t harness_check_frame(const struct harness *harness,
			    const struct mr_frame *frames, uint32_t *ret_n_segs,
			    uint32_t *ret_n_bytes);

void harness_free(struct harness *harness, const struct mr_frame *frames,
		  uint32_t n);

struct mr_rx_stats harness_rx_stats(const struct harness *harness);
struct mr_tx_stats harness_tx_stats(const struct harness *harness);
struct mr_pool_stats harness_pool_stats(const struct harness *harness);

/* Assert that all n sent frames complete, unless they may be late. */
void harness_assert_completed(struct harness *harness, uint64_t n);

/* Open fds of this process. */
uint32_t harness_count_fds(void);
/* Assert that n are open, at once or soon: a peer in this process may close its
 * own a little later. */
void harness_await_fds(uint32_t n);

/* Nanoseconds of CLOCK_MONOTONIC: now, and the deadline of a wait that begins
 * now; and a nap of about 50 us. */
uint64_t harness_now_ns(void);
uint64_t harness_deadline_ns(void);
uint32_t harness_deadline_ms(void);
void harness_nap(void);

/* Each wait in the suite ends after this: the machine may be busy. */
enum { HARNESS_MAX_BYTES = 65536 };

#endif

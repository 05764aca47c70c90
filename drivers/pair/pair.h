/* SPDX-License-Identifier: BSD-3-Clause */
/* pair: what its files share. The picture is in pair.c. */
#ifndef PAIR_PAIR_H
#define PAIR_PAIR_H

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>
#include <millrace/ring.h>

enum { PAIR_LINE_BYTES = 64, PAIR_NAME_BYTES = 64 };

/*
 * An eventfd, and whether its owner sleeps on it. It belongs to the lane and
 * not to a port: the other end may pull it while this one closes, when the
 * number might already be another file.
 */
struct pair_bell {
	uint32_t is_armed; /* atomic; 1: asleep, or about to be */
	int fd;
	/* Used only by the sleeper. */
	uint32_t n_owed; /* pulls whose write was not read yet */
	bool is_set;
};

/* bits of pair_lane.claim */
enum {
	PAIR_CLAIMED = 1,  /* the consumer is taking from the ring */
	PAIR_ORPHANED = 2, /* the producer's end is closed */
};

/* One direction of one queue. */
struct pair_lane {
	struct mr_ring_spsc *ring;
	struct pair_bell rx_bell, tx_bell;
	/* The producer's line. */
	_Alignas(PAIR_LINE_BYTES) uint32_t n_posted; /* entries, ever; wraps */
	/* The consumer's line. */
	_Alignas(PAIR_LINE_BYTES) uint32_t claim;
	uint32_t n_taken;        /* entries, ever; wraps */
	uint64_t n_taken_frames; /* of those by the consumer: completed */
};

/* Shared by both ends; freed with the last. */
struct pair_link {
	struct pair_link *next;
	struct mr_region *region;
	struct pair_lane *lanes; /* [end * n_queues + queue]: the end's tx */
	uint32_t n_queues;
	uint32_t n_ring_entries;
	uint32_t has_sg;
	uint32_t is_open[2]; /* atomic */
	char name[PAIR_NAME_BYTES];
};

struct pair_rxq {
	_Alignas(PAIR_LINE_BYTES) struct mr_rxq base;
	struct pair_lane *lane;
};

struct pair_txq {
	_Alignas(PAIR_LINE_BYTES) struct mr_txq base;
	struct pair_lane *lane;
	struct mr_region *region;
	uint64_t first_taken_frames; /* the lane's count at open */
	uint32_t n_ring_entries;
	uint32_t max_segs; /* entries per frame: 1, or MR_MAX_SEGS with SG */
	uint32_t n_wanted; /* entries of the frame that did not fit; or 0 */
};

struct pair_port {
	struct mr_port base;
	struct pair_link *link;
	uint32_t end;
	struct pair_rxq *rxqs;
	struct pair_txq *txqs;
};

int mri_pair_open(struct mr_port *base, const struct mr_spec *spec,
		  struct mr_reason *reterr_reason);
/* pair_hand_over.c: to another process */
extern const struct mr_hand_over_ops mri_pair_hand_over;
mr_rx_burst_fn mri_pair_rx_burst;
mr_tx_burst_fn mri_pair_tx_burst;
int mri_pair_rx_arm(struct mr_queue *queue);
int mri_pair_tx_arm(struct mr_queue *queue);
void mri_pair_txq_stats(const struct mr_txq *base, struct mr_tx_stats *stats);

/* The sleeper's side. Arm, then look for work; disarm if there is some. */
void mri_pair_bell_arm(struct pair_bell *bell);
void mri_pair_bell_disarm(struct pair_bell *bell);

/* Write to the fd of an armed bell. Out of line: it is a system call. */
void mri_pair_bell_pull_armed(struct pair_bell *bell);

/*
 * The waker's side, after a seq_cst store of what the sleeper looks for. That
 * store and this load pair with the sleeper's store of is_armed and its load of
 * the same thing: all four are in one total order, so that either the sleeper
 * finds the work or we find it asleep.
 */
static inline void mri_pair_bell_pull(struct pair_bell *bell)
{
	if (__atomic_load_n(&bell->is_armed, __ATOMIC_SEQ_CST))
		mri_pair_bell_pull_armed(bell);
}

/*
 * Claim the lane, to take from it while its producer may close: the producer
 * frees the ring's entries, unless the consumer has the claim, which then does
 * it. Nobody waits. False: the producer's end is closed.
 */
static inline bool mri_pair_claim(struct pair_lane *lane)
{
	uint32_t nobody = 0;

	return __atomic_compare_exchange_n(&lane->claim, &nobody, PAIR_CLAIMED,
					   false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* The producer closed its end while we had the claim: free the rest. */
void mri_pair_adopt_orphan(struct pair_lane *lane, struct mr_cache *cache);

static inline void mri_pair_unclaim(struct pair_lane *lane,
				    struct mr_cache *cache)
{
	uint32_t ours = PAIR_CLAIMED;

	if (!__atomic_compare_exchange_n(&lane->claim, &ours, 0, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		mri_pair_adopt_orphan(lane, cache);
}

#endif

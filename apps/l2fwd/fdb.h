/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarding database: which port a MAC address was last seen on.
 *
 * One table for all workers, without locks. An entry is one 64-bit word, the
 * address and the port, so a reader sees either all of it or none:
 *
 *     63           16 15       0        beside it, in another array:
 *     +--------------+----------+       the second it was last seen
 *     | MAC address  | port + 1 |       0: free
 *     +--------------+----------+
 *
 * Eight words are a bucket, and a cache line; an address may be anywhere in its
 * bucket. A full bucket learns nothing more: its frames are flooded, counted.
 */
#ifndef FDB_H
#define FDB_H

#include <stdbool.h>
#include <stdint.h>

struct fdb;

enum { FDB_NOWHERE = UINT32_MAX };

/* Counters; any thread reads them. */
struct fdb_stats {
	uint64_t n_entries;
	uint64_t learned; /* addresses that were new */
	uint64_t moved;   /* addresses seen on another port */
	uint64_t aged;    /* forgotten */
	uint64_t full;    /* not learned: limit reached, or no room in bucket */
};

/* NULL: no memory. seed makes which addresses share a bucket unpredictable. */
struct fdb *fdb_create(uint32_t limit, uint32_t age_s, uint64_t seed);
void fdb_destroy(struct fdb *fdb);

/* 48 bits of an address, as the functions below take it. */
static inline uint64_t fdb_mac(const uint8_t *bytes)
{
	return (uint64_t)bytes[0] << 40 | (uint64_t)bytes[1] << 32 |
	       (uint64_t)bytes[2] << 24 | (uint64_t)bytes[3] << 16 |
	       (uint64_t)bytes[4] << 8 | bytes[5];
}

static inline void fdb_mac_bytes(uint64_t mac, uint8_t bytes[6])
{
	for (int i = 0; i < 6; i++)
		bytes[i] = (uint8_t)(mac >> 8 * (5 - i));
}

/* Any thread. now_s: seconds of a clock that all callers share. */
void fdb_learn(struct fdb *fdb, uint64_t mac, uint32_t port, uint32_t now_s);
/* The port, or FDB_NOWHERE. Any thread. */
uint32_t fdb_find(const struct fdb *fdb, uint64_t mac);
/* The thread that calls fdb_age(). */
void fdb_set_age(struct fdb *fdb, uint32_t age_s);
/* Forget what was not seen for age_s, and all of a port that is gone. */
void fdb_age(struct fdb *fdb, uint32_t now_s);
void fdb_forget_port(struct fdb *fdb, uint32_t port);
void fdb_stats(const struct fdb *fdb, struct fdb_stats *ret_stats);

/*
 * To keep a copy of the table: its places, and the word in each of them. The
 * worker that saw an address on another port calls moved() after it changed the
 * word and before it forwards the frame; that change and fdb_word() are
 * sequentially consistent.
 */
typedef void fdb_moved_fn(void *opaque, uint32_t place, uint32_t port);
void fdb_watch(struct fdb *fdb, fdb_moved_fn *moved, void *opaque);
uint32_t fdb_n_places(const struct fdb *fdb);
uint64_t fdb_word(const struct fdb *fdb, uint32_t place);
/* When what is in that place was seen. */
uint32_t fdb_seen_s(const struct fdb *fdb, uint32_t place);
/* What is in that place was seen elsewhere than by fdb_learn(). */
void fdb_refresh(struct fdb *fdb, uint32_t place, uint32_t now_s);

static inline uint64_t fdb_word_mac(uint64_t word)
{
	return word >> 16;
}

static inline uint32_t fdb_word_port(uint64_t word)
{
	return (uint32_t)(word & 0xffff) - 1;
}

#endif

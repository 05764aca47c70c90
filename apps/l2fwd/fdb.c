/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarding database; the picture is in fdb.h. */
#include <stdlib.h>
#include <string.h>

#include "fdb.h"

enum { WAYS = 8 };

struct fdb {
	uint64_t *words;  /* atomic */
	uint32_t *seen_s; /* atomic; when words[i] was last refreshed */
	uint64_t seed;
	uint32_t bucket_mask;
	uint32_t limit, age_s;
	fdb_moved_fn *moved_fn; /* NULL: nobody watches */
	void *opaque;
	_Alignas(64) uint64_t n_entries; /* atomic, as those below */
	uint64_t learned, moved, aged, full;
};

struct fdb *fdb_create(uint32_t limit, uint32_t age_s, uint64_t seed)
{
	struct fdb *fdb = aligned_alloc(64, sizeof(*fdb));
	uint32_t n_buckets = 8;

	if (fdb == NULL)
		return NULL;
	/* Half full at the limit: then a bucket of 8 overflows for about one
	 * address in 500 (Poisson with mean 4). */
	while ((uint64_t)n_buckets * WAYS < 2 * (uint64_t)limit)
		n_buckets *= 2;
	memset(fdb, 0, sizeof(*fdb));
	fdb->seed = seed;
	fdb->bucket_mask = n_buckets - 1;
	fdb->limit = limit;
	fdb->age_s = age_s;
	fdb->words = aligned_alloc(64, n_buckets * WAYS * sizeof(uint64_t));
	fdb->seen_s = calloc(n_buckets * WAYS, sizeof(uint32_t));
	if (fdb->words == NULL || fdb->seen_s == NULL) {
		fdb_destroy(fdb);
		return NULL;
	}
	memset(fdb->words, 0, n_buckets * WAYS * sizeof(uint64_t));
	return fdb;
}

void fdb_destroy(struct fdb *fdb)
{
	if (fdb == NULL)
		return;
	free(fdb->seen_s);
	free(fdb->words);
	free(fdb);
}

/* Place of the first word of the bucket. The mixer is that of SplitMix64. */
static uint32_t bucket_of(const struct fdb *fdb, uint64_t mac)
{
	uint64_t x = mac ^ fdb->seed;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return (uint32_t)(x & fdb->bucket_mask) * WAYS;
}

static uint64_t word_at(const struct fdb *fdb, uint32_t place)
{
	return __atomic_load_n(&fdb->words[place], __ATOMIC_RELAXED);
}

static bool replace_word(struct fdb *fdb, uint32_t place, uint64_t old,
			 uint64_t new)
{
	/* For those who watch: see fdb_word(). */
	return __atomic_compare_exchange_n(&fdb->words[place], &old, new, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void add_to_counter(uint64_t *counter, uint64_t n)
{
	__atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

static void note_seen(struct fdb *fdb, uint32_t place, uint32_t now_s)
{
	/* Written once a second, not per frame: the line stays shared. */
	if (__atomic_load_n(&fdb->seen_s[place], __ATOMIC_RELAXED) != now_s)
		__atomic_store_n(&fdb->seen_s[place], now_s, __ATOMIC_RELAXED);
}

/*
 * Two workers may put the same new address into two places of a bucket. Each
 * looks again afterwards, and the later place yields. If both look before the
 * other has written, readers use the first place, and ageing clears the second.
 */
static bool is_second(const struct fdb *fdb, uint32_t bucket, uint32_t place,
		      uint64_t mac)
{
	for (uint32_t i = bucket; i < place; i++)
		if (word_at(fdb, i) >> 16 == mac)
			return true;
	return false;
}

static void insert_address(struct fdb *fdb, uint32_t bucket, uint64_t mac,
			   uint32_t port, uint32_t now_s)
{
	const uint64_t word = mac << 16 | (port + 1);

	if (__atomic_add_fetch(&fdb->n_entries, 1, __ATOMIC_RELAXED) >
	    fdb->limit) {
		add_to_counter(&fdb->n_entries, -1ull);
		add_to_counter(&fdb->full, 1);
		return;
	}
	for (uint32_t i = bucket; i < bucket + WAYS; i++) {
		if (word_at(fdb, i) != 0)
			continue;
		/* Before the word: it must not be seen with an old age. */
		__atomic_store_n(&fdb->seen_s[i], now_s, __ATOMIC_RELAXED);
		if (!replace_word(fdb, i, 0, word))
			continue;
		if (is_second(fdb, bucket, i, mac) &&
		    replace_word(fdb, i, word, 0))
			add_to_counter(&fdb->n_entries, -1ull);
		else
			add_to_counter(&fdb->learned, 1);
		return;
	}
	add_to_counter(&fdb->n_entries, -1ull);
	add_to_counter(&fdb->full, 1);
}

void fdb_learn(struct fdb *fdb, uint64_t mac, uint32_t port, uint32_t now_s)
{
	const uint32_t bucket = bucket_of(fdb, mac);

	for (uint32_t i = bucket; i < bucket + WAYS; i++) {
		const uint64_t word = word_at(fdb, i);

		if (word >> 16 != mac || word == 0)
			continue;
		if ((word & 0xffff) != port + 1 &&
		    replace_word(fdb, i, word, mac << 16 | (port + 1))) {
			add_to_counter(&fdb->moved, 1);
			if (fdb->moved_fn != NULL)
				fdb->moved_fn(fdb->opaque, i, port);
		}
		note_seen(fdb, i, now_s);
		return;
	}
	insert_address(fdb, bucket, mac, port, now_s);
}

uint32_t fdb_find(const struct fdb *fdb, uint64_t mac)
{
	const uint32_t bucket = bucket_of(fdb, mac);

	for (uint32_t i = bucket; i < bucket + WAYS; i++) {
		const uint64_t word = word_at(fdb, i);

		if (word >> 16 == mac && word != 0)
			return (uint32_t)(word & 0xffff) - 1;
	}
	return FDB_NOWHERE;
}

uint32_t fdb_n_places(const struct fdb *fdb)
{
	return (fdb->bucket_mask + 1) * WAYS;
}

uint32_t fdb_seen_s(const struct fdb *fdb, uint32_t place)
{
	return __atomic_load_n(&fdb->seen_s[place], __ATOMIC_RELAXED);
}

static void forget_address(struct fdb *fdb, uint32_t place, uint64_t word)
{
	if (!replace_word(fdb, place, word, 0))
		return;
	add_to_counter(&fdb->n_entries, -1ull);
	add_to_counter(&fdb->aged, 1);
}

void fdb_set_age(struct fdb *fdb, uint32_t age_s)
{
	fdb->age_s = age_s;
}

void fdb_age(struct fdb *fdb, uint32_t now_s)
{
	for (uint32_t i = 0; i < fdb_n_places(fdb); i++) {
		const uint64_t word = word_at(fdb, i);
		const uint32_t seen_s = fdb_seen_s(fdb, i);

		/* Signed: a worker may have read the clock after us. */
		if (word != 0 &&
		    (int32_t)(now_s - seen_s) > (int32_t)fdb->age_s)
			forget_address(fdb, i, word);
	}
}

void fdb_forget_port(struct fdb *fdb, uint32_t port)
{
	for (uint32_t i = 0; i < fdb_n_places(fdb); i++) {
		const uint64_t word = word_at(fdb, i);

		if (word != 0 && (word & 0xffff) == port + 1)
			forget_address(fdb, i, word);
	}
}

void fdb_watch(struct fdb *fdb, fdb_moved_fn *moved, void *opaque)
{
	fdb->moved_fn = moved;
	fdb->opaque = opaque;
}

uint64_t fdb_word(const struct fdb *fdb, uint32_t place)
{
	return __atomic_load_n(&fdb->words[place], __ATOMIC_SEQ_CST);
}

void fdb_refresh(struct fdb *fdb, uint32_t place, uint32_t now_s)
{
	const uint32_t seen_s =
		__atomic_load_n(&fdb->seen_s[place], __ATOMIC_RELAXED);

	if ((int32_t)(now_s - seen_s) > 0)
		note_seen(fdb, place, now_s);
}

void fdb_stats(const struct fdb *fdb, struct fdb_stats *ret_stats)
{
	*ret_stats = (struct fdb_stats){
		.n_entries = __atomic_load_n(&fdb->n_entries, __ATOMIC_RELAXED),
		.learned = __atomic_load_n(&fdb->learned, __ATOMIC_RELAXED),
		.moved = __atomic_load_n(&fdb->moved, __ATOMIC_RELAXED),
		.aged = __atomic_load_n(&fdb->aged, __ATOMIC_RELAXED),
		.full = __atomic_load_n(&fdb->full, __ATOMIC_RELAXED),
	};
}

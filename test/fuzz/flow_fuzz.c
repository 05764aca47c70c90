/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: sequences of operations on a flow table and a wheel beside it,
 * against a model that looks at every record.
 *
 * Two bytes choose how many keys collide and how large the table may get, then
 * each operation takes two: what, and with which key.
 */
#include <errno.h>
#include <string.h>

#include <millrace/millrace.h>

#include "flow/flow.h"

#include "fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Added, found, removed, one by one. */
	SEED("\x00\xff\x00\x01\x00\x02\x00\x03\x04\x01\x02\x02\x02\x01"),
	/* No room for the second; the first is still found. */
	SEED("\x00\x00\x00\x01\x00\x02\x00\x01"),
	/* Many at once, and all of them away again. */
	SEED("\x00\xff\x01\x00\x01\x40\x01\x80\x01\xc0\x03\x00\x03\x40\x03\x80"
	     "\x03\xc0\x01\x00"),
	/* Keys of one hash only; a small table. */
	SEED("\xff\x40\x01\x00\x01\x20\x03\x10\x01\x00\x05\x00\x03\x00"),
	/* A few collide; no memory to grow meanwhile. */
	SEED("\x60\xff\x01\x00\x07\x01\x01\x20\x01\x40\x07\x00\x01\x60\x03"
	     "\x20"),
	/* Ticks, near the wrap; set again, cancelled. */
	SEED("\x00\xff\x01\x00\x06\x10\x06\x20\x06\x7f\x06\xff\x02\x01\x06"
	     "\x05"),
	/* Emptied without memory: it cannot shrink, and stays so. */
	SEED("\x00\xff\x01\x40\x07\x01\x03\x40\x07\x00\x05\x00"),
	{ NULL, 0 },
};

enum { N_KEYS = 1024, N_SLOTS = 8, MANY = 32, BURST = 16, N_SPACES = 3 };

/* What a key has: its record, and when that is due. */
struct known {
	uint32_t id; /* MR_FLOW_NONE: none */
	uint32_t due;
};

struct model {
	struct mr_flow_table *table;
	struct mr_wheel *wheel;
	uint32_t n_max, n, now;
	uint8_t n_colliding; /* of 256 keys */
	bool has_no_memory, has_lacked_memory;
	struct mri_space saved[N_SPACES]; /* while there is none */
	struct known keys[N_KEYS];
	uint32_t key_of[N_KEYS]; /* by record, plus 1; 0: none */
};

struct record {
	uint64_t key[2];
	uint64_t number; /* of its key, plus 1 */
	uint64_t rest;
};

/*
 * Keys that begin with a part of the seed have one hash, since a factor of the
 * product is 0.
 */
static void make_key(const struct model *m, uint32_t i, uint64_t key[2])
{
	key[0] = i % 256 < m->n_colliding ? m->table->hash_keys[1] : i;
	key[1] = i;
}

static void check_record(const struct model *m, uint32_t id, uint32_t i)
{
	const struct record *record = mr_flow_record(m->table, id);
	uint64_t key[2];

	make_key(m, i, key);
	FUZZ_CHECK(memcmp(record->key, key, sizeof(key)) == 0);
	FUZZ_CHECK(record->number == i + UINT64_C(1));
	FUZZ_CHECK(record->rest == 0);
}

/* Growing fails: no part of the table gets a byte more than it uses. */
static void set_memory(struct model *m, bool has_none)
{
	struct mri_space *const spaces[] = { &m->table->bucket_space,
					     &m->table->overflows.space,
					     &m->table->records.space };
	const uint64_t used_bytes[] = {
		m->table->n_buckets * sizeof(struct mri_bucket),
		m->table->overflows.n_started * (uint64_t)MRI_SPACE_STEP,
		m->table->records.n_started * (uint64_t)MRI_SPACE_STEP,
	};

	if (has_none == m->has_no_memory)
		return;
	m->has_no_memory = has_none;
	m->has_lacked_memory = true;
	for (size_t i = 0; i < N_SPACES; i++) {
		if (has_none) {
			m->saved[i] = *spaces[i];
			spaces[i]->ready_bytes = used_bytes[i];
			spaces[i]->max_bytes = used_bytes[i];
		} else {
			*spaces[i] = m->saved[i];
		}
	}
}

static void add_flow(struct model *m, uint32_t i)
{
	struct known *known = &m->keys[i];
	uint32_t id = 0xdddddddd;
	struct record *record;
	uint64_t key[2];
	int err;

	make_key(m, i, key);
	err = mr_flow_add(m->table, key, &id);
	if (known->id != MR_FLOW_NONE) {
		FUZZ_CHECK(err == -EEXIST && id == known->id);
		return;
	}
	if (err < 0) {
		FUZZ_CHECK(err == -ENOSPC ? m->n == m->n_max :
					    err == -ENOMEM && m->has_no_memory);
		FUZZ_CHECK(id == 0xdddddddd);
		return;
	}
	FUZZ_CHECK(m->n < m->n_max && id < m->n_max && m->key_of[id] == 0);
	record = mr_flow_record(m->table, id);
	FUZZ_CHECK(record->number == 0 && record->rest == 0);
	record->number = i + 1;
	m->n++;
	m->key_of[id] = i + 1;
	*known = (struct known){ .id = id, .due = m->now + i % 20 };
	mr_wheel_set(m->wheel, id, known->due);
}

static void forget(struct model *m, uint32_t i)
{
	m->key_of[m->keys[i].id] = 0;
	m->keys[i].id = MR_FLOW_NONE;
	m->n--;
}

static void remove_key(struct model *m, uint32_t i)
{
	const uint32_t id = m->keys[i].id;

	if (id == MR_FLOW_NONE)
		return;
	check_record(m, id, i);
	mr_wheel_cancel(m->wheel, id);
	mr_flow_remove(m->table, id);
	mr_flow_remove(m->table, id); /* nothing happens */
	forget(m, i);
}

static void find_flows(const struct model *m, uint32_t first)
{
	uint64_t keys[MANY][2];
	uint32_t ids[MANY], n_there = 0;

	for (uint32_t k = 0; k < MANY; k++) {
		const uint32_t i = (first + k * 7) % N_KEYS;

		make_key(m, i, keys[k]);
		n_there += m->keys[i].id != MR_FLOW_NONE;
		FUZZ_CHECK(mr_flow_find(m->table, keys[k]) == m->keys[i].id);
	}
	FUZZ_CHECK(mr_flow_find_bulk(m->table, keys, MANY, ids) == n_there);
	for (uint32_t k = 0; k < MANY; k++)
		FUZZ_CHECK(ids[k] == m->keys[(first + k * 7) % N_KEYS].id);
}

/* Time passes: half of what is due is set again, the rest is removed. */
static void age_flows(struct model *m, uint32_t n_ticks)
{
	uint32_t ids[BURST], n, n_short = 0;

	m->now += n_ticks;
	while (n_short <= N_KEYS / 128) {
		n = mr_wheel_expire(m->wheel, m->now, ids, BURST);
		n_short = n == BURST ? 0 : n_short + 1;
		for (uint32_t k = 0; k < n; k++) {
			uint32_t i;

			FUZZ_CHECK(ids[k] < m->n_max && m->key_of[ids[k]] != 0);
			i = m->key_of[ids[k]] - 1;
			FUZZ_CHECK((int32_t)(m->now - m->keys[i].due) >= 0);
			if (i % 2 != 0) {
				m->keys[i].due = m->now + 1 + i % 30;
				mr_wheel_set(m->wheel, ids[k], m->keys[i].due);
				continue;
			}
			mr_flow_remove(m->table, ids[k]);
			forget(m, i);
		}
		remove_key(m, m->now % N_KEYS); /* others go meanwhile */
	}
	for (uint32_t i = 0; i < N_KEYS; i++)
		FUZZ_CHECK(m->keys[i].id == MR_FLOW_NONE ||
			   (int32_t)(m->keys[i].due - m->now) > 0);
}

/* Each record is in the chain of its hash, all but the last bucket are full. */
static void check_chains(const struct mr_flow_table *table)
{
	uint32_t n = 0, n_overflows = 0;

	FUZZ_CHECK(table->n_low <= table->n_buckets &&
		    table->n_buckets < 2 * table->n_low);
	for (uint32_t i = 0; i < table->n_buckets; i++) {
		const struct mri_bucket *b = &table->buckets[i];

		for (; b != NULL; b = mri_bucket_next(table, b)) {
			FUZZ_CHECK(b->n <= MRI_BUCKET_ENTRIES);
			FUZZ_CHECK(b->next == 0 || b->n == MRI_BUCKET_ENTRIES);
			FUZZ_CHECK(b == &table->buckets[i] || b->n > 0);
			n_overflows += b != &table->buckets[i];
			n += b->n;
			for (uint32_t k = 0; k < b->n; k++)
				FUZZ_CHECK(mri_bucket_of(table, b->hashes[k]) ==
					   &table->buckets[i]);
		}
	}
	FUZZ_CHECK(n == table->records.n);
	FUZZ_CHECK(n_overflows == table->overflows.n);
}

static void check_all(const struct model *m)
{
	struct mr_flow_stats s = { .size = sizeof(s) };
	uint32_t id = MR_FLOW_NONE, n = 0;

	FUZZ_CHECK(mr_flow_stats(m->table, &s) == 0);
	check_chains(m->table);
	FUZZ_CHECK(s.n == m->n && mr_wheel_n(m->wheel) == m->n);
	FUZZ_CHECK(s.n_overflows <= m->n / MRI_BUCKET_ENTRIES);
	/* Each removal joins one bucket, or none if memory lacks just then. */
	FUZZ_CHECK(m->n > 0 || s.n_buckets == MRI_MIN_BUCKETS ||
		   m->has_lacked_memory);
	while ((id = mr_flow_next(m->table, id)) != MR_FLOW_NONE) {
		FUZZ_CHECK(id < m->n_max && m->key_of[id] != 0);
		check_record(m, id, m->key_of[id] - 1);
		n++;
	}
	FUZZ_CHECK(n == m->n);
}

static void do_step(struct model *m, uint8_t what, uint8_t with)
{
	const uint32_t first = (with + what / 8 * 256u) % N_KEYS;

	switch (what % 8) {
	case 0:
		add_flow(m, first);
		break;
	case 1:
		for (uint32_t i = 0; i < MANY; i++)
			add_flow(m, (first + i) % N_KEYS);
		break;
	case 2:
		remove_key(m, first);
		break;
	case 3:
		for (uint32_t i = 0; i < MANY; i++)
			remove_key(m, (first + i) % N_KEYS);
		break;
	case 4:
		find_flows(m, first);
		break;
	case 5:
		check_all(m);
		break;
	case 6:
		age_flows(m, with);
		break;
	default:
		set_memory(m, with % 2 != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct model m;
	struct mr_flow_config config = {
		.size = sizeof(config),
		.key_bytes = sizeof(((struct record *)0)->key),
		.record_bytes = sizeof(struct record),
		.seed = 1,
	};
	struct mr_ctx *ctx;

	if (n_bytes < 2)
		return 0;
	m = (struct model){ .n_colliding = bytes[0],
			    .n_max = 1 + bytes[1] * 3u,
			    .now = UINT32_MAX - 300 };
	for (uint32_t i = 0; i < N_KEYS; i++)
		m.keys[i].id = MR_FLOW_NONE;
	config.n_max = m.n_max;
	FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
	FUZZ_CHECK(mr_flow_create(ctx, &config, &m.table, NULL) == 0);
	FUZZ_CHECK(mr_wheel_create(ctx, m.n_max, N_SLOTS, m.now, &m.wheel,
				   NULL) == 0);
	mr_flow_remove(m.table, 0); /* never used: nothing happens */
	mr_flow_remove(m.table, MR_FLOW_NONE);
	for (size_t i = 2; i + 1 < n_bytes && i < 400; i += 2)
		do_step(&m, bytes[i], bytes[i + 1]);
	check_all(&m);
	find_flows(&m, 0);
	for (uint32_t i = 0; i < N_KEYS; i++)
		remove_key(&m, i);
	check_all(&m);
	set_memory(&m, false);
	mr_wheel_destroy(m.wheel);
	mr_flow_destroy(m.table);
	mr_ctx_destroy(ctx);
	return 0;
}

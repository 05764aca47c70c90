/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Longest prefix match in an array of entries: 2^24 of the root, then groups of
 * 256. An entry is a group's number, or a next hop with the length of its
 * prefix, so that a shorter route does not overwrite it. Zero is no route, so
 * untouched memory is right.
 *
 * The routes are also in a flow table, by prefix. When one is removed, it tells
 * which route takes over.
 *
 * There are two copies of the root: most IPv4 lookups need only the narrow one,
 * of which twice as much fits in the CPU's caches.
 *
 * Readers take no lock: an entry is written at once, a group before the entry
 * that leads to it, and no memory moves.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <millrace/lpm.h>

#include "flow/flow.h"

enum {
	ROOT_BITS = 24,
	GROUP_BITS = 8,
	GROUP_ENTRIES = 1 << GROUP_BITS,
	HOP_BITS = 23, /* a next hop plus 1; the next 8 bits: its length */
	CHUNK = 64,    /* addresses that are looked up together */
	FEW = 16,      /* addresses that are looked up one by one */
};

/* Groups are numbered from the start of the array. */
static const uint64_t first_group = 1 << (ROOT_BITS - GROUP_BITS);
static const uint64_t group_bytes = GROUP_ENTRIES * sizeof(uint32_t);
static const uint64_t narrow_bytes = sizeof(uint16_t) << ROOT_BITS;
static const uint32_t is_wide = UINT16_MAX; /* in narrow: see entries */
static const uint32_t is_group = UINT32_C(1) << 31;
static const uint32_t hop_mask = (UINT32_C(1) << HOP_BITS) - 1;

struct mr_lpm {
	uint16_t *narrow; /* the root again, with next hops plus 1 that fit */
	uint32_t *entries;
	uint32_t addr_bytes;
	uint64_t n_groups;   /* ever used, first_group included */
	uint32_t free_group; /* its first entry has the next; 0: none */
	struct mri_space space;
	struct mr_flow_table *routes;
	struct mr_ctx *ctx;
};

/* In the flow table: the key is the length and the address; then the hop. */
struct route {
	uint32_t n_bits;
	uint8_t addr[16];
	uint32_t end;
};

static void make_key(const void *addr, uint32_t n_bits, struct route *ret_key)
{
	memset(ret_key, 0, sizeof(*ret_key));
	ret_key->n_bits = n_bits;
	memcpy(ret_key->addr, addr, (n_bits + 7) / 8);
	if (n_bits % 8 != 0)
		ret_key->addr[n_bits / 8] &= (uint8_t)(0xff00 >> n_bits % 8);
}

static uint32_t *hop_of(const struct mr_lpm *lpm, uint32_t id)
{
	return (uint32_t *)mr_flow_record(lpm->routes, id) + 1 +
	       lpm->addr_bytes / 4;
}

static uint32_t make_entry(uint32_t n_bits, uint32_t next_hop)
{
	return n_bits << HOP_BITS | (next_hop + 1);
}

static uint32_t root_index(const uint8_t *addr)
{
	uint32_t word;

	memcpy(&word, addr, sizeof(word));
	return be32toh(word) >> (32 - ROOT_BITS);
}

static uint32_t load(const uint32_t *entry)
{
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

static uint32_t *entry_in(const struct mr_lpm *lpm, uint32_t group,
			  uint32_t byte)
{
	return &lpm->entries[(uint64_t)(group & ~is_group) << GROUP_BITS |
			     byte];
}

static void set_entry(struct mr_lpm *lpm, uint32_t *entry, uint32_t value)
{
	const uint64_t i = (uint64_t)(entry - lpm->entries);
	const uint32_t hop = value & hop_mask;

	__atomic_store_n(entry, value, __ATOMIC_RELEASE);
	if (i >> ROOT_BITS == 0)
		__atomic_store_n(&lpm->narrow[i],
				 value & is_group || hop > is_wide ? is_wide :
								     hop,
				 __ATOMIC_RELEASE);
}

/* A group whose addresses all have this entry; 0: no memory. */
static uint32_t take_group(struct mr_lpm *lpm, uint32_t entry)
{
	uint32_t group = lpm->free_group;

	if (group != 0)
		lpm->free_group = *entry_in(lpm, group, 0);
	else if (mri_space_ready(&lpm->space, narrow_bytes + (lpm->n_groups +
							      1) * group_bytes))
		group = (uint32_t)lpm->n_groups++;
	for (uint32_t i = 0; i < GROUP_ENTRIES && group != 0; i++)
		*entry_in(lpm, group, i) = entry;
	return group;
}

/* The entries of a prefix, and how many. Makes the groups that are missing;
 * NULL: no memory. */
static uint32_t *find_entries(struct mr_lpm *lpm, const struct route *key,
			      uint32_t *ret_n)
{
	uint32_t *entry = &lpm->entries[root_index(key->addr)];
	uint32_t n_bits = ROOT_BITS;

	for (; n_bits < key->n_bits; n_bits += GROUP_BITS) {
		uint32_t group = *entry;

		if (!(group & is_group)) {
			group = take_group(lpm, *entry) | is_group;
			if (group == is_group)
				return NULL;
			set_entry(lpm, entry, group);
		}
		entry = entry_in(lpm, group, key->addr[n_bits / 8]);
	}
	*ret_n = UINT32_C(1) << (n_bits - key->n_bits);
	return entry;
}

/* Write an entry where the present one's length is from min to max. */
static void replace(struct mr_lpm *lpm, uint32_t *entries, uint32_t n,
		    uint32_t min_bits, uint32_t max_bits, uint32_t entry)
{
	for (uint32_t i = 0; i < n; i++)
		if (entries[i] & is_group)
			replace(lpm, entry_in(lpm, entries[i], 0),
				GROUP_ENTRIES, min_bits, max_bits, entry);
		else if (entries[i] >> HOP_BITS >= min_bits &&
			 entries[i] >> HOP_BITS <= max_bits)
			set_entry(lpm, &entries[i], entry);
}

int mr_lpm_create(struct mr_ctx *ctx, uint32_t addr_bytes, uint32_t n_max,
		  struct mr_lpm **ret_lpm, struct mr_reason *reterr_reason)
{
	const uint32_t key_bytes = 4 + addr_bytes;
	const struct mr_flow_config routes = { .size = sizeof(routes),
					       .key_bytes = key_bytes,
					       .record_bytes =
						       key_bytes / 8 * 8 + 8,
					       .n_max = n_max };
	const uint64_t max_groups =
		first_group + n_max * (addr_bytes - UINT64_C(3));
	struct mr_lpm *lpm;
	int err;

	if ((addr_bytes != 4 && addr_bytes != 16) || n_max == 0 ||
	    n_max > MR_LPM_ROUTES_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u routes for addresses of %u bytes: must be 1 "
			       "to %u, and 4 or 16 bytes",
			       n_max, addr_bytes, MR_LPM_ROUTES_MAX);
	lpm = mr_alloc(ctx, 0, sizeof(*lpm));
	if (lpm == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a table");
	lpm->ctx = ctx;
	lpm->addr_bytes = addr_bytes;
	lpm->n_groups = first_group;
	if (mri_space_reserve(&lpm->space,
			      narrow_bytes + max_groups * group_bytes) < 0 ||
	    !mri_space_ready(&lpm->space,
			     narrow_bytes + first_group * group_bytes))
		err = mr_fail(reterr_reason, -ENOMEM,
			      "no memory for a table of %u routes", n_max);
	else
		err = mr_flow_create(ctx, &routes, &lpm->routes, reterr_reason);
	if (err < 0) {
		mr_lpm_destroy(lpm);
		return err;
	}
	lpm->narrow = (uint16_t *)lpm->space.base;
	lpm->entries = (uint32_t *)(lpm->space.base + narrow_bytes);
	*ret_lpm = lpm;
	return 0;
}

void mr_lpm_destroy(struct mr_lpm *lpm)
{
	if (lpm == NULL)
		return;
	mr_flow_destroy(lpm->routes);
	mri_space_free(&lpm->space);
	mr_free(lpm->ctx, lpm);
}

int mr_lpm_add(struct mr_lpm *lpm, const void *addr, uint32_t n_bits,
	       uint32_t next_hop)
{
	struct route key;
	uint32_t *entries, id, n;
	int err;

	if (n_bits > 8 * lpm->addr_bytes || next_hop > MR_LPM_HOP_MAX)
		return -EINVAL;
	make_key(addr, n_bits, &key);
	/* First, so that a refused route takes no groups. */
	err = mr_flow_add(lpm->routes, &key, &id);
	if (err < 0 && err != -EEXIST)
		return err;
	entries = find_entries(lpm, &key, &n);
	if (entries == NULL) { /* then the route is new */
		mr_flow_remove(lpm->routes, id);
		return -ENOMEM;
	}
	*hop_of(lpm, id) = next_hop;
	replace(lpm, entries, n, 0, n_bits, make_entry(n_bits, next_hop));
	return 0;
}

int mr_lpm_remove(struct mr_lpm *lpm, const void *addr, uint32_t n_bits)
{
	struct route key;
	uint32_t *entries, entry = 0, id, other, n;

	if (n_bits > 8 * lpm->addr_bytes)
		return -EINVAL;
	make_key(addr, n_bits, &key);
	id = mr_flow_find(lpm->routes, &key);
	if (id == MR_FLOW_NONE)
		return -ENOENT;
	entries = find_entries(lpm, &key, &n); /* its groups exist */
	for (uint32_t i = n_bits; i-- > 0 && entry == 0;) {
		make_key(addr, i, &key);
		other = mr_flow_find(lpm->routes, &key);
		if (other != MR_FLOW_NONE)
			entry = make_entry(i, *hop_of(lpm, other));
	}
	replace(lpm, entries, n, n_bits, n_bits, entry);
	mr_flow_remove(lpm->routes, id);
	return 0;
}

/*
 * Replace groups below by what all their addresses have, if no route there is
 * longer than n_bits. Returns how many there were.
 */
static uint32_t trim(struct mr_lpm *lpm, uint32_t *entries, uint32_t n,
		     uint32_t n_bits)
{
	uint32_t n_freed = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t group = entries[i] & ~is_group;
		uint32_t *below, same = 1;

		if (!(entries[i] & is_group))
			continue;
		below = entry_in(lpm, group, 0);
		n_freed += trim(lpm, below, GROUP_ENTRIES, n_bits + GROUP_BITS);
		while (same < GROUP_ENTRIES && below[same] == below[0])
			same++;
		if (same < GROUP_ENTRIES || below[0] & is_group ||
		    below[0] >> HOP_BITS > n_bits)
			continue;
		set_entry(lpm, &entries[i], below[0]);
		below[0] = lpm->free_group;
		lpm->free_group = group;
		n_freed++;
	}
	return n_freed;
}

uint32_t mr_lpm_trim(struct mr_lpm *lpm)
{
	return trim(lpm, lpm->entries, UINT32_C(1) << ROOT_BITS, ROOT_BITS);
}

static inline uint32_t find(const struct mr_lpm *lpm, const uint8_t *addr)
{
	const uint32_t root = root_index(addr);
	uint32_t entry = __atomic_load_n(&lpm->narrow[root], __ATOMIC_ACQUIRE);

	if (entry != is_wide)
		return entry - 1;
	entry = load(&lpm->entries[root]);
	for (uint32_t i = ROOT_BITS / 8; entry & is_group; i++)
		entry = load(entry_in(lpm, entry, addr[i]));
	return (entry & hop_mask) - 1;
}

uint32_t mr_lpm_find(const struct mr_lpm *lpm, const void *addr)
{
	return find(lpm, addr);
}

/* Of the addresses idxs, those whose hops are groups; how many. */
static uint32_t keep_groups(const uint32_t *hops, uint8_t *idxs, uint32_t n)
{
	uint32_t n_kept = 0;

	for (uint32_t j = 0; j < n; j++) {
		const uint8_t i = idxs[j];

		idxs[n_kept] = i; /* takes no branch */
		n_kept += hops[i] / is_group;
	}
	return n_kept;
}

/*
 * IPv6 addresses, level by level, so that the loads of one level do not wait
 * for each other, nor for a branch that was predicted wrong.
 */
static void find_chunk(const struct mr_lpm *lpm, const uint8_t (*addrs)[16],
		       uint32_t n, uint32_t *hops)
{
	uint32_t n_deep;
	uint8_t deep[CHUNK];

	for (uint32_t i = 0; i < n; i++) {
		hops[i] = load(&lpm->entries[root_index(addrs[i])]);
		deep[i] = (uint8_t)i;
	}
	n_deep = keep_groups(hops, deep, n);
	for (uint32_t at = ROOT_BITS / 8; n_deep > 0; at++) {
		for (uint32_t j = 0; j < n_deep; j++)
			hops[deep[j]] = load(entry_in(lpm, hops[deep[j]],
						      addrs[deep[j]][at]));
		n_deep = keep_groups(hops, deep, n_deep);
	}
	for (uint32_t i = 0; i < n; i++)
		hops[i] = (hops[i] & hop_mask) - 1;
}

/*
 * Few IPv4 routes are longer than 24 bits, so the branch costs little. In a
 * short burst, waiting for each level costs more than overlapping its few loads
 * saves.
 */
void mr_lpm_find_bulk(const struct mr_lpm *lpm, const void *addrs, uint32_t n,
		      uint32_t *ret_hops)
{
	const uint8_t *bytes = addrs;
	const uint8_t(*v6)[16] = addrs;

	if (lpm->addr_bytes == 4)
		for (uint32_t i = 0; i < n; i++)
			ret_hops[i] = find(lpm, bytes + 4 * (size_t)i);
	else if (n <= FEW)
		for (uint32_t i = 0; i < n; i++)
			ret_hops[i] = find(lpm, v6[i]);
	else
		for (uint32_t i = 0; i < n; i += CHUNK)
			find_chunk(lpm, v6 + i, n - i < CHUNK ? n - i : CHUNK,
				   ret_hops + i);
}

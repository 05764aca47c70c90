/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * F05: longest prefix match beside rte_lpm, rte_lpm6, rte_fib and rte_fib6.
 *
 * An operation looks up one address, in bursts. Prefix lengths are distributed
 * as in the public tables of 2024 (CIDR report, RIPE RIS): six of ten IPv4
 * routes have 24 bits, and 46 of 100 IPv6 routes 48. Addresses are drawn from
 * the routes, so each one matches. rte_lpm searches its list of routes for each
 * new one: 1,000,000 would take four minutes, so it has a row with fewer.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/lpm.h>

#include "bench.h"

enum {
	N_ADDRS = 1 << 20,
	MAX_BURST = 256,
	N_HOPS = 1000,
	N_BLOCKS = 40000, /* IPv6 allocations of 32 bits */
};
enum { P_ADDR_BYTES, P_ROUTES, P_BURST, P_WAY };
enum way { WAY_OURS, WAY_LPM, WAY_FIB, WAY_FIB_AVX512 };

struct share {
	uint8_t n_bits;
	uint16_t n; /* in 1000 */
};

static const struct share shares_4[] = {
	{ 24, 600 }, { 23, 100 }, { 22, 110 }, { 21, 45 }, { 20, 45 },
	{ 19, 30 },  { 18, 16 },  { 17, 10 },  { 16, 36 }, { 12, 8 },
};
static const struct share shares_6[] = {
	{ 48, 460 }, { 32, 120 }, { 44, 95 }, { 40, 95 }, { 36, 50 },
	{ 46, 40 },  { 47, 35 },  { 29, 30 }, { 33, 20 }, { 45, 15 },
	{ 34, 12 },  { 42, 12 },  { 38, 10 }, { 35, 6 },
};

struct prefix {
	uint8_t addr[16];
	uint32_t n_bits;
};

/* One of the tables, with the addresses to look up. */
struct routes {
	struct mr_lpm *ours;
	void *peer;
	enum way way;
	uint32_t addr_bytes;
	uint32_t next;
	struct prefix *prefixes;
	uint8_t *addrs;       /* in network order */
	uint32_t *host_addrs; /* IPv4, for the peer */
};

static uint32_t draw_length(uint32_t addr_bytes, uint64_t *random)
{
	const struct share *share = addr_bytes == 4 ? shares_4 : shares_6;
	uint32_t r = (uint32_t)(random_u64(random) >> 20) % 1000;

	for (; r >= share->n; share++)
		r -= share->n;
	return share->n_bits;
}

/* Set the bits after the first n_bits: to 0, or at random. */
static void fill_rest(uint8_t *addr, uint32_t n_bytes, uint32_t n_bits,
		      uint64_t *random)
{
	for (uint32_t i = n_bits; i < 8 * n_bytes; i++) {
		const uint8_t bit = (uint8_t)(0x80 >> i % 8);

		addr[i / 8] &= (uint8_t)~bit;
		if (random != NULL && random_u64(random) >> 40 & 1)
			addr[i / 8] |= bit;
	}
}

static void draw_prefix(uint32_t addr_bytes, struct prefix *ret,
			uint64_t *random)
{
	const uint64_t r = random_u64(random);
	const uint64_t low = random_u64(random);
	uint64_t block = r % N_BLOCKS * UINT64_C(2654435761) % (1 << 22);

	ret->n_bits = draw_length(addr_bytes, random);
	if (addr_bytes == 4) { /* 1.0.0.0 to 223.255.255.255 */
		const uint32_t addr =
			htobe32((uint32_t)(r >> 16) % 0xdf000000 + 0x01000000);

		memcpy(ret->addr, &addr, 4);
	} else { /* 2000::/10 */
		block = htobe64((0x20000000 + block) << 32 | low >> 32);
		memcpy(ret->addr, &block, 8);
	}
	fill_rest(ret->addr, addr_bytes, ret->n_bits, NULL);
}

static bool make_addrs(struct routes *routes, uint32_t n)
{
	const uint32_t n_bytes = routes->addr_bytes;
	uint64_t random = 88172645463325252;

	routes->prefixes = calloc(n, sizeof(*routes->prefixes));
	routes->addrs = malloc((size_t)N_ADDRS * n_bytes);
	routes->host_addrs = malloc(N_ADDRS * sizeof(uint32_t));
	if (routes->prefixes == NULL || routes->addrs == NULL ||
	    routes->host_addrs == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++)
		draw_prefix(n_bytes, &routes->prefixes[i], &random);
	for (uint32_t i = 0; i < N_ADDRS; i++) {
		const struct prefix *of =
			&routes->prefixes[(random_u64(&random) >> 20) % n];
		uint8_t *addr = routes->addrs + (size_t)i * n_bytes;
		uint32_t word;

		memcpy(addr, of->addr, n_bytes);
		fill_rest(addr, n_bytes, of->n_bits, &random);
		memcpy(&word, addr, 4);
		routes->host_addrs[i] = be32toh(word);
	}
	return true;
}

#ifdef BENCH_DPDK
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>

static void *make_fib(const char *name, const struct routes *routes, uint32_t n)
{
	const bool is_avx512 = routes->way == WAY_FIB_AVX512;
	struct rte_fib_conf conf = { .type = RTE_FIB_DIR24_8,
				     .max_routes = (int)n,
				     .dir24_8 = { RTE_FIB_DIR24_8_2B, 1024 } };
	struct rte_fib6_conf conf6 = { .type = RTE_FIB6_TRIE,
				       .max_routes = (int)n,
				       .trie = { RTE_FIB6_TRIE_4B, 1 << 19 } };
	void *fib =
		routes->addr_bytes == 4 ?
			(void *)rte_fib_create(name, SOCKET_ID_ANY, &conf) :
			(void *)rte_fib6_create(name, SOCKET_ID_ANY, &conf6);
	int err = 0;

	if (fib == NULL)
		return NULL;
	if (routes->addr_bytes == 4)
		err = rte_fib_select_lookup(
			fib, is_avx512 ? RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512 :
					 RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
	else
		err = rte_fib6_select_lookup(
			fib, is_avx512 ? RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512 :
					 RTE_FIB6_LOOKUP_TRIE_SCALAR);
	rte_errno = -err;
	return err < 0 ? NULL : fib;
}

static bool make_peer(struct routes *routes, uint32_t n, struct mr_reason *why)
{
	static uint32_t number;
	const struct rte_lpm_config conf = { .max_rules = n,
					     .number_tbl8s = 1024 };
	const struct rte_lpm6_config conf6 = { .max_rules = n,
					       .number_tbl8s = 1 << 18 };
	char name[RTE_LPM_NAMESIZE];

	snprintf(name, sizeof(name), "routes%u", number++);
	if (routes->way != WAY_LPM)
		routes->peer = make_fib(name, routes, n);
	else if (routes->addr_bytes == 4)
		routes->peer = rte_lpm_create(name, SOCKET_ID_ANY, &conf);
	else
		routes->peer = rte_lpm6_create(name, SOCKET_ID_ANY, &conf6);
	if (routes->peer == NULL)
		snprintf(why->text, sizeof(why->text), "%s",
			 rte_strerror(rte_errno));
	return routes->peer != NULL;
}

static void free_peer(const struct routes *routes)
{
	if (routes->way == WAY_LPM && routes->addr_bytes == 4)
		rte_lpm_free(routes->peer);
	else if (routes->way == WAY_LPM)
		rte_lpm6_free(routes->peer);
	else if (routes->addr_bytes == 4)
		rte_fib_free(routes->peer);
	else
		rte_fib6_free(routes->peer);
}

static int add_to_peer(const struct routes *routes, const struct prefix *prefix,
		       uint32_t hop)
{
	const uint8_t n_bits = (uint8_t)prefix->n_bits;
	uint32_t addr;

	memcpy(&addr, prefix->addr, 4);
	addr = be32toh(addr);
	if (routes->way == WAY_LPM && routes->addr_bytes == 4)
		return rte_lpm_add(routes->peer, addr, n_bits, hop);
	if (routes->way == WAY_LPM)
		return rte_lpm6_add(routes->peer, prefix->addr, n_bits, hop);
	if (routes->addr_bytes == 4)
		return rte_fib_add(routes->peer, addr, n_bits, hop);
	return rte_fib6_add(routes->peer, prefix->addr, n_bits, hop);
}

static inline uint64_t find_in_peer(const struct routes *routes, uint32_t at,
				    uint32_t n)
{
	uint8_t(*addrs)[16] = (uint8_t(*)[16])(void *)routes->addrs + at;
	uint32_t hops[MAX_BURST];
	uint64_t wide[MAX_BURST];

	if (routes->addr_bytes == 4 && routes->way == WAY_LPM) {
		rte_lpm_lookup_bulk(routes->peer, routes->host_addrs + at, hops,
				    n);
		return hops[0] & 0xffffff;
	}
	if (routes->way == WAY_LPM) {
		rte_lpm6_lookup_bulk_func(routes->peer, addrs, (int32_t *)hops,
					  n);
		return hops[0];
	}
	if (routes->addr_bytes == 4)
		rte_fib_lookup_bulk(routes->peer, routes->host_addrs + at, wide,
				    (int)n);
	else
		rte_fib6_lookup_bulk(routes->peer, addrs, wide, (int)n);
	return wide[0];
}
#else
/* Never called: there is no variant of DPDK. */
#define make_peer(routes, n, why) ((void)(n), (void)(why), false)
#define free_peer(routes) ((void)(routes))
#define add_to_peer(routes, prefix, hop) ((void)(prefix), (void)(hop), -1)
#define find_in_peer(routes, at, n) ((void)(at), (void)(n), 0)
#endif

static inline uint64_t find_in_ours(const struct routes *routes, uint32_t at,
				    uint32_t n)
{
	uint32_t hops[MAX_BURST];

	mr_lpm_find_bulk(routes->ours,
			 routes->addrs + (size_t)at * routes->addr_bytes, n,
			 hops);
	return hops[0];
}

static void tear_down(struct variant *variant)
{
	struct routes *routes = variant->state;

	mr_lpm_destroy(routes->ours);
	if (routes->peer != NULL)
		free_peer(routes);
	free(routes->prefixes);
	free(routes->addrs);
	free(routes->host_addrs);
	free(routes);
}

/* Whether it finds what ours does: the sum of some next hops. */
static bool is_right(const struct variant *variant, struct mr_reason *why)
{
	static uint64_t expected[2];
	const struct routes *routes = variant->state;
	uint64_t *ours = &expected[routes->addr_bytes == 16], sum = 0;

	for (uint32_t i = 0; i < N_ADDRS; i += 16)
		sum += routes->ours != NULL ? find_in_ours(routes, i, 1) :
					      find_in_peer(routes, i, 1);
	if (routes->ours != NULL)
		*ours = sum;
	snprintf(why->text, sizeof(why->text), "it finds other routes");
	return *ours == 0 || sum == *ours;
}

static int set_up(struct variant *variant, struct mr_reason *why)
{
	struct routes *routes = calloc(1, sizeof(*routes));
	const uint32_t n = (uint32_t)variant->param[P_ROUTES];
	bool is_made;
	int err = 0;

	if (routes == NULL)
		return -1;
	variant->state = routes;
	routes->way = (enum way)variant->param[P_WAY];
	routes->addr_bytes = (uint32_t)variant->param[P_ADDR_BYTES];
	is_made = make_addrs(routes, n) &&
		  (routes->way == WAY_OURS ?
			   mr_lpm_create(bench_ctx(variant->bench),
					 routes->addr_bytes, n, &routes->ours,
					 why) == 0 :
			   make_peer(routes, n, why));
	for (uint32_t i = 0; i < n && is_made && err >= 0; i++) {
		const struct prefix *prefix = &routes->prefixes[i];

		err = routes->way == WAY_OURS ?
			      mr_lpm_add(routes->ours, prefix->addr,
					 prefix->n_bits, 1 + i % N_HOPS) :
			      add_to_peer(routes, prefix, 1 + i % N_HOPS);
		if (err < 0)
			snprintf(why->text, sizeof(why->text),
				 "route %u of %u: %s", i, n, strerror(-err));
	}
	if (is_made && err >= 0 && is_right(variant, why))
		return 0;
	tear_down(variant);
	return -1;
}

static uint64_t run_ours(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct routes *routes = variant->state;
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	uint64_t done, sum = 0;

	(void)thread;
	for (done = 0; done < n; done += burst) {
		sum += find_in_ours(routes, routes->next, burst);
		routes->next = (routes->next + burst) % N_ADDRS;
	}
	keep(&sum);
	return done;
}

static uint64_t run_peer(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct routes *routes = variant->state;
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	uint64_t done, sum = 0;

	(void)thread;
	for (done = 0; done < n; done += burst) {
		sum += find_in_peer(routes, routes->next, burst);
		routes->next = (routes->next + burst) % N_ADDRS;
	}
	keep(&sum);
	return done;
}

static void find_row(struct bench *bench, uint32_t addr_bytes, uint32_t n,
		     uint32_t burst)
{
	static const char *const names[2][4] = {
		{ "millrace", "rte_lpm", "rte_fib", "rte_fib avx512" },
		{ "millrace", "rte_lpm6", "rte_fib6", "rte_fib6 avx512" },
	};
	const bool is_v6 = addr_bytes == 16;
	struct row row = { .unit = "address" };

	NAME(row.plot, "ipv%u routes=%u", is_v6 ? 6 : 4, n);
	NAME(row.name, "%s burst=%u", row.plot, burst);
	for (uint32_t way = WAY_OURS; way <= WAY_FIB_AVX512; way++) {
		struct variant variant = {
			.side = way == WAY_OURS ? SIDE_OURS : SIDE_DPDK,
			.setup = set_up,
			.run = way == WAY_OURS ? run_ours : run_peer,
			.teardown = tear_down,
			.param = { [P_ADDR_BYTES] = addr_bytes,
				   [P_ROUTES] = n,
				   [P_BURST] = burst,
				   [P_WAY] = way },
		};

		NAME(variant.name, "%s", names[is_v6][way]);
		if (way != WAY_LPM || is_v6 || n <= 100000)
			bench_add(bench, &row, &variant);
	}
	bench_row(bench, &row);
}

void rows_f05(struct bench *bench)
{
	for (uint32_t burst = 8; burst <= 128; burst *= 4) {
		find_row(bench, 4, 100000, burst);
		find_row(bench, 4, 1000000, burst);
		find_row(bench, 16, 200000, burst);
	}
}

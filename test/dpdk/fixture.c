/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of the dpdk: driver have in common. */
#include <rte_eal.h>

#include "fixture.h"

struct mr_ctx *ctx;
struct mr_pool *pool;
struct mr_cache *cache;
uint8_t *base;
char log_text[65536];

static void keep_log(void *opaque, enum mr_log_level level, const char *line)
{
	const size_t n = strlen(log_text);

	(void)opaque;
	(void)level;
	snprintf(log_text + n, sizeof(log_text) - n, "%s\n", line);
}

int set_up(void **state)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
						  .log = keep_log };
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = N_PAGES,
					       .max_pages = MAX_PAGES,
					       .magazine_pages = 64 };

	(void)state;
	assert_int_equal(mr_ctx_create(&ctx_config, &ctx, NULL), 0);
	assert_int_equal(mr_pool_create(ctx, &config, &pool, NULL), 0);
	assert_int_equal(mr_cache_create(pool, &cache, NULL), 0);
	base = mr_region_base(mr_pool_region(pool));
	return 0;
}

/* Nothing is left over: each page is free. */
int tear_down(void **state)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_reason why;

	(void)state;
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_stats(pool, &stats), 0);
	assert_int_equal(stats.n_free, stats.n_pages);
	if (mr_pool_destroy(pool, &why) < 0)
		fail_msg("%s", why.text);
	mr_ctx_destroy(ctx);
	return 0;
}

int try_open(const char *spec, struct mr_port **ret_port, struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = pool };

	return mr_port_open(ctx, spec, &config, ret_port, why);
}

struct mr_port *open_port(const char *spec)
{
	struct mr_port *port = NULL;
	struct mr_reason why;

	if (try_open(spec, &port, &why) < 0)
		fail_msg("%s: %s", spec, why.text);
	return port;
}

uint64_t n_in_flight(void)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_pool_stats(pool, &stats), 0);
	return stats.n_in_flight;
}

struct mr_tx_stats tx_stats(struct mr_port *port)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(mr_port_txq(port, 0), &stats), 0);
	return stats;
}

void start_programs_eal(void)
{
	static char words[][16] = { "test",        "--no-huge",
				    "-m64",        "--no-shconf",
				    "--no-pci",    "--no-telemetry",
				    "--lcores=0@0" };
	char *argv[RTE_DIM(words) + 1] = { NULL };

	for (size_t i = 0; i < RTE_DIM(words); i++)
		argv[i] = words[i];
	assert_true(rte_eal_init(RTE_DIM(words), argv) >= 0);
}

struct pair make_pair(const char *names[2], const char *options)
{
	struct pair pair;
	char spec[128];

	/* EAL has to run before there can be rings. */
	mr_port_close(open_port("dpdk:net_null0"));
	for (int i = 0; i < 2; i++) {
		pair.rings[i] = rte_ring_create(names[i], RING, SOCKET_ID_ANY,
						RING_F_EXACT_SZ);
		assert_non_null(pair.rings[i]);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(rte_eth_from_rings(names[i], &pair.rings[i], 1,
					       &pair.rings[1 - i], 1, 0) >= 0);
		snprintf(spec, sizeof(spec), "dpdk:net_ring_%s,ring=%d%s",
			 names[i], RING, options);
		pair.ports[i] = open_port(spec);
	}
	return pair;
}

void end_pair(struct pair *pair)
{
	for (int i = 0; i < 2; i++)
		mr_port_close(pair->ports[i]);
	for (int i = 0; i < 2; i++) {
		void *mbuf;

		while (rte_ring_dequeue(pair->rings[i], &mbuf) == 0)
			rte_pktmbuf_free(mbuf);
	}
}

void make_frames(struct mr_frame *frames, uint32_t n)
{
	uint64_t addrs[BURST];

	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++) {
		frames[i] = (struct mr_frame){ addrs[i] + 128, LEN + i, 0 };
		memset(base + frames[i].addr, (int)i, LEN + i);
	}
}

void send_all(struct mr_port *port, const struct mr_frame *frames, uint32_t n)
{
	assert_int_equal(mr_tx_burst(mr_port_txq(port, 0), cache, frames, n),
			 n);
}

uint32_t receive(struct mr_port *port, struct mr_frame *frames)
{
	return mr_rx_burst(mr_port_rxq(port, 0), cache, frames, BURST);
}

void *free_sent(void *ring)
{
	uint32_t n_freed = 0;
	void *mbuf;

	while (n_freed < 2 * BURST)
		if (rte_ring_dequeue(ring, &mbuf) == 0) {
			rte_pktmbuf_free(mbuf);
			n_freed++;
		}
	return NULL;
}

int main(int argc, char **argv)
{
	/* EAL starts once per process. */
	return test_run_apart(argc == 2 ? argv[1] : NULL, set_up, tear_down);
}

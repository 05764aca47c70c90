// SPDX-License-Identifier: BSD-3-Clause
// A C++ program against the installed library: the headers are C++, linking
// finds C names, and a frame makes the round.
#include <cstdint>
#include <cstdio>

#include <millrace/millrace.h>

int main()
{
	mr_pool_config pool_config{};
	mr_port_config config{};
	struct mr_pool_stats stats{}; // there is a function of this name
	mr_frame frames[32];
	mr_reason why{};
	mr_ctx *ctx;
	mr_cache *cache;
	mr_port *port;

	pool_config.size = sizeof(pool_config);
	config.size = sizeof(config);
	stats.size = sizeof(stats);
	if (mr_ctx_create(nullptr, &ctx, &why) < 0 ||
	    mr_pool_create(ctx, &pool_config, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, &cache, &why) < 0 ||
	    mr_port_open(ctx, "null:", &config, &port, &why) < 0) {
		std::printf("%s\n", why.text);
		return 1;
	}
	uint32_t n = mr_rx_burst(mr_port_rxq(port, 0), cache, frames, 32);
	uint32_t sent = mr_tx_burst(mr_port_txq(port, 0), cache, frames, n);

	mr_frame_free_bulk(cache, frames + sent, n - sent);
	mr_port_close(port);
	mr_pool_stats(config.pool, &stats);
	std::printf("%u received, %u sent, %lu in flight\n", n, sent,
		    static_cast<unsigned long>(stats.n_in_flight));
	mr_cache_destroy(cache);
	int err = mr_pool_destroy(config.pool, &why);

	mr_ctx_destroy(ctx);
	return n > 0 && sent > 0 && stats.n_in_flight == 0 && err == 0 ? 0 : 1;
}

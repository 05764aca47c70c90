/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures from anywhere: no frame is lost without a name, no page at all. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <millrace/millrace.h>

#include "fuzz.h"
#include "support/invariants.h"

#define HEAD "\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0"
#define RECORD "\0\0\0\0\0\0\0\0\x10\0\0\0\x10\0\0\0abcdefghijklmnop"
/* Longer than a buffer: it comes in several entries, and is cut off here. */
#define LONG "\0\0\0\0\0\0\0\0\0\x20\0\0\0\x20\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(HEAD RECORD RECORD RECORD),
	SEED(HEAD RECORD LONG RECORD RECORD),
	SEED(HEAD),
	SEED("\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\1\0\0\0"
	     "\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0"),
	{ NULL, 0 },
};

static void receive_frames(struct mr_port *port, struct mr_cache *cache)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	struct mr_rxq *rxq = mr_port_rxq(port, 0);
	struct mr_frame frames[64];
	uint64_t n_frames = 0;
	uint32_t n;

	if (rxq == NULL)
		return;
	/* 4096 bytes have 256 records at most, bad ones included. */
	for (int i = 0; i < 300; i++) {
		n = mr_rx_burst(rxq, cache, frames, 64);
		FUZZ_CHECK(mr_frame_n_whole(frames, n) == n);
		for (uint32_t k = 0; k < n; k++)
			n_frames += !(frames[k].flags & MR_FRAME_MORE);
		mr_frame_free_bulk(cache, frames, n);
		if (n == 0)
			break;
	}
	mr_rxq_stats(rxq, &stats);
	FUZZ_CHECK(stats.delivered == n_frames);
	FUZZ_CHECK(invariants_of_rx_hold(&stats));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct mr_ctx *ctx;
	static struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						     .n_pages = 1024 };
	static struct mr_port_config config = { .size = sizeof(config) };
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_reason why = { .text = "" };
	struct mr_cache *cache;
	struct mr_port *port;
	char spec[64];
	int fd;

	if (ctx == NULL) { /* one for all inputs: opening is what is slow */
		FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
		FUZZ_CHECK(mr_pool_create(ctx, &pool_config, &config.pool,
					  NULL) == 0);
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
	snprintf(spec, sizeof(spec), "pcap:rx=/proc/self/fd/%d", fd);
	FUZZ_CHECK(mr_cache_create(config.pool, &cache, NULL) == 0);
	if (mr_port_open(ctx, spec, &config, &port, &why) == 0) {
		receive_frames(port, cache);
		mr_port_close(port);
	} else {
		FUZZ_CHECK(why.text[0] != '\0');
	}
	mr_cache_destroy(cache);
	close(fd);
	mr_pool_stats(config.pool, &stats);
	FUZZ_CHECK(stats.n_in_flight == 0);
	FUZZ_CHECK(stats.n_free == stats.n_pages);
	return 0;
}

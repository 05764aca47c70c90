/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of the AF_XDP driver over the fake kernel of its unit tests, for
 * callgrind to count: what nic_cost.c is for the drivers of NICs.
 *
 *     xdp_cost xdp rx|tx BURST N_FRAMES
 *
 * The kernel's part is not counted: it fills the rx ring between the bursts,
 * and what it does in sendto() lies in __wrap_sendto(), which is to be left
 * out. test/bench/nic_bench.py runs it.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"
#include "model/fake_kernel.h"
#include "support/test.h"

enum { FRAME_BYTES = 60, MAX_BURST = FAKE_RING };

static uint64_t receive_all(uint32_t burst, uint64_t n_frames)
{
	struct mr_frame frames[MAX_BURST];
	uint64_t n_done = 0;
	uint32_t n;

	while (n_done < n_frames) {
		for (uint32_t i = 0; i < burst; i++)
			fake_receive(FRAME_BYTES, 0);
		n = measured_rx(&fake.rxq->base, fake.cache, frames, burst);
		if (n != burst)
			errx(1, "%u of %u frames received", n, burst);
		mr_frame_free_bulk(fake.cache, frames, n);
		n_done += n;
	}
	return n_done;
}

static uint64_t send_all(uint32_t burst, uint64_t n_frames)
{
	struct mr_frame frames[MAX_BURST];
	uint64_t n_done = 0;
	uint32_t n;

	while (n_done < n_frames) {
		for (uint32_t i = 0; i < burst; i++)
			frames[i] = fake_frame(FRAME_BYTES, 0);
		n = measured_tx(&fake.txq->base, fake.cache, frames, burst);
		if (n != burst)
			errx(1, "%u of %u frames sent", n, burst);
		n_done += n;
	}
	return n_done;
}

int main(int argc, char **argv)
{
	const bool is_tx = argc == 5 && strcmp(argv[2], "tx") == 0;
	const unsigned long burst = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	const uint64_t n = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;

	if (burst < 1 || burst > MAX_BURST || n == 0 ||
	    (!is_tx && strcmp(argv[2], "rx") != 0))
		errx(2, "usage: %s xdp rx|tx BURST N_FRAMES", argv[0]);
	fake_open((struct fake_config){ 0 });
	printf("frames %" PRIu64 "\n", is_tx ? send_all((uint32_t)burst, n) :
					       receive_all((uint32_t)burst, n));
	fake_close();
	return 0;
}

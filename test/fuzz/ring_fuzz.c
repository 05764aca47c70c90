/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequences of ring calls, against a queue that is too simple to be wrong. */
#include <string.h>

#include <millrace/millrace.h>

#include "fuzz.h"

enum { CAPACITY = 16, MAX_CALL = 24 };

/* A byte is a call: enqueue or dequeue, and how many entries. */
const struct fuzz_seed fuzz_seeds[] = {
	SEED("\x08\x88\x10\x90\x18\x98"),
	SEED("\x05\x85\x05\x85\x05\x85\x05\x85\x05\x85"),
	SEED("\x18\x18\x81\x01\x98\x98"),
	SEED("\x03\xc2\x03\xc8\x90"),
	{ NULL, 0 },
};

struct model {
	uint64_t first, next; /* addresses in the ring are first .. next - 1 */
};

static void check_out(struct model *model, const struct mr_frame *out,
		      uint32_t n_out, uint32_t n, uint32_t n_taken)
{
	const uint32_t n_there = (uint32_t)(model->next - model->first);

	FUZZ_CHECK(n_out == (n < n_there ? n : n_there));
	for (uint32_t i = 0; i < n_out; i++)
		FUZZ_CHECK(out[i].addr == model->first + i);
	model->first += n_taken;
}

static void check_in(struct model *model, uint32_t n_in, uint32_t n)
{
	const uint32_t n_room =
		CAPACITY - (uint32_t)(model->next - model->first);

	FUZZ_CHECK(n_in == (n < n_room ? n : n_room));
	model->next += n_in;
}

static void fill(struct mr_frame *frames, const struct model *model)
{
	for (uint32_t i = 0; i < MAX_CALL; i++)
		frames[i] = (struct mr_frame){ .addr = model->next + i };
}

static void run_spsc(struct mr_ring_spsc *ring, const uint8_t *calls, size_t n)
{
	struct mr_frame frames[MAX_CALL];
	struct model model = { 0, 0 };

	for (size_t i = 0; i < n; i++) {
		const uint32_t k = (calls[i] & 0x3f) % (MAX_CALL + 1);
		uint32_t n_out;

		fill(frames, &model);
		if ((calls[i] & 0x80) == 0) {
			check_in(&model,
				 mr_ring_spsc_enqueue_burst(ring, frames, k), k);
		} else if ((calls[i] & 0x40) == 0) {
			n_out = mr_ring_spsc_dequeue_burst(ring, frames, k);
			check_out(&model, frames, n_out, k, n_out);
		} else { /* look at them, take half of them */
			n_out = mr_ring_spsc_peek_burst(ring, frames, k);
			check_out(&model, frames, n_out, k, n_out / 2);
			mr_ring_spsc_release(ring, n_out / 2);
		}
		FUZZ_CHECK(mr_ring_spsc_count(ring) ==
			   model.next - model.first);
	}
}

static void run_mpmc(struct mr_ring_mpmc *ring, const uint8_t *calls, size_t n)
{
	struct mr_frame frames[MAX_CALL];
	struct model model = { 0, 0 };

	for (size_t i = 0; i < n; i++) {
		const uint32_t k = (calls[i] & 0x3f) % (MAX_CALL + 1);

		fill(frames, &model);
		if ((calls[i] & 0x80) == 0) {
			check_in(&model,
				 mr_ring_mpmc_enqueue_burst(ring, frames, k), k);
		} else {
			const uint32_t n_out =
				mr_ring_mpmc_dequeue_burst(ring, frames, k);

			check_out(&model, frames, n_out, k, n_out);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct mr_ring_spsc *spsc;
	struct mr_ring_mpmc *mpmc;
	struct mr_ctx *ctx;

	FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
	FUZZ_CHECK(mr_ring_spsc_create(ctx, CAPACITY, &spsc, NULL) == 0);
	FUZZ_CHECK(mr_ring_mpmc_create(ctx, CAPACITY, &mpmc, NULL) == 0);
	run_spsc(spsc, bytes, n_bytes);
	run_mpmc(mpmc, bytes, n_bytes);
	mr_ring_mpmc_destroy(mpmc);
	mr_ring_spsc_destroy(spsc);
	mr_ctx_destroy(ctx);
	return 0;
}

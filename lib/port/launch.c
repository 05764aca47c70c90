/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launch times, for devices that have none.
 *
 * A frame that is not due is not accepted, so it also holds back the frames
 * after it. The queue stores nothing and needs no timer: the caller polls, as
 * with a full ring. docs/design/0013-segments-and-times.md says why.
 */
#include <time.h>

#include <millrace/driver.h>

#include "port/offload.h"

static bool read_clock(struct mri_launch *launch, const struct mr_ctx *ctx,
		       uint32_t clock)
{
	struct timespec now;

	launch->clock = clock;
	if (clock == CLOCK_MONOTONIC) {
		launch->now_ns = mr_ctx_now_ns(ctx);
		return true;
	}
	if (clock == MR_CLOCK_DEVICE || clock_gettime((clockid_t)clock, &now))
		return false;
	launch->now_ns =
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return true;
}

enum mri_due mri_launch_check(struct mri_launch *launch,
			      const struct mr_ctx *ctx,
			      const struct mr_meta *meta)
{
	const uint32_t clock = meta->launch_clock;

	/* No need to read the clock if it was due a moment ago. */
	if (launch->clock == clock && launch->now_ns >= meta->launch_ns)
		return MRI_DUE;
	if (!read_clock(launch, ctx, clock)) {
		launch->clock = MRI_NO_CLOCK;
		return MRI_NEVER;
	}
	return launch->now_ns >= meta->launch_ns ? MRI_DUE : MRI_NOT_DUE;
}

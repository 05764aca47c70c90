/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for work that may block: writing to a terminal, a pipe or a disk.
 * It does one job at a time; the thread that submits jobs never waits.
 */
#ifndef SUPPORT_BACKGROUND_H
#define SUPPORT_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

struct background;

/*
 * done_fd: -1, or an eventfd that becomes readable after each job. Returns
 * NULL, with errno, without memory or a thread. The thread blocks all signals.
 */
struct background *background_create(int done_fd);

/* Whether the last job is done; what it wrote is then visible here. */
bool background_is_idle(struct background *background);

/* Do fn(opaque) in the other thread, which must be idle. */
void background_do(struct background *background, void (*fn)(void *opaque),
		   void *opaque);

/* Wait until it is idle. False: it still is not after timeout_ms. */
bool background_wait(struct background *background, uint32_t timeout_ms);

/*
 * End the thread; NULL is fine. A job that is still running is cancelled where
 * it blocks, and its resources leak. False: it does not end, so what the job
 * uses must not be freed.
 */
bool background_destroy(struct background *background);

#endif

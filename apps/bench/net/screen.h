/* SPDX-License-Identifier: BSD-3-Clause */
/* The live view of a trial on a terminal. It leaves the terminal as it was. */
#ifndef NET_SCREEN_H
#define NET_SCREEN_H

#include "net/tester.h"

struct screen;

/* NULL: stdout is no terminal that ncurses knows, or there is no memory. */
struct screen *screen_open(const char *title, struct tester *tester,
			   const struct trial_config *trial, double mean_bytes);

/* A tester_progress_fn: opaque is the screen. q ends the trial. */
void screen_progress(void *screen, const struct trial_result *so_far);

void screen_close(struct screen *screen);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals, with the same meaning in every program. */
#ifndef SUPPORT_SIGNALS_H
#define SUPPORT_SIGNALS_H

#include <stdbool.h>

#include <millrace/millrace.h>

enum signals_what { SIGNALS_NONE, SIGNALS_END, SIGNALS_RELOAD };

/*
 * Block SIGINT, SIGTERM and SIGHUP, and return an fd that receives them, or -1
 * with a reason. Call before any thread is started, so that nothing is
 * interrupted halfway. If SIGHUP is ignored (nohup), it stays ignored, and
 * signals_ignore_hang_up() returns true.
 */
int signals_open(struct mr_reason *ret_why);
bool signals_ignore_hang_up(void);

/*
 * The next signal of that fd. SIGHUP means reload the configuration, if the
 * program has one; if the terminal is gone, it ends the program.
 */
enum signals_what signals_take(int fd);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `mrctl upgrade`: the program starts its successor, which may be another
 * version, and hands over its data plane, sockets and tables.
 *
 *     this process                     its successor
 *     upgrade_answer(): starts it      runs main() with the same arguments
 *     upgrade_serve(): offers     <--  dataplane_open()
 *       hands over, ends          <--  upgrade_take(), from run()
 */
#ifndef SUPPORT_UPGRADE_H
#define SUPPORT_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>

#include "control.h"

struct run_config;

/* The socket to the process that started this one to take over; -1: none. It is
 * never closed. */
int upgrade_fd(void);
/* What its expect_state() has said; NULL: nothing. */
const char *upgrade_sizes(void);
/* Tell that process why this one ends. */
void upgrade_refuse(const char *why);

/* In the new process: receive the state and the time when the first process
 * started, and become the owner. 0, or -1 with a message for the user. */
int upgrade_take(const struct run_config *config, uint64_t *ret_start_ns,
		 struct mr_reason *ret_why);

/* Tell the old process that the workers have started, and when. */
void upgrade_tell_start(const struct dataplane *plane);

/* In the old process. */
struct upgrade;

/* NULL: no memory. config and start_ns outlive it. */
struct upgrade *upgrade_create(const struct run_config *config,
			       const uint64_t *start_ns);
void upgrade_destroy(struct upgrade *upgrade);
/* The socket to the successor, for poll(); -1: none. */
int upgrade_socket(const struct upgrade *upgrade);
/* Call this if the socket is readable, and regularly. True: the successor has
 * taken over. */
bool upgrade_serve(struct upgrade *upgrade);
/* The program ends before its successor has taken over: kill that, too. */
void upgrade_cancel(struct upgrade *upgrade);
/* Whether a successor is starting. Ports and settings must not change
 * meanwhile. NULL is allowed. */
bool upgrade_is_running(const struct upgrade *upgrade);

/* A verb of every application. */
enum { UPGRADE_STATE_BYTES = sizeof(bool) };
control_answer_fn upgrade_answer;

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a running translator for the process that takes its place:
 * sessions, ports, frames that wait, neighbours, counters, and how far the log
 * is. Both have the data plane of <millrace/experimental/hand_over.h>.
 *
 *     old process: workers have stopped --> nat_put_state() --> parcel
 *     new process: app_open(), then nat_take_state() --> workers start
 *
 * Ticks and times are of a clock that both have. What a new configuration does
 * not allow ends, as after a reload.
 */
#ifndef NAT_HAND_OVER_H
#define NAT_HAND_OVER_H

#include <millrace/experimental/parcel.h>

/* About how many bytes the state will have; and the sizes with which the new
 * process calls nat_expected_mappings(), to allocate memory before frames wait:
 * how many a worker will get, 0: unknown. */
uint64_t nat_expect_state(void *app, char *sizes, size_t n);
uint32_t nat_expected_mappings(uint32_t worker_idx);

/* app: struct app, whose workers do not run. It stays as it is: the other
 * process may yet refuse. */
void nat_put_state(void *app, struct mr_parcel *parcel);

/* For an app that app_open() has just made. 0, or -errno with a reason: nothing
 * was entered. */
int nat_take_state(void *app, struct mr_parcel *parcel,
		   struct mr_reason *ret_why);

/* The other process has it: the frames that wait here are its own, and so is
 * the file of sessions. Only app_close() may follow. */
void nat_leave_state(void *app);

#endif

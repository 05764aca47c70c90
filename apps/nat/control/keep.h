/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps sessions across restarts: a snapshot of them is written every
 * state_interval, after each clear, and at exit.
 *
 *     workers --64 at a time--> main thread --> memory --> disk's thread
 *
 * A file is read once: the first snapshot, taken before the workers start,
 * replaces it. So sessions that ended or were cleared do not come back, except
 * those that ended in the last interval before a crash.
 */
#ifndef NAT_KEEP_H
#define NAT_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

struct app;
struct nat_keep;

/* 0, or -errno with a line. */
int nat_keep_create(struct app *app, struct nat_keep **ret_keep,
		    struct mr_reason *ret_why);
/* Waits for the disk, a few seconds at most. */
void nat_keep_destroy(struct nat_keep *keep);

/*
 * Restore the file's sessions, before the workers start. A file that is empty,
 * cut off or damaged causes a warning and is moved to PATH.old. Returns 0, or
 * -errno with a line if the file cannot be read, has no sessions, or cannot be
 * replaced or moved.
 */
int nat_keep_restore(struct nat_keep *keep, struct mr_reason *ret_why);

/* Whether the file, if there is one, can be restored: 0 or -errno. */
int nat_keep_check(const char *path, struct mr_reason *ret_why);

/* Call each second, and whenever a worker has answered. */
void nat_keep_advance(struct nat_keep *keep);

/* The worker has answered NAT_ASK_SAVE. */
void nat_keep_answered(struct nat_keep *keep, uint32_t worker_idx);

/* Sessions were cleared: start a snapshot without them and return its number;
 * 0 if no snapshots are kept. */
uint64_t nat_keep_want(struct nat_keep *keep);
bool nat_keep_has(struct nat_keep *keep, uint64_t number);
/* Whether the file lacks them, too; or there is none. */
bool nat_keep_saved(const struct nat_keep *keep, uint64_t number);

/* Write the last snapshot; the workers have ended. */
void nat_keep_end(struct nat_keep *keep);

#endif

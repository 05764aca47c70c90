/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sessions that outlive the process: a snapshot of them is written every
 * state_interval, after each clear, and at the end.
 *
 *     workers --mail, 64 at a time--> main thread --> memory --> disk's thread
 *
 * A file is read once: the first snapshot, taken before the workers start,
 * replaces it. So sessions that ended or were cleared do not come back, but for
 * those that ended within the last interval before a crash.
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
/* Waits a few seconds for the disk at most. */
void nat_keep_destroy(struct nat_keep *keep);

/*
 * Before the workers start: take up what the file has. One that is empty, cut
 * off or damaged is a warning, and moved to PATH.old. Returns 0, or -errno with
 * a line if it cannot be read, is not a file of sessions, or can be neither
 * replaced nor moved.
 */
int nat_keep_restore(struct nat_keep *keep, struct mr_reason *ret_why);

/* Whether the file, if there is one, could be taken up: 0 or -errno. */
int nat_keep_check(const char *path, struct mr_reason *ret_why);

/* Each second, and whenever mail was answered. */
void nat_keep_advance(struct nat_keep *keep);

/* The mail of that worker is the answer to NAT_ASK_SAVE. */
void nat_keep_answered(struct nat_keep *keep, uint32_t worker_idx);

/* Sessions were cleared: the number of the snapshot that lacks them, which is
 * begun at once; 0 if none are kept. */
uint64_t nat_keep_want(struct nat_keep *keep);
bool nat_keep_has(struct nat_keep *keep, uint64_t number);

/* The last snapshot; the workers have ended. */
void nat_keep_end(struct nat_keep *keep);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps sessions across restarts: a snapshot of them is written every
 * state_interval, after each clear, and at exit.
 *
 *     workers --64 at a time--> main thread --> memory --> disk's thread
 *
 * A file is restored only once: the first snapshot, taken before the workers
 * start, replaces it. So ended or cleared sessions do not return, except those
 * that ended in the last interval before a crash.
 */
#ifndef NAT_KEEP_H
#define NAT_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

struct app;
struct nat_keep;

/* 0, or -errno with a message. */
int nat_keep_create(struct app *app, struct nat_keep **ret_keep,
		    struct mr_reason *ret_why);
/* Waits at most a few seconds for the disk. */
void nat_keep_destroy(struct nat_keep *keep);

/*
 * Restore the file's sessions, before the workers start. An empty, truncated or
 * damaged file causes a warning and is moved to PATH.old. Returns 0, or -errno
 * with a message if the file cannot be read, is not ours, or cannot be replaced
 * or moved.
 */
int nat_keep_restore(struct nat_keep *keep, struct mr_reason *ret_why);

/* Whether the file, if any, can be restored: 0 or -errno. */
int nat_keep_check(const char *path, struct mr_reason *ret_why);

/* Call each second, and after each worker's answer. */
void nat_keep_advance(struct nat_keep *keep);

/* The worker has answered NAT_ASK_SAVE. */
void nat_keep_answered(struct nat_keep *keep, uint32_t worker_idx);

/* Sessions were cleared: start a snapshot without them and return its number; 0
 * if snapshots are disabled. */
uint64_t nat_keep_want(struct nat_keep *keep);
bool nat_keep_has(struct nat_keep *keep, uint64_t number);
/* Whether the file lacks them, too, or there is no file. */
bool nat_keep_saved(const struct nat_keep *keep, uint64_t number);

/* For another process: hand_over.h. */
struct nat_keep_image {
	char path[256];        /* the file that has the last snapshot, or "" */
	uint64_t wants_at_once; /* sessions were cleared that it still has */
};
/* Waits for the disk, but not for long. */
void nat_keep_put(struct nat_keep *keep, struct nat_keep_image *ret_image);
/* Instead of nat_keep_restore(). */
void nat_keep_take(struct nat_keep *keep, const struct nat_keep_image *image);
/* The file is another process's from now on. */
void nat_keep_leave(struct nat_keep *keep);

/* Write the last snapshot, after the workers have ended. */
void nat_keep_end(struct nat_keep *keep);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes snapshots of the sessions, and restores them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "keep.h"
#include "save.h"
#include "support/background.h"
#include "support/text.h"

enum {
	DISK_MS = 5000,     /* how long to wait for it at exit... */
	DISK_HANDED_MS = 20 /* ...and while frames wait */
};

struct nat_keep {
	struct app *app;
	struct background *disk;
	enum { KEEP_IDLE, KEEP_GATHERING, KEEP_WRITING } state;
	struct nat_save save; /* gathered so far */
	uint32_t worker;      /* next worker to ask */
	uint64_t cursor;
	bool is_asked;
	uint64_t n_begun, n_done; /* snapshots */
	uint64_t n_saved;         /* the last one written */
	uint64_t wanted;          /* write at once, up to this number */
	uint32_t last_s;          /* when the last one finished */
	bool has_failed;          /* the last write; reported */
	bool is_left;             /* the file is another process's */
	char path[256];           /* of the last one written */
	/* Used by the disk thread while it is busy. */
	char to[256];
	int err;
	struct mr_reason why;
};

int nat_keep_create(struct app *app, struct nat_keep **ret_keep,
		    struct mr_reason *ret_why)
{
	struct nat_keep *keep = calloc(1, sizeof(*keep));

	if (keep != NULL) {
		keep->app = app;
		keep->disk = background_create(app->answered_fd);
	}
	if (keep == NULL || keep->disk == NULL) {
		free(keep);
		return fail_with(ret_why, -ENOMEM,
				 "no memory to save sessions");
	}
	*ret_keep = keep;
	return 0;
}

void nat_keep_destroy(struct nat_keep *keep)
{
	if (keep == NULL || !background_destroy(keep->disk))
		return; /* the disk thread still uses it */
	nat_save_free(&keep->save);
	free(keep);
}

static void put_sessions(struct nat_keep *keep,
			 const struct nat_session *sessions, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if ((sessions[i].flags & NAT_MAP_STATIC) == 0)
			nat_save_put(&keep->save, &sessions[i]);
}

static void begin_snapshot(struct nat_keep *keep)
{
	keep->n_begun++;
	nat_save_free(&keep->save);
	keep->worker = 0;
	keep->cursor = 0;
	keep->state = KEEP_GATHERING;
}

/* Gather all sessions, from workers that do not run. */
static void gather_sessions(struct nat_keep *keep)
{
	struct nat_session sessions[NAT_REQUEST_SAVED];

	begin_snapshot(keep);
	for (uint32_t w = 0; w < keep->app->n_workers; w++) {
		uint64_t cursor = 0;
		uint32_t n;

		while ((n = nat_maps_save(keep->app->workers[w].maps, &cursor,
					  dataplane_now_s(&keep->app->plane),
					  sessions, NAT_REQUEST_SAVED)) > 0)
			put_sessions(keep, sessions, n);
	}
}

/* Runs on the disk thread. */
static void write_save(void *opaque)
{
	struct nat_keep *keep = opaque;

	keep->err = nat_save_end(&keep->save, keep->to, (uint64_t)time(NULL),
				 &keep->why);
}

static void write_begin(struct nat_keep *keep)
{
	snprintf(keep->to, sizeof(keep->to), "%s",
		 keep->app->config->state_path);
	keep->state = KEEP_WRITING;
	background_do(keep->disk, write_save, keep);
}

/* The last snapshot is outdated and must not be restored. */
static int retire_file(const char *path, struct mr_reason *ret_why)
{
	char old[sizeof(((struct nat_keep *)0)->path) + 8];
	int err;

	snprintf(old, sizeof(old), "%s.old", path);
	if (rename(path, old) == 0 || errno == ENOENT)
		return 0;
	err = -errno;
	return fail_with(
		ret_why, err,
		"state: %.200s: %s; ended sessions would be restored; make "
		"its directory writable",
		path, mr_strerror(errno));
}

static void write_end(struct nat_keep *keep)
{
	struct mr_reason why;

	keep->state = KEEP_IDLE;
	keep->n_done = keep->n_begun;
	keep->last_s = dataplane_now_s(&keep->app->plane);
	if (keep->err < 0) {
		if (!keep->has_failed)
			print_error("mr-nat: %s", keep->why.text);
		keep->has_failed = true;
		/* The old file still has the cleared sessions. */
		if (keep->wanted < keep->n_done || keep->path[0] == '\0')
			return;
		if (retire_file(keep->path, &why) < 0)
			print_error("mr-nat: %s", why.text);
		else
			print_error("mr-nat: state: %s: moved to %s.old, "
				    "because it has sessions that were cleared",
				    keep->path, keep->path);
		return;
	}
	keep->has_failed = false;
	keep->n_saved = keep->n_done;
	/* A reload changed the path: the previous file is outdated. */
	if (keep->path[0] != '\0' && strcmp(keep->path, keep->to) != 0)
		unlink(keep->path);
	memcpy(keep->path, keep->to, sizeof(keep->path));
}

/* Write now, and wait. */
static int write_now(struct nat_keep *keep)
{
	gather_sessions(keep);
	write_begin(keep);
	if (!background_wait(keep->disk, DISK_MS))
		return -ETIMEDOUT;
	write_end(keep);
	return keep->err;
}

struct restored {
	struct nat_keep *keep;
	uint64_t n, n_refused; /* sessions */
	uint64_t n_held;       /* ports in hold-down */
};

/* Restore a port in hold-down at the worker that allocates it. */
static void restore_held(struct restored *restored,
			 const struct nat_session *saved)
{
	struct app *app = restored->keep->app;

	for (uint32_t w = 0; w < app->n_workers; w++)
		if (nat_maps_restore(
			    app->workers[w].maps, saved,
			    dataplane_now_s(&restored->keep->app->plane)) ==
		    0) {
			restored->n_held++;
			return;
		}
}

static bool restore_record(void *opaque, const struct nat_session *saved)
{
	struct restored *restored = opaque;
	struct app *app = restored->keep->app;
	const uint32_t owner =
		nat_steer_subscriber(saved->inside.addr, app->n_workers);
	int err;

	if (saved->flags & NAT_MAP_RESTS) {
		restore_held(restored, saved);
		return true;
	}
	err = nat_maps_restore(app->workers[owner].maps, saved,
			       dataplane_now_s(&restored->keep->app->plane));
	if (err == 0)
		restored->n++;
	else
		restored->n_refused++;
	return true;
}

/* Write the first snapshot. If the disk is full, keep the file of the last
 * run. */
static int replace_file(struct nat_keep *keep, struct mr_reason *ret_why)
{
	const int err = write_now(keep);

	if (err == -EACCES || err == -EPERM || err == -EROFS) {
		return fail_with(ret_why, err,
				 "%.300s; make its directory writable",
				 keep->why.text);
	}
	if (err == -ETIMEDOUT)
		print_error("mr-nat: state: %s: the disk does not respond",
			    keep->to);
	if (err < 0 && keep->path[0] != '\0')
		print_error("mr-nat: warning: state: %s keeps the sessions of "
			    "the last run until a snapshot can replace it",
			    keep->path);
	return 0;
}

int nat_keep_restore(struct nat_keep *keep, struct mr_reason *ret_why)
{
	const char *path = keep->app->config->state_path;
	struct restored restored = { .keep = keep };
	int err;

	if (path[0] == '\0')
		return 0;
	err = nat_saved_read(path, (uint64_t)time(NULL), true, restore_record,
			     &restored, ret_why);
	/* -ENOENT: no snapshot yet. */
	if (err == 0)
		print_error(
			"mr-nat: %s: %llu sessions restored, %llu not (they do "
			"not fit the configuration or the number of workers), "
			"%llu ports in hold-down",
			path, (unsigned long long)restored.n,
			(unsigned long long)restored.n_refused,
			(unsigned long long)restored.n_held);
	else if (err == -EBADMSG)
		print_error("mr-nat: warning: %s; no sessions restored, file "
			    "moved to %s.old",
			    ret_why->text, path);
	else if (err != -ENOENT)
		return err;
	if (err == -EBADMSG)
		return retire_file(path, ret_why);
	if (err == 0)
		memcpy(keep->path, path, sizeof(keep->path));
	return replace_file(keep, ret_why);
}

static bool ignore_record(void *opaque, const struct nat_session *saved)
{
	(void)opaque;
	(void)saved;
	return false;
}

int nat_keep_check(const char *path, struct mr_reason *ret_why)
{
	const int err = path[0] == '\0' ?
				0 :
				nat_saved_read(path, 0, false, ignore_record,
					       NULL, ret_why);

	return err == -ENOENT ? 0 : err;
}

/* One request at a time; those of clients come first. */
static void ask_worker(struct nat_keep *keep)
{
	struct nat_worker *w = &keep->app->workers[keep->worker];

	if (keep->is_asked ||
	    nat_request_state(&w->request) != NAT_REQUEST_FREE)
		return;
	keep->is_asked = true;
	w->request.question = NAT_ASK_SAVE;
	w->request.filter = (struct nat_filter){ 0 };
	w->request.cursor = keep->cursor;
	nat_request_set(&w->request, NAT_REQUEST_ASKED);
	mr_worker_wake(w->worker);
}

void nat_keep_answered(struct nat_keep *keep, uint32_t worker_idx)
{
	struct nat_request *request = &keep->app->workers[worker_idx].request;

	keep->is_asked = false;
	keep->cursor = request->cursor;
	put_sessions(keep, request->sessions, request->n);
	if (request->is_end) {
		keep->worker++;
		keep->cursor = 0;
	}
	nat_request_set(request, NAT_REQUEST_FREE);
}

uint64_t nat_keep_want(struct nat_keep *keep)
{
	if (keep->app->config->state_path[0] == '\0')
		return 0;
	keep->wanted = keep->n_begun + 1;
	return keep->wanted;
}

bool nat_keep_has(struct nat_keep *keep, uint64_t number)
{
	if (keep->state == KEEP_WRITING && background_is_idle(keep->disk))
		write_end(keep);
	return keep->n_done >= number ||
	       keep->app->config->state_path[0] == '\0';
}

bool nat_keep_saved(const struct nat_keep *keep, uint64_t number)
{
	return keep->n_saved >= number ||
	       keep->app->config->state_path[0] == '\0';
}

/* By the configuration, which a reload may have changed. */
static bool is_due(const struct nat_keep *keep)
{
	const struct nat_config *config = keep->app->config;

	return config->state_path[0] != '\0' &&
	       (keep->n_begun < keep->wanted ||
		dataplane_now_s(&keep->app->plane) - keep->last_s >=
			config->state_interval_s ||
		strcmp(config->state_path, keep->to) != 0);
}

/* No file is configured any more; an old one is outdated. */
static void forget_file(struct nat_keep *keep)
{
	if (keep->path[0] != '\0')
		unlink(keep->path);
	keep->path[0] = keep->to[0] = '\0';
}

void nat_keep_advance(struct nat_keep *keep)
{
	nat_keep_has(keep, keep->n_begun);
	if (keep->state == KEEP_IDLE) {
		if (is_due(keep))
			begin_snapshot(keep);
		else if (keep->app->config->state_path[0] == '\0')
			forget_file(keep);
	}
	if (keep->state != KEEP_GATHERING)
		return;
	if (keep->worker < keep->app->n_workers)
		ask_worker(keep);
	else
		write_begin(keep);
}

void nat_keep_put(struct nat_keep *keep, struct nat_keep_image *ret_image)
{
	(void)background_wait(keep->disk, DISK_HANDED_MS);
	nat_keep_has(keep, keep->n_begun);
	memcpy(ret_image->path, keep->path, sizeof(keep->path));
	ret_image->wants_at_once = keep->n_saved < keep->wanted;
}

void nat_keep_take(struct nat_keep *keep, const struct nat_keep_image *image)
{
	memcpy(keep->path, image->path, sizeof(keep->path));
	keep->path[sizeof(keep->path) - 1] = '\0';
	memcpy(keep->to, keep->path, sizeof(keep->to));
	keep->last_s = dataplane_now_s(&keep->app->plane);
	if (image->wants_at_once)
		nat_keep_want(keep);
}

void nat_keep_leave(struct nat_keep *keep)
{
	keep->is_left = true;
	/* A snapshot still being written must not replace the other one's. */
	if (background_destroy(keep->disk))
		keep->disk = NULL;
}

void nat_keep_end(struct nat_keep *keep)
{
	if (keep->is_left || keep->app->config->state_path[0] == '\0')
		return;
	if (!background_wait(keep->disk, DISK_MS) ||
	    write_now(keep) == -ETIMEDOUT)
		print_error("mr-nat: state: %s: the disk does not respond; the "
			    "last snapshot was not written",
			    keep->app->config->state_path);
}

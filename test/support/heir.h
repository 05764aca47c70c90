/* SPDX-License-Identifier: BSD-3-Clause */
/* Hand over a data plane within a process: a thread plays the new one. */
#ifndef SUPPORT_HEIR_H
#define SUPPORT_HEIR_H

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>
#include <millrace/experimental/hand_over.h>
#include <millrace/millrace.h>

#include "support/unit.h"

struct heir {
	const struct mr_dataplane_config *config;
	int fd;
	struct mr_dataplane *dp; /* NULL: not open */
	int err;
	struct mr_reason why;
};

static inline void *heir_run(void *opaque)
{
	struct heir *heir = opaque;
	struct mr_parcel *parcel;

	heir->err = mr_dataplane_take_over(heir->fd, heir->config, &heir->dp,
					   &heir->why);
	if (heir->err == 0)
		heir->err = mr_dataplane_take_state(heir->dp, &parcel,
						    &heir->why);
	if (heir->err == 0)
		heir->err = mr_dataplane_own(heir->dp, &heir->why);
	close(heir->fd);
	return NULL;
}

/* Returns the error of the old side, and leaves that of the new one in heir. */
static inline int heir_hand_over(struct mr_dataplane *dp,
				 const struct mr_dataplane_config *config,
				 struct heir *heir, struct mr_reason *why)
{
	pthread_t thread;
	int fds[2], err;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	*heir = (struct heir){ .config = config, .fd = fds[1] };
	assert_int_equal(pthread_create(&thread, NULL, heir_run, heir), 0);
	err = mr_dataplane_offer(dp, fds[0], 0, why);
	if (err == 0)
		err = mr_dataplane_hand_over(dp, NULL, NULL, why);
	pthread_join(thread, NULL);
	close(fds[0]);
	return err;
}

/* ---- a driver that lies to the new process ---- */

/* An entry to put instead of the driver's own. */
struct lie {
	const char *name;
	const void *bytes; /* or an fd */
	uint32_t n_bytes;
	int fd;
	bool is_offered; /* else it is given */
};

static const struct lie *lie; /* NULL: the truth */
static const struct mr_hand_over_ops *truth;

/* The first entry of a name counts. */
static inline void put_lie(struct mr_parcel *parcel, bool is_offered)
{
	if (lie == NULL || lie->is_offered != is_offered)
		return;
	if (lie->bytes != NULL)
		mr_parcel_put(parcel, lie->name, 1, lie->bytes, lie->n_bytes);
	else
		mr_parcel_put_fd(parcel, lie->name, lie->fd);
}

static inline int liar_offer(struct mr_port *port, struct mr_parcel *parcel,
			     struct mr_reason *why)
{
	put_lie(parcel, true);
	return truth->offer(port, parcel, why);
}

static inline int liar_give(struct mr_port *port, struct mr_parcel *parcel,
			    struct mr_reason *why)
{
	put_lie(parcel, false);
	return truth->give(port, parcel, why);
}

/* A context with this driver under the name "liar". */
static inline struct mr_ctx *liar_ctx(struct test_allocator *allocator,
				      const struct mr_driver *driver)
{
	static struct mr_hand_over_ops ops;
	struct mr_ctx *ctx = test_ctx(allocator);
	struct mr_driver liar = *driver;

	truth = driver->hand_over;
	ops = *truth;
	ops.offer = liar_offer;
	ops.give = liar_give;
	liar.name = "liar";
	liar.version = MR_DRIVER_VERSION;
	liar.size = sizeof(liar);
	liar.hand_over = &ops;
	assert_int_equal(mr_ctx_add_driver(ctx, &liar, NULL), 0);
	return ctx;
}

/* ---- from one data plane to the next ---- */

static inline void close_plane(struct mr_dataplane *plane, struct mr_ctx *ctx)
{
	struct mr_reason why = { "" };

	if (mr_dataplane_close(plane, &why) < 0)
		fail_msg("%s", why.text);
	mr_ctx_destroy(ctx);
}

#endif

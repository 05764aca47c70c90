/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without libmicrohttpd. */
#include <errno.h>
#include <stdio.h>

#include "metrics.h"
#include "text.h"

int metrics_open(const char *where, int listen_fd, struct control *control,
		 struct metrics **ret_metrics, struct mr_reason *ret_why)
{
	(void)where;
	(void)listen_fd;
	(void)control;
	*ret_metrics = NULL;
	return fail_with(
		ret_why, -ENOTSUP,
		"this build has no libmicrohttpd; install its -dev package "
		"and build again");
}

void metrics_close(struct metrics *metrics)
{
	(void)metrics;
}

int metrics_listen_fd(const struct metrics *metrics)
{
	(void)metrics;
	return -1;
}

void metrics_leave(struct metrics *metrics)
{
	(void)metrics;
}

int metrics_fd(const struct metrics *metrics)
{
	(void)metrics;
	return -1;
}

void metrics_serve(struct metrics *metrics)
{
	(void)metrics;
}

bool metrics_has_work(const struct metrics *m)
{
	(void)m;
	return false;
}

void metrics_tick(struct metrics *m)
{
	(void)m;
}

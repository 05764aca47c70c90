/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/control/reload.c: all workers apply a configuration, or
 * none. */
#include "support/unit.h"

#include <errno.h>

#include "config/keys.h"
#include "control/app.h"
#include "control/reload.h"

enum { N = 3 };

/* Linked in place of the library's: there is no thread. */
void __wrap_mr_worker_wake(const struct mr_worker *worker);

void __wrap_mr_worker_wake(const struct mr_worker *worker)
{
	(void)worker;
}

/* Workers that answer when a test does. */
struct bed {
	struct app app;
	struct nat_worker workers[N];
};

static void open_bed(struct bed *bed)
{
	*bed = (struct bed){ .app = { .workers = bed->workers,
				      .n_workers = N } };
	bed->app.config = calloc(1, sizeof(*bed->app.config));
	for (uint32_t i = 0; i < N; i++)
		bed->workers[i].config = bed->app.config;
}

static void close_bed(struct bed *bed)
{
	bed->app.n_workers = 0;
	nat_reload_close(&bed->app);
}

static struct nat_config *begin_reload(struct bed *bed)
{
	struct nat_config *next = calloc(1, sizeof(*next));
	struct mr_reason why;

	assert_int_equal(nat_settings_ops.apply(&bed->app, next, &why), 1);
	return next;
}

static void answer(struct bed *bed, uint32_t i, int err)
{
	struct nat_request *request = &bed->workers[i].request;

	assert_int_equal(nat_request_state(request), NAT_REQUEST_ASKED);
	assert_ptr_equal(request->config, bed->app.asked);
	request->err = err;
	snprintf(request->why.text, sizeof(request->why.text), "no memory");
	nat_request_set(request, NAT_REQUEST_ANSWERED);
	nat_reload_answered(&bed->app, i);
}

static bool is_asked(const struct bed *bed, uint32_t i)
{
	return nat_request_state(&bed->workers[i].request) == NAT_REQUEST_ASKED;
}

TEST(all_workers_go_back_if_one_fails)
{
	struct mr_reason why;
	struct bed bed;

	open_bed(&bed);
	begin_reload(&bed);
	answer(&bed, 0, 0);
	answer(&bed, 1, -ENOMEM);
	assert_int_equal(nat_settings_ops.result(&bed.app, &why), 1);
	answer(&bed, 2, 0);
	assert_true(is_asked(&bed, 0));
	assert_false(is_asked(&bed, 1));
	assert_ptr_equal(bed.workers[0].request.config, bed.app.config);
	answer(&bed, 0, 0);
	assert_int_equal(nat_settings_ops.result(&bed.app, &why), 1);
	answer(&bed, 2, 0);
	assert_int_equal(nat_settings_ops.result(&bed.app, &why), -EIO);
	assert_string_equal(why.text, "worker 1: no memory");
	for (uint32_t i = 0; i < N; i++)
		assert_ptr_equal(bed.workers[i].config, bed.app.config);
	assert_null(bed.app.kept);
	assert_int_equal(bed.app.n_refused, 1);
	close_bed(&bed);
}

TEST(a_worker_that_cannot_return_keeps_the_new_settings)
{
	struct nat_config *next;
	struct mr_reason why;
	struct bed bed;

	open_bed(&bed);
	next = begin_reload(&bed);
	answer(&bed, 0, 0);
	answer(&bed, 1, -ENOMEM);
	answer(&bed, 2, -ENOMEM);
	answer(&bed, 0, -ENOMEM);
	assert_int_equal(nat_settings_ops.result(&bed.app, &why), -EIO);
	assert_ptr_equal(bed.workers[0].config, next);
	assert_ptr_equal(bed.app.kept, next);
	close_bed(&bed);
}

TEST(another_reload_waits_for_its_turn)
{
	struct nat_config *other = calloc(1, sizeof(*other));
	struct mr_reason why;
	struct bed bed;

	open_bed(&bed);
	begin_reload(&bed);
	assert_int_equal(nat_settings_ops.apply(&bed.app, other, &why), -EBUSY);
	assert_reason_has(&why, "still in progress");
	for (uint32_t i = 0; i < N; i++)
		answer(&bed, i, -ENOMEM);
	assert_int_equal(nat_settings_ops.result(&bed.app, &why), -EIO);
	close_bed(&bed);
}

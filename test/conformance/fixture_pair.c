/* SPDX-License-Identifier: BSD-3-Clause */
/* pair: the peer is the other end, with its own cache. */
#include <errno.h>
#include <stdio.h>

#include "far_port.h"
#include "support/soft_rules.h"

static void setup(struct harness *harness)
{
	struct mr_reason why;

	snprintf(harness->spec, sizeof(harness->spec),
		 "%s:conformance%s,ring=%u,queues=%u%s",
		 harness->fixture->driver,
		 harness->number == 0 ? "" : "-second",
		 harness->wish.ring_entries, harness->wish.n_queues,
		 harness->wish.is_sg ? ",sg=on" : "");
	harness->far = far_port_open(harness->ctx, harness->pool, harness->spec,
				     harness->wish.n_queues, &why);
	if (harness->far == NULL)
		fail_msg("%s", why.text);
}

static void setup_ruled(struct harness *harness)
{
	const int err = soft_rules_add_driver(harness->ctx);

	assert_true(err == 0 || err == -EEXIST);
	setup(harness);
}

static void teardown(struct harness *harness)
{
	far_port_close(harness->far);
	harness->far = NULL;
}

static const struct bad_spec bad_specs[] = {
	{ "pair:", -EINVAL, "name" },
	{ "pair:x,queues=0", -EINVAL, "queues" },
	{ "pair:x,queues=65", -EINVAL, "64" },
	{ "pair:x,ring=3", -EINVAL, "power of two" },
	{ "pair:x,ring=1", -EINVAL, "range" },
	{ "pair:x,ring=16,sg=on", -EINVAL, "range" },
	{ "pair:x,sg=maybe", -EINVAL, "maybe" },
	/* The peer has the other end. */
	{ "pair:conformance,queues=2", -EINVAL, "queues=1" },
	{ "pair:conformance,ring=64", -EINVAL, "ring=1024" },
	{ "pair:conformance,sg=on", -EINVAL, "sg=off" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_pair = {
	.driver = "pair",
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_STALLS | FIXTURE_EXCLUSIVE |
		  FIXTURE_QUEUES | FIXTURE_SAME_POOL,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 1000000,
	.n_reopens = 200,
	.bad_specs = bad_specs,
	.setup = setup,
	.teardown = teardown,
	.inject = far_port_inject,
	.collect = far_port_collect,
};

/* pair: with rules in software: only tests of rules run on it. */
const struct fixture fixture_ruled = {
	.driver = "ruled",
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_STALLS | FIXTURE_EXCLUSIVE |
		  FIXTURE_QUEUES | FIXTURE_SAME_POOL,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.setup = setup_ruled,
	.teardown = teardown,
	.inject = far_port_inject,
	.collect = far_port_collect,
};

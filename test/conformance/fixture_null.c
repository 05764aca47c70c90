/* SPDX-License-Identifier: BSD-3-Clause */
/* null: no peer; rx is endless, tx a sink. */
#include <errno.h>
#include <stdio.h>

#include "harness.h"

static void setup(struct harness *harness)
{
	snprintf(harness->spec, sizeof(harness->spec), "null:,queues=%u",
		 harness->wish.n_queues);
}

static const struct bad_spec bad_specs[] = {
	{ "null:,queues=0", -EINVAL, "queues" },
	{ "null:,queues=65", -EINVAL, "64" },
	{ "null:,queues=many", -EINVAL, "many" },
	{ "null:,len=13", -EINVAL, "len" },
	{ "null:,len=100000", -EINVAL, "len" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_null = {
	.driver = "null",
	.traits = FIXTURE_ENDLESS | FIXTURE_QUEUES,
	.max_frame_bytes = 1514,
	.n_reopens = 100,
	.bad_specs = bad_specs,
	.setup = setup,
};

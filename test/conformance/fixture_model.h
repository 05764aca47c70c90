/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by fixtures on a register model: the device is in this process, the
 * peer is the other end of its wire. At the end of each test the model must
 * have recorded no violation.
 *
 *     inject --> wire --> model ~~~ rings ~~~ port under test
 *     collect <-- wire <-- model ~~~ rings ~~~ port under test
 */
#ifndef CONFORMANCE_FIXTURE_MODEL_H
#define CONFORMANCE_FIXTURE_MODEL_H

#include "harness.h"

struct model;

/*
 * For setup(): add the device "vfio:model" to the harness's context; the
 * fixture owns it and destroys it. Lazy, so that what is sent stays in the
 * queues until the peer collects it.
 */
void fixture_model_add(struct harness *harness, struct model *model,
		       void (*destroy)(struct model *model));

/* Capabilities of all such fixtures. */
#define FIXTURE_MODEL_TRAITS                                                   \
	(FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_CHECKS |            \
	 FIXTURE_STALLS | FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE)

/* The rest of such a fixture. */
#define FIXTURE_OVER_A_MODEL                                                   \
	.driver = "vfio", .n_sleeps = 20000,                                   \
	.teardown = fixture_model_teardown, .inject = fixture_model_inject,    \
	.collect = fixture_model_collect

void fixture_model_teardown(struct harness *harness);
bool fixture_model_inject(struct harness *harness, const uint8_t *bytes,
			  uint32_t n_bytes);
uint32_t fixture_model_collect(struct harness *harness, uint8_t *bytes,
			       uint32_t room);

#endif

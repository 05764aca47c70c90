/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rigs on a register model share: the device is in this process, the far
 * side is the other end of its wire. At the end of each test the model has no
 * complaint of the driver.
 *
 *     inject --> wire --> model ~~~ rings ~~~ port under test
 *     collect <-- wire <-- model ~~~ rings ~~~ port under test
 */
#ifndef CONFORMANCE_RIG_MODEL_H
#define CONFORMANCE_RIG_MODEL_H

#include "bed.h"

struct model;

/*
 * For setup(): the device "vfio:model" of the bed's context, from now on the
 * rig's, which destroys it. Lazy, so that what is sent stays in the queues
 * until the far side collects.
 */
void rig_model_add(struct bed *bed, struct model *model,
		   void (*destroy)(struct model *model));

/* What all such rigs can do. */
#define RIG_MODEL_TRAITS                                                       \
	(RIG_IN | RIG_OUT | RIG_LIVE | RIG_CHECKS | RIG_STALLS |               \
	 RIG_REGISTERS | RIG_EXCLUSIVE)

/* The rest of such a rig. */
#define RIG_OVER_A_MODEL                                                       \
	.driver = "vfio", .n_sleeps = 20000, .probe = rig_model_probe,         \
	.teardown = rig_model_teardown, .inject = rig_model_inject,            \
	.collect = rig_model_collect

const char *rig_model_probe(void); /* NULL: it needs nothing */
void rig_model_teardown(struct bed *bed);
bool rig_model_inject(struct bed *bed, const uint8_t *bytes, uint32_t n_bytes);
uint32_t rig_model_collect(struct bed *bed, uint8_t *bytes, uint32_t room);

#endif

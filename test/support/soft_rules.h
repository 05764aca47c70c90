/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver with rules, for tests: soft_rules.c. */
#ifndef SUPPORT_SOFT_RULES_H
#define SUPPORT_SOFT_RULES_H

struct mr_ctx;

/* Add "ruled:", which is "pair:" with rules in software. As
 * mr_ctx_add_driver(): 0, -EEXIST, -ENOMEM. */
int soft_rules_add_driver(struct mr_ctx *ctx);

#endif

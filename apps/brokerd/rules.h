/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may use which interface: the rules of mr-brokerd. */
#ifndef BROKERD_RULES_H
#define BROKERD_RULES_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <millrace/millrace.h>

#include "xdp/lease/broker.h"

enum {
	RULE_FILTER_BYTES = 1024,
	RULES_MAX = 256,
	RULE_NAMES_MAX = 64, /* users, groups or interfaces of a rule */
	PEER_GROUPS_MAX = 64,
};

struct rule {
	uint32_t *users, *groups;
	char (*interfaces)[IFNAMSIZ]; /* patterns of fnmatch(3) */
	uint32_t n_users, n_groups, n_interfaces;
	uint32_t queues[2]; /* first and last */
	uint64_t max_bytes; /* of all ports of a user */
	bool may_transmit, may_force, may_set, may_rss, may_steer;
	char filter[RULE_FILTER_BYTES]; /* "": all frames */
	struct xdp_filter compiled;
};

struct rules {
	struct mr_ctx *ctx;
	struct rule *rules;
	uint32_t n_rules;
};

/* Who has connected. */
struct peer {
	uid_t uid;
	pid_t pid;
	uint32_t n_groups;
	gid_t groups[PEER_GROUPS_MAX];
};

/* Read rules. Returns 0 or -errno; the reason has file and line. */
int rules_parse(struct mr_ctx *ctx, const char *name, const char *bytes,
		size_t n_bytes, struct rules *ret_rules,
		struct mr_reason *ret_why);
int rules_read(struct mr_ctx *ctx, const char *path, struct rules *ret_rules,
	       struct mr_reason *ret_why);
void rules_free(struct rules *rules);

/* Whether some rule is for this user. 0 or, with a reason, -EPERM. */
int rules_check_user(const struct rules *rules, const struct peer *peer,
		     struct mr_reason *ret_why);
/* The first rule for this user and interface. NULL, with a reason: there is
 * none. */
const struct rule *rules_find(const struct rules *rules,
			      const struct peer *peer, const char *interface,
			      struct mr_reason *ret_why);

/* What a rule grants to a user who has registered n_bytes. */
struct xdp_grant rule_grant(const struct rule *rule, uint64_t n_bytes);

#endif

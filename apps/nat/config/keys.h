/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of the configuration file; docs/nat-config.md describes them. */
#ifndef NAT_KEYS_H
#define NAT_KEYS_H

#include "config.h"
#include "support/yaml_keys.h"

/* All keys, with those of nested mappings; the last has no name. */
const struct yaml_key *nat_keys(void);

/* A key with a value, at the top level or in a section. */
struct nat_key {
	const struct yaml_key *key;
	size_t offset; /* of its member in struct nat_config */
	char name[64]; /* "timeouts: udp" */
};

/* Key i; false after the last. */
bool nat_key_at(uint32_t i, struct nat_key *ret);

/* One more address of a side: 10.0.0.1/24. False, and why. */
bool nat_add_address(struct nat_side_config *side, const char *text,
		     struct mr_reason *ret_why);

/*
 * What a running translator cannot change: false, and the first key that
 * differs.
 */
bool nat_config_can_follow(const struct nat_config *config,
			   const struct nat_config *next,
			   struct nat_key *ret_key);

#endif

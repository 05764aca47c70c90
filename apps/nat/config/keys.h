/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of the configuration file. */
#ifndef NAT_KEYS_H
#define NAT_KEYS_H

#include "support/yaml_keys.h"

/* All keys, including those of nested mappings; the last one has no name.
 * docs/nat-config.md describes them. */
extern const struct yaml_key nat_keys[];

/* A key with a value, at the top level or in a section. */
struct nat_key {
	const struct yaml_key *key;
	size_t offset; /* of its member in struct nat_config */
	char name[64]; /* "timeouts: udp" */
};

/* Key i. False: there is none. */
bool nat_key_at(uint32_t i, struct nat_key *ret);

#endif

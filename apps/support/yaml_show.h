/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inverse of yaml_keys.h, by the same tables: settings as they would be in
 * a file, the differences between two, and a schema of files. All are JSON that
 * the caller owns; NULL: no memory.
 */
#ifndef SUPPORT_YAML_SHOW_H
#define SUPPORT_YAML_SHOW_H

#include <jansson.h>

#include "yaml_keys.h"

/* All keys that have a value, defaults included. */
json_t *yaml_show(const struct yaml_key *keys, const void *from);

/*
 * The keys that differ between two results of yaml_show(), as a list of
 *     {"key": "timeouts: udp", "from": VALUE, "to": VALUE, "restart": BOOL}
 * If "from" or "to" is missing, there is no such value. Lists are compared by
 * item, unless only their order differs. "restart": the key is fixed at run
 * time.
 */
json_t *yaml_changes(const struct yaml_key *keys, const json_t *from,
		     const json_t *to);

/* A JSON schema of files, for editors. */
json_t *yaml_schema(const struct yaml_key *keys, const char *title);

/* For key->show: a scalar; a list of n values, each written by key->write. */
json_t *yaml_show_text(const char *text);
json_t *yaml_show_list(const struct yaml_key *key, const void *items,
		       size_t n_item_bytes, uint32_t n);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file: docs/nat-config.md describes it. */
#ifndef NAT_SETTINGS_H
#define NAT_SETTINGS_H

#include "config.h"

/*
 * Read, complete and check a configuration for n_workers. 0, or -EINVAL,
 * -ENOMEM or the errno of opening it, with a line that names file and line.
 * *ret_config is set on success only; nat_config_free() it.
 */
int nat_settings_read(const char *path, uint32_t n_workers,
		      struct nat_config *ret_config, struct mr_reason *ret_why);

/* The same from memory; messages call the file name. */
int nat_settings_parse(const char *name, const char *bytes, size_t n_bytes,
		       uint32_t n_workers, struct nat_config *ret_config,
		       struct mr_reason *ret_why);

#endif

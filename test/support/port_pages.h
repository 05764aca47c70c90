/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_PORT_PAGES_H
#define SUPPORT_PORT_PAGES_H

#include <millrace/port.h>

/* The pages that a port may hold. */
static inline int pages_for_port(struct mr_ctx *of, const char *spec,
				 uint32_t *ret_n, struct mr_reason *why)
{
	struct mr_pool_config config = { .size = sizeof(config) };
	const int err = mr_pool_size_for(of, &spec, 1, 1, 0, &config, why);

	if (err == 0)
		*ret_n = config.n_pages - MR_BURST_MAX;
	return err;
}

#endif

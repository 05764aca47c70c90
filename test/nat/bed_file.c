/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files, for Python. */
#include <stdio.h>
#include <string.h>

#include "bed.h"
#include "config/keys.h"
#include "config/settings.h"

bool bed_key(uint32_t i, char *ret_name, uint32_t n_max)
{
	struct nat_key key;

	if (!nat_key_at(i, &key))
		return false;
	snprintf(ret_name, n_max, "%s", key.name);
	return true;
}

int bed_read(const char *text, uint32_t n_workers,
	     struct nat_config *ret_config, char *why, uint32_t n_why)
{
	struct mr_reason reason;
	const int err = nat_settings_parse("bed", text, strlen(text), n_workers,
					   ret_config, &reason);

	if (err < 0)
		snprintf(why, n_why, "%s", reason.text);
	return err;
}

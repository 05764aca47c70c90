/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files, for Python. */
#include <stdio.h>
#include <string.h>

#include "bed.h"
#include "config/settings.h"
#include "support/yaml_keys.h"

/* Count down to the key with that number. */
static const struct yaml_key *find_key(const struct yaml_key *keys, uint32_t *i,
				       const struct yaml_key **ret_within)
{
	for (; keys->name != NULL; keys++) {
		if (keys->keys != NULL) {
			const struct yaml_key *found =
				find_key(keys->keys, i, ret_within);

			*ret_within = keys;
			if (found != NULL)
				return found;
		} else if ((*i)-- == 0) {
			*ret_within = NULL;
			return keys;
		}
	}
	return NULL;
}

bool bed_key(uint32_t i, char *ret_name, uint32_t n_max)
{
	const struct yaml_key *within = NULL;
	const struct yaml_key *key = find_key(nat_settings_keys(), &i, &within);

	if (key != NULL)
		snprintf(ret_name, n_max, "%s%s%s",
			 within != NULL ? within->name : "",
			 within != NULL ? "." : "", key->name);
	return key != NULL;
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

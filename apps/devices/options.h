/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICES_OPTIONS_H
#define DEVICES_OPTIONS_H

#include "support/options.h"

#include "owner.h"

enum command { COMMAND_LIST, COMMAND_INFO, COMMAND_BIND, COMMAND_UNBIND };

struct options {
	enum command command;
	bool is_all, is_json, is_forced, has_owner;
	struct owner owner;
	const char *root;
	char *const *bdfs;
	uint32_t n_bdfs;
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

#endif

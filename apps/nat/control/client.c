/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a running instance: mrctl makes them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "support/text.h"
#include "verbs.h"

/* Beside this program, where it was installed, or in the build folder. */
static const char *const places[] = { "mrctl", "../ctl/mrctl" };

int nat_client_ask(const struct options *options)
{
	static const char *const verbs[] = { [NAT_SESSIONS] = "sessions",
					     [NAT_CLEAR] = "clear",
					     [NAT_STATS] = "stats" };
	const char *words[10] = { "mr-nat" };
	char self[PATH_MAX - 16], path[PATH_MAX];
	const ssize_t n_self =
		readlink("/proc/self/exe", self, sizeof(self) - 1);
	uint32_t n = 1;
	char *slash;
	int err;

	if (options->run.control.path != NULL) {
		words[n++] = "--control";
		words[n++] = options->run.control.path;
	} else {
		words[n++] = "-n";
		words[n++] = options->run.control.name != NULL ?
				     options->run.control.name :
				     "nat";
	}
	words[n++] = options->command == NAT_STATS ? "show" : "nat";
	words[n++] = verbs[options->command];
	if (options->filter != NULL)
		words[n++] = options->filter;
	if (options->is_now)
		words[n++] = "--now";
	if (options->run.is_json)
		words[n++] = "--json";
	self[n_self > 0 ? n_self : 0] = '\0';
	slash = strrchr(self, '/');
	/* Never one in the working directory. */
	if (slash == NULL) {
		print_error("mr-nat: /proc/self/exe: %s; mount /proc, or use "
			    "mrctl",
			    mr_strerror(errno));
		return 1;
	}
	slash[1] = '\0';
	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		execv(path, (char **)words);
		if (errno != ENOENT)
			break;
	}
	err = errno;
	if (err == ENOENT) /* of what is missing, name the usual place */
		snprintf(path, sizeof(path), "%s%s", self, places[0]);
	/* A missing interpreter is ENOENT too. */
	print_error("mr-nat: %s: %s; sessions, clear and stats need it and "
		    "Python 3",
		    path, mr_strerror(err));
	return 1;
}

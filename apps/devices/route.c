/* SPDX-License-Identifier: BSD-3-Clause */
/* Source: proc(5), /proc/net/route and ipv6_route. */
#include <stdio.h>
#include <string.h>

#include "route.h"

enum { MAX_DEPTH = 8, LINE_BYTES = 256 };

/* "eth0 00000000 0100000A 0003 0 0 100 00000000 ...": the last one is the mask.
 */
static bool is_default_v4(const char *line, const char *interface)
{
	char name[NAME_BYTES], to[16], mask[16];

	return sscanf(line, "%63s %15s %*s %*s %*s %*s %*s %15s", name, to,
		      mask) == 3 &&
	       strcmp(name, interface) == 0 && strcmp(to, "00000000") == 0 &&
	       strcmp(mask, "00000000") == 0;
}

/* Destination, its prefix length, six fields, flags, interface. */
static bool is_default_v6(const char *line, const char *interface)
{
	char length[8], name[NAME_BYTES];

	return sscanf(line, "%*s %7s %*s %*s %*s %*s %*s %*s %*s %63s", length,
		      name) == 2 &&
	       strcmp(name, interface) == 0 && strcmp(length, "00") == 0;
}

static bool has_line(struct path path, const char *interface,
		     bool (*matches)(const char *line, const char *interface))
{
	FILE *file = fopen(path.text, "re");
	char line[LINE_BYTES];
	bool has = false;

	if (file == NULL)
		return false;
	while (!has && fgets(line, sizeof(line), file) != NULL)
		has = matches(line, interface);
	fclose(file);
	return has;
}

static bool is_default(const struct machine *machine, const char *interface,
		       uint32_t depth)
{
	struct names names;
	bool is = has_line(machine_path(machine, "/proc/net/route"), interface,
			   is_default_v4) ||
		  has_line(machine_path(machine, "/proc/net/ipv6_route"),
			   interface, is_default_v6);

	/* "upper_br0" for a bridge, a bond, a VLAN, ... on top of it. */
	(void)machine_names(
		machine_path(machine, "/sys/class/net/%s", interface), &names);
	for (uint32_t i = 0; !is && depth < MAX_DEPTH && i < names.n; i++)
		if (strncmp(names.list[i], "upper_", 6) == 0)
			is = is_default(machine, names.list[i] + 6, depth + 1);
	names_free(&names);
	return is;
}

bool route_is_default(const struct machine *machine, const char *interface)
{
	return interface[0] != '\0' && is_default(machine, interface, 0);
}

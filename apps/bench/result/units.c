/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "result/units.h"

static int digits_behind(double value)
{
	const double size = fabs(value);

	return size == 0 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

static void print_scaled(double value, const char *const *prefixes,
			 double least, char *ret, size_t n)
{
	double scale = least;
	uint32_t i = 0;

	while (prefixes[i + 1] != NULL && fabs(value) >= scale * 999.95) {
		scale *= 1000;
		i++;
	}
	value /= scale;
	snprintf(ret, n, "%.*f%s%s", digits_behind(value), value,
		 prefixes[i][0] != '\0' ? " " : "", prefixes[i]);
}

void unit_print_number(double value, const char *unit, char *ret, size_t n)
{
	static const char *const counts[] = { "", "k", "M", "G", "T", NULL };
	static const char *const times[] = { "ns", "us", "ms", "s", NULL };

	if (strcmp(unit, "ns") == 0)
		print_scaled(value, times, 1, ret, n);
	else if (strcmp(unit, "s") == 0)
		print_scaled(value, times, 1e-9, ret, n);
	else if (strcmp(unit, "ratio") == 0)
		snprintf(ret, n, "%.3g", value * 100);
	else if (strcmp(unit, "ns/frame") == 0 ||
		 strcmp(unit, "cycles/frame") == 0)
		snprintf(ret, n, "%.*f", digits_behind(value), value);
	else
		print_scaled(value, counts, 1, ret, n);
}

const char *unit_name(const char *unit)
{
	if (strcmp(unit, "ratio") == 0)
		return "%";
	return strcmp(unit, "ns") == 0 || strcmp(unit, "s") == 0 ? "" : unit;
}

void unit_print(double value, const char *unit, char *ret, size_t n)
{
	char number[40];
	const char *name = unit_name(unit);

	unit_print_number(value, unit, number, sizeof(number));
	snprintf(ret, n, "%s%s%s", number,
		 name[0] == '\0' || strchr(number, ' ') != NULL ? "" : " ",
		 name);
}

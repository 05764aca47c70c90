/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as people read them. */
#ifndef RESULT_UNITS_H
#define RESULT_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* "1.234 M frames/s", "12.3 us", "0.5 %". */
void unit_print(double value, const char *unit, char *ret, size_t n);

/* The same without the unit, "1.234 M": for a column or an axis of one. */
void unit_print_number(double value, const char *unit, char *ret, size_t n);

/* As few digits as tell four places, "1.2 M": for the ticks of an axis. */
void unit_print_short(double value, const char *unit, char *ret, size_t n);

/* What a number of it is called in a head: "frames/s"; "%" for "ratio". */
const char *unit_name(const char *unit);

#endif

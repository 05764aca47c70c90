/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values as people write them, in configuration files and on command lines.
 * Each returns true and sets *ret, or false with a message that says what is
 * wrong and what would be right.
 */
#ifndef SUPPORT_VALUES_H
#define SUPPORT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "text.h"

/* Set the message; false. */
#define value_wrong(ret_why, ...) ((bool)fail_with(ret_why, 0, __VA_ARGS__))

bool value_number(const char *text, uint32_t min, uint32_t max, uint32_t *ret,
		  struct mr_reason *ret_why);

/* Seconds, from units: 90, 90s, 5m, 2h4m, 1d. */
bool value_duration(const char *text, uint32_t *ret_s,
		    struct mr_reason *ret_why);

/* Seconds, 0.001 to 1e9, such as 10 or 0.5. */
bool value_seconds(const char *text, uint64_t *ret_ms,
		   struct mr_reason *ret_why);

/* The inverse of value_duration(). */
void value_write_duration(uint32_t s, char *ret_text, size_t n_bytes);

/*
 * Core numbers, such as "1,3-5": at most MR_WORKERS_MAX. The library checks
 * whether they exist. "auto" means none.
 */
bool value_cores(const char *text, uint32_t *ret_cores, uint32_t *ret_n,
		 struct mr_reason *ret_why);

/* One of the words; NULL ends them. */
bool value_word(const char *text, const char *const *words, uint32_t *ret,
		struct mr_reason *ret_why);

/* Whether text is an address to serve at: unix:PATH or tcp:ADDRESS:PORT. */
bool value_place(const char *text, struct mr_reason *ret_why);

/* The word that was probably meant; NULL: none is close. */
const char *value_nearest(const char *text, const char *const *words);

#endif

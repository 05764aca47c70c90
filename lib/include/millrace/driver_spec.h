/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_DRIVER_SPEC_H
#define MILLRACE_DRIVER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * For driver authors: the contents of a parsed port spec.
 */

struct mr_spec;

/**
 * The device of a spec.
 *
 * @return the part after the first ':', "" if there is none
 *
 * Owner: the spec. Thread: any.
 */
MR_API const char *mr_spec_device(const struct mr_spec *spec);

/**
 * The value of an option.
 *
 * @return NULL if @p key is not in the spec; "" if it has no value
 *
 * Owner: the spec. Thread: any.
 */
MR_API const char *mr_spec_get(const struct mr_spec *spec, const char *key);

/**
 * The value of a numeric option; suffixes k, m, g are powers of 1024.
 *
 * @param otherwise  value if @p key is not in the spec
 *
 * @return 0, or -EINVAL with a reason: not a number, or not in min..max
 *
 * Thread: any.
 */
MR_API int mr_spec_get_u32(const struct mr_spec *spec, const char *key,
			   uint32_t otherwise, uint32_t min, uint32_t max,
			   uint32_t *ret_value, struct mr_reason *reterr_reason);

/**
 * As mr_spec_get_u32(), for a power of two; @p otherwise may be any number.
 *
 * @return 0, or -EINVAL with a reason
 *
 * Thread: any.
 */
MR_API int mr_spec_get_pow2(const struct mr_spec *spec, const char *key,
			    uint32_t otherwise, uint32_t min, uint32_t max,
			    uint32_t *ret_value,
			    struct mr_reason *reterr_reason);

/**
 * The value of a Boolean option: off if it is not in the spec; on if it has no
 * value or one of on, yes, true, 1; off for off, no, false, 0.
 *
 * @return 0, or -EINVAL with a reason: another word
 *
 * Thread: any.
 */
MR_API int mr_spec_get_bool(const struct mr_spec *spec, const char *key,
			    bool *ret_is_on, struct mr_reason *reterr_reason);

/**
 * The value of an option that is one of a few words.
 *
 * @param words  NULL-terminated; words[0] is the default
 *
 * @return 0 and the index of the word, or -EINVAL with a reason
 *
 * Thread: any.
 */
MR_API int mr_spec_get_word(const struct mr_spec *spec, const char *key,
			    const char *const *words, uint32_t *ret_idx,
			    struct mr_reason *reterr_reason);

MR_END_DECLS

#endif

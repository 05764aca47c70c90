/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of a parcel (<millrace/experimental/parcel.h>) that are arrays of one
 * worker: "3/maps". */
#ifndef NAT_ENTRY_H
#define NAT_ENTRY_H

#include <errno.h>
#include <stdio.h>

#include <millrace/experimental/parcel.h>

#include "support/text.h"

struct nat_entry_name {
	char text[MR_PARCEL_NAME_BYTES];
};

static inline struct nat_entry_name nat_entry_name(uint32_t worker_idx,
						   const char *what)
{
	struct nat_entry_name name;

	snprintf(name.text, sizeof(name.text), "%u/%.20s", worker_idx, what);
	return name;
}

/* Find an array: 0, or -errno with a reason. */
static inline int nat_entry_find(const struct mr_parcel *parcel,
				 uint32_t worker_idx, const char *what,
				 uint32_t layout, uint32_t record_bytes,
				 const void **ret_records, uint32_t *ret_n,
				 struct mr_reason *ret_why)
{
	const struct nat_entry_name name = nat_entry_name(worker_idx, what);
	size_t n_bytes = 0;
	const int err = mr_parcel_find(parcel, name.text, layout, ret_records,
				       &n_bytes, ret_why);

	*ret_n = (uint32_t)(n_bytes / record_bytes);
	if (err == 0 && n_bytes % record_bytes != 0)
		return fail_with(ret_why, -EPROTO,
				 "entry %s of the state has a part of a record",
				 name.text);
	return err;
}

static inline int nat_entry_is_damaged(uint32_t worker_idx, const char *what,
				       uint32_t record,
				       struct mr_reason *ret_why)
{
	return fail_with(ret_why, -EPROTO,
			 "entry %s of the state is damaged at record %u",
			 nat_entry_name(worker_idx, what).text, record);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A parsed port spec. Grammar: docs/port-specs.md. */
#ifndef PORT_SPEC_H
#define PORT_SPEC_H

#include <stdint.h>

#include <millrace/error.h>

enum { MRI_SPEC_MAX_BYTES = 1024, MRI_SPEC_MAX_OPTIONS = 32 };

struct mr_spec {
	char text[MRI_SPEC_MAX_BYTES]; /* cut into the strings below */
	const char *driver;
	const char *device;
	uint32_t n_options;
	struct {
		const char *key;
		const char *value; /* "" if there is none */
	} options[MRI_SPEC_MAX_OPTIONS];
};

/* 0, or -EINVAL with a reason. The spec points into itself: do not copy it. */
int mri_spec_parse(struct mr_spec *spec, const char *text,
		   struct mr_reason *reterr_reason);

/* -EINVAL, naming the options there are, if one is not in keys. */
int mri_spec_check_keys(const struct mr_spec *spec, const char *const *keys,
			struct mr_reason *reterr_reason);

#endif

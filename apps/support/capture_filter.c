/* SPDX-License-Identifier: BSD-3-Clause */
/* Source: pcap_compile(3PCAP). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <pcap/pcap.h>

#include "capture.h"
#include "capture_filter.h"
#include "text.h"

int capture_filter_compile(const char *expression, struct capture_filter *ret,
			   struct mr_reason *ret_why)
{
	struct bpf_program *program;
	pcap_t *pcap;
	int err = 0;

	ret->program = NULL;
	if (expression == NULL || expression[0] == '\0')
		return 0;
	pcap = pcap_open_dead(DLT_EN10MB, CAPTURE_MAX_BYTES);
	program = calloc(1, sizeof(*program));
	if (pcap == NULL || program == NULL) {
		err = fail_with(ret_why, -ENOMEM, "no memory");
	} else if (pcap_compile(pcap, program, expression, 1,
				PCAP_NETMASK_UNKNOWN) < 0) {
		err = fail_with(ret_why, -EINVAL,
				"filter '%.160s': %s; see pcap-filter(7)",
				expression, pcap_geterr(pcap));
	}
	if (pcap != NULL)
		pcap_close(pcap);
	if (err == 0)
		ret->program = program;
	else
		free(program);
	return err;
}

void capture_filter_free(struct capture_filter *filter)
{
	if (filter->program != NULL)
		pcap_freecode(filter->program);
	free(filter->program);
	filter->program = NULL;
}

bool capture_filter_matches(const struct capture_filter *filter,
			    const uint8_t *bytes, uint32_t n_bytes,
			    uint32_t n_frame)
{
	const struct bpf_program *program = filter->program;

	return program == NULL ||
	       bpf_filter(program->bf_insns, bytes, n_frame, n_bytes) != 0;
}

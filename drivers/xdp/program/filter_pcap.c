/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filter expressions, compiled by libpcap. Its headers and the kernel's define
 * the same names: only this file includes them.
 *
 * Source: pcap-filter(7), pcap_compile(3PCAP).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pcap/pcap.h>

#include <millrace/driver.h>

#include "program/filter.h"

enum { MAX_FRAME_BYTES = 65535 };

static int compile_text(pcap_t *pcap, const char *expression,
			struct bpf_program *ret_program)
{
	return pcap_compile(pcap, ret_program, expression, 1,
			    PCAP_NETMASK_UNKNOWN);
}

/* Length of the longest valid expression at the start, in whole words. */
static uint32_t n_understood(pcap_t *pcap, const char *expression)
{
	char part[XDP_FILTER_TEXT_BYTES];
	struct bpf_program program;
	char *blank;

	snprintf(part, sizeof(part), "%s", expression);
	while ((blank = strrchr(part, ' ')) != NULL) {
		*blank = '\0';
		if (part[0] == '\0' || compile_text(pcap, part, &program) < 0)
			continue;
		pcap_freecode(&program);
		return (uint32_t)strlen(part);
	}
	return 0;
}

static int refuse_expression(const char *port, pcap_t *pcap,
			     const char *expression, struct mr_reason *reason)
{
	char why[PCAP_ERRBUF_SIZE];
	uint32_t n;

	/* Compiling again overwrites the text. */
	snprintf(why, sizeof(why), "%s", pcap_geterr(pcap));
	n = n_understood(pcap, expression);
	return mr_fail(reason, -EINVAL,
		       "%s: filter '%.160s': %s%.*s%s%s; see pcap-filter(7)",
		       port, expression, n > 0 ? "after '" : "", (int)n,
		       expression, n > 0 ? "': " : "", why);
}

static int copy_insns(const struct mr_ctx *ctx,
		      const struct bpf_program *program, struct xdp_filter *ret)
{
	const size_t n_bytes = program->bf_len * sizeof(program->bf_insns[0]);

	ret->n = program->bf_len;
	ret->insns = mr_alloc(ctx, 0, n_bytes);
	if (ret->insns == NULL)
		return -ENOMEM;
	memcpy(ret->insns, program->bf_insns, n_bytes);
	return 0;
}

int mri_xdp_filter_compile(const struct mr_ctx *ctx, const char *port,
			   const char *expression, struct xdp_filter *ret,
			   struct mr_reason *reterr_reason)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, MAX_FRAME_BYTES);
	struct bpf_program program;
	int err;

	if (pcap == NULL)
		return -ENOMEM;
	if (compile_text(pcap, expression, &program) < 0) {
		err = refuse_expression(port, pcap, expression, reterr_reason);
	} else {
		err = copy_insns(ctx, &program, ret);
		pcap_freecode(&program);
	}
	pcap_close(pcap);
	return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "model/filter_pair.h"

/* Declared here, since libpcap's header and the kernel's define the same names.
 */
unsigned int bpf_filter(const struct sock_filter *insns, const uint8_t *bytes,
			unsigned int n_wire_bytes, unsigned int n_bytes);

enum { LOG_BYTES = 1 << 20, TAKEN = XDP_TX };

static struct xdp_filter_count count = { .n_queues = 1 };

bool filter_pair_begin(void)
{
	count.map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "filter_pair", 4,
				      XDP_FILTER_COUNT_BYTES, 1, NULL);
	return count.map_fd >= 0;
}

uint64_t filter_pair_n_passed(void)
{
	uint64_t value[XDP_FILTER_COUNT_BYTES / sizeof(uint64_t)];
	const uint32_t key = 0;

	if (bpf_map_lookup_elem(count.map_fd, &key, value) < 0)
		err(1, "no counter");
	return value[0];
}

static int load(const struct bpf_insn *insns, uint32_t n, bool has_frags)
{
	char *log = calloc(1, LOG_BYTES);
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = BPF_XDP,
		    .prog_flags = has_frags ? BPF_F_XDP_HAS_FRAGS : 0,
		    .log_buf = log, .log_size = LOG_BYTES);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "filter_pair", "GPL", insns,
			       n, &options);

	if (fd < 0) {
		fd = -errno;
		warnx("%s", log);
	}
	free(log);
	return fd;
}

int filter_pair_open(struct filter_pair *pair, const struct xdp_cbpf *cbpf,
		     bool has_frags)
{
	const struct bpf_insn tail[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = TAKEN },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_insn *insns;
	uint32_t n;
	int error = mri_xdp_cbpf_translate(cbpf, &count, NULL, &n);

	if (error < 0)
		return error;
	insns = malloc(n * sizeof(*insns) + sizeof(tail));
	if (insns == NULL)
		err(1, "no memory");
	(void)mri_xdp_cbpf_translate(cbpf, &count, insns, &n);
	memcpy(insns + n, tail, sizeof(tail));
	pair->cbpf = *cbpf;
	pair->fd = load(insns, n + 2, has_frags);
	free(insns);
	return pair->fd < 0 ? pair->fd : 0;
}

void filter_pair_close(struct filter_pair *pair)
{
	close(pair->fd);
}

bool filter_pair_interpret(const struct xdp_cbpf *cbpf, const uint8_t *bytes,
			   uint32_t n_bytes)
{
	return bpf_filter(cbpf->insns, bytes, n_bytes, n_bytes) != 0;
}

bool filter_pair_differs(const struct filter_pair *pair, const uint8_t *bytes,
			 uint32_t n_bytes, bool *ret_is_taken)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = bytes,
		    .data_size_in = n_bytes);

	*ret_is_taken = filter_pair_interpret(&pair->cbpf, bytes, n_bytes);
	if (bpf_prog_test_run_opts(pair->fd, &options) < 0)
		err(1, "BPF_PROG_RUN of %u bytes", n_bytes);
	return options.retval != (*ret_is_taken ? TAKEN : XDP_PASS);
}

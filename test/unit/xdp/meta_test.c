/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of metadata from the XDP program to mr_rx_burst_meta(): the port's own
 * object, with simulated kfuncs, since BPF_PROG_RUN refuses programs that are
 * bound to a device. test/netns has real ones.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/filter.h>

#include "socket/queue.h"
#include "support/test.h"
#include "xdp.h"
#include "xdp_prog.skel.h"

enum { MAGIC = 0xabcde000, N_BYTES = 64, RECORD = sizeof(struct xdp_rx_meta) };
enum { FAMILY_XDP = 44, ROOM = 4096, AT = 512 };

static struct xdp_prog_bpf *skeleton;
static int socket_fd;

/* Load the program, with a socket in its map. */
static void load_program(bool has_tags)
{
	const uint32_t queue = 0;

	skeleton = xdp_prog_bpf__open();
	assert_non_null(skeleton);
	skeleton->rodata->meta_magic = MAGIC;
	skeleton->rodata->has_tags = has_tags;
	socket_fd = socket(FAMILY_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (xdp_prog_bpf__load(skeleton) < 0 || socket_fd < 0)
		skip(); /* not root, or no AF_XDP */
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(skeleton->maps.sockets), &queue,
				    &socket_fd, BPF_ANY),
		0);
}

static void unload(void)
{
	close(socket_fd);
	xdp_prog_bpf__destroy(skeleton);
}

/* Run it for a frame. Returns what the kernel would copy to the socket's
 * buffer, which ends at AT plus the frame's length. */
static uint32_t run_program(const uint8_t frame[N_BYTES], uint8_t buffer[ROOM])
{
	uint8_t out[2 * N_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame,
		    .data_size_in = N_BYTES, .data_out = out,
		    .data_size_out = sizeof(out));

	assert_int_equal(
		bpf_prog_test_run_opts(
			bpf_program__fd(skeleton->progs.millrace), &options),
		0);
	assert_int_equal(options.retval, XDP_REDIRECT);
	memcpy(buffer + AT - RECORD, out, options.data_size_out);
	return options.data_size_out;
}

static struct mr_meta read_one(uint8_t buffer[ROOM])
{
	static struct xdp_port port;
	struct xdp_rxq rxq = { .port = &port, .meta_magic = MAGIC };
	const struct mr_frame frame = { .addr = AT, .len = N_BYTES };
	struct mr_meta meta;

	port.base.base = buffer;
	memset(&meta, 0xa5, sizeof(meta));
	mri_xdp_read_meta(&rxq, &frame, &meta, 1);
	return meta;
}

struct meta_case {
	uint32_t word; /* the kfuncs' answers */
	uint32_t type; /* enum xdp_rss_hash_type */
	uint64_t ns;
	uint32_t valid;
	uint32_t hash_type;
};

static const struct meta_case cases[] = {
	{ .word = 0 },
	{ .word = XDP_RX_META_HASH, .valid = MR_META_RSS_HASH },
	{ .word = XDP_RX_META_HASH,
	  .type = 1 << 1 | 1 << 3 | 1 << 5, /* IPv6, ports, UDP */
	  .valid = MR_META_RSS_HASH,
	  .hash_type = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_UDP },
	/* What has no name here is left out: IPv6 options, SCTP. */
	{ .word = XDP_RX_META_HASH,
	  .type = 0x1ff,
	  .valid = MR_META_RSS_HASH,
	  .hash_type = MR_HASH_IPV4 | MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_TCP |
		       MR_HASH_UDP },
	{ .word = XDP_RX_META_TIME, .ns = 17, .valid = MR_META_RX_TIME },
	{ .word = XDP_RX_META_TIME | XDP_RX_META_HASH,
	  .type = 1,
	  .ns = INT64_MAX,
	  .valid = MR_META_RX_TIME | MR_META_RSS_HASH,
	  .hash_type = MR_HASH_IPV4 },
	/* No time. */
	{ .word = XDP_RX_META_TIME, .ns = 0 },
	{ .word = XDP_RX_META_TIME, .ns = UINT64_C(0xffff888100000000) },
};

TEST(answers_of_kfuncs_are_in_metadata)
{
	uint8_t frame[N_BYTES] = { 2, 0, 0, 0, 0, 1, [12] = 0x88, 0xb5, 7 };
	static uint8_t buffer[ROOM];

	load_program(false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct meta_case *c = &cases[i];
		struct mr_meta meta;

		skeleton->bss->simulated_meta = (struct xdp_rx_meta){
			.word = c->word | c->type << XDP_RX_META_TYPE_SHIFT,
			.hash = 0xdeadbeef,
			.ns = c->ns,
		};
		assert_int_equal(run_program(frame, buffer), RECORD + N_BYTES);
		assert_memory_equal(buffer + AT, frame, N_BYTES);
		meta = read_one(buffer);
		assert_int_equal(meta.valid, c->valid);
		if (c->valid & MR_META_RSS_HASH) {
			assert_int_equal(meta.rss_hash, 0xdeadbeef);
			assert_int_equal(meta.hash_type, c->hash_type);
		}
		if (c->valid & MR_META_RX_TIME) {
			assert_int_equal(meta.rx_ns, c->ns);
			assert_int_equal(meta.rx_clock, MR_CLOCK_DEVICE);
		}
		/* A frame without a record in the same buffer. */
		assert_int_equal(read_one(buffer).valid, 0);
	}
	unload();
}

TEST(a_tag_goes_between_metadata_and_frame)
{
	uint8_t frame[N_BYTES] = { 2, 0, 0, 0, 0, 1, [12] = 0x88, 0xb5, 7 };
	const uint8_t tag[] = { 0x81, 0, 0x60, 5 };
	static uint8_t buffer[ROOM];

	load_program(true);
	skeleton->bss->simulated_meta =
		(struct xdp_rx_meta){ .word = XDP_RX_META_HASH, .hash = 9 };
	skeleton->bss->simulated_tag.proto = 0x0081;
	skeleton->bss->simulated_tag.tci = 0x6005;
	assert_int_equal(run_program(frame, buffer), RECORD + N_BYTES + 4);
	assert_memory_equal(buffer + AT, frame, 12);
	assert_memory_equal(buffer + AT + 12, tag, sizeof(tag));
	assert_memory_equal(buffer + AT + 16, frame + 12, N_BYTES - 12);
	assert_int_equal(read_one(buffer).rss_hash, 9);
	unload();
}

/* As the program with rules leaves it. */
TEST(a_ticket_and_metadata_do_not_overlap)
{
	const struct xdp_rx_meta record = { MAGIC | XDP_RX_META_HASH, 9, 0 };
	const uint32_t ticket[4] = { MAGIC | 1, 2, 3, 4 };
	static uint8_t buffer[ROOM];

	memcpy(buffer + AT - sizeof(ticket), ticket, sizeof(ticket));
	memcpy(buffer + AT - sizeof(ticket) - RECORD, &record, RECORD);
	assert_int_equal(read_one(buffer).rss_hash, 9);
	assert_memory_equal(buffer + AT - sizeof(ticket), ticket,
			    sizeof(ticket));
	assert_int_equal(read_one(buffer).valid, 0);
}

TEST(only_first_entries_have_metadata)
{
	const struct xdp_rx_meta record = { MAGIC | XDP_RX_META_HASH, 9, 0 };
	const struct mr_frame frames[] = {
		{ .addr = AT, .len = 64, .flags = MR_FRAME_MORE },
		{ .addr = 2 * AT, .len = 64 },
		{ .addr = 3 * AT, .len = 64 },
	};
	static struct xdp_port port;
	struct xdp_rxq rxq = { .port = &port, .meta_magic = MAGIC };
	static uint8_t buffer[ROOM];
	struct mr_meta metas[3];

	port.base.base = buffer;
	for (int i = 1; i <= 3; i++)
		memcpy(buffer + i * AT - RECORD, &record, RECORD);
	mri_xdp_read_meta(&rxq, frames, metas, 3);
	assert_int_equal(metas[0].valid, MR_META_RSS_HASH);
	assert_int_equal(metas[2].valid, MR_META_RSS_HASH);
	assert_memory_equal(buffer + 2 * AT - RECORD, &record, RECORD);

	/* A port without the option reads no packet memory. */
	rxq.meta_magic = 0;
	port.base.base = NULL;
	mri_xdp_read_meta(&rxq, frames, metas, 3);
	assert_int_equal(metas[0].valid | metas[1].valid | metas[2].valid, 0);
}

/* What becomes of the functions that stand for kfuncs. */
TEST(only_the_devices_kfuncs_are_called)
{
	struct bpf_insn insns[512];
	struct xdp_port port = { .lease.n_queues = 1 };
	uint32_t n_calls[XDP_N_KFUNCS] = { 0 };
	size_t n, n_program;

	load_program(true);
	n_program = bpf_program__insn_cnt(skeleton->progs.millrace);
	assert_true(n_program <= 512);
	for (uint32_t has = 0; has < 1 << XDP_N_KFUNCS; has++) {
		memcpy(insns, bpf_program__insns(skeleton->progs.millrace),
		       n_program * sizeof(insns[0]));
		for (uint32_t i = 0; i < XDP_N_KFUNCS; i++)
			port.lease.kfuncs[i] = has >> i & 1 ? 100 + i : 0;
		n = mri_xdp_bind_calls(&port, insns, n_program);
		assert_int_equal(n < n_program, has != 0);
		memset(n_calls, 0, sizeof(n_calls));
		for (size_t i = 0; i < n && has != 0; i++) {
			if (insns[i].code != (BPF_JMP | BPF_CALL))
				continue;
			assert_int_not_equal(insns[i].src_reg, BPF_PSEUDO_CALL);
			if (insns[i].src_reg == 2) /* a kfunc */
				n_calls[insns[i].imm - 100]++;
		}
		for (uint32_t i = 0; i < XDP_N_KFUNCS; i++)
			assert_int_equal(n_calls[i] != 0, has >> i & 1);
	}
	unload();
}

int main(void)
{
	(void)libbpf_set_print(NULL);
	return test_run(NULL, NULL, NULL);
}

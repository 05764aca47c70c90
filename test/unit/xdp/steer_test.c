/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The XDP program of a port, not bound to a device, on single frames. The
 * socket gets a frame with the tag that the kernel holds (set by the test); a
 * frame for the kernel has it outside.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "support/test.h"
#include "xdp_prog.skel.h"
#include "xdp_uapi.h"

enum { FAMILY_XDP = 44, FRAME_BYTES = 64, TAG_AT = 12, TAG_BYTES = 4 };

struct bed {
	struct xdp_prog_bpf *skeleton;
	int fd; /* of the socket */
};

/* Keep libbpf from printing errors. */
static int be_silent(enum libbpf_print_level level, const char *format,
		     va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

static void bed_open(struct bed *bed, bool has_tags, bool has_tags_in,
		     bool has_socket)
{
	const uint32_t n_entries = 64, queue = 0;

	libbpf_set_print(be_silent);
	bed->skeleton = xdp_prog_bpf__open();
	assert_non_null(bed->skeleton);
	bed->skeleton->rodata->has_tags = has_tags;
	bed->skeleton->rodata->has_tags_in = has_tags_in;
	bed->fd = socket(FAMILY_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (bed->fd < 0 || xdp_prog_bpf__load(bed->skeleton) < 0)
		skip(); /* no AF_XDP, or not root */
	assert_int_equal(setsockopt(bed->fd, SOL_XSK, XSK_RX_RING, &n_entries,
				    sizeof(n_entries)),
			 0);
	if (has_socket)
		assert_int_equal(
			bpf_map_update_elem(
				bpf_map__fd(bed->skeleton->maps.sockets),
				&queue, &bed->fd, BPF_ANY),
			0);
}

static void bed_close(struct bed *bed)
{
	xdp_prog_bpf__destroy(bed->skeleton);
	close(bed->fd);
}

/* What the program returns for a frame that has this tag outside of it. */
static uint32_t steer(struct bed *bed, uint16_t proto, uint16_t tci,
		      uint8_t out[FRAME_BYTES + TAG_BYTES], uint32_t *n_out)
{
	uint8_t frame[FRAME_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame,
		    .data_size_in = sizeof(frame), .data_out = out,
		    .data_size_out = FRAME_BYTES + TAG_BYTES);

	for (uint32_t i = 0; i < FRAME_BYTES; i++)
		frame[i] = (uint8_t)i;
	bed->skeleton->bss->simulated_tag.proto = htons(proto);
	bed->skeleton->bss->simulated_tag.tci = tci;
	assert_int_equal(bpf_prog_test_run_opts(
				 bpf_program__fd(bed->skeleton->progs.millrace),
				 &options),
			 0);
	*n_out = options.data_size_out;
	return options.retval;
}

static void assert_bytes(const uint8_t *bytes, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(bytes[i], first + i);
}

TEST(a_tag_outside_is_in_what_the_socket_gets)
{
	static const uint16_t protos[] = { ETH_P_8021Q, ETH_P_8021AD };
	static const uint16_t tcis[] = { 0, 5, 0xa005, 0xffff };
	uint8_t out[FRAME_BYTES + TAG_BYTES];
	uint32_t n_out;
	struct bed bed;

	bed_open(&bed, true, false, true);
	for (uint32_t i = 0; i < 8; i++) {
		const uint16_t proto = protos[i % 2], tci = tcis[i / 2];
		const uint16_t tag[] = { htons(proto), htons(tci) };

		assert_int_equal(steer(&bed, proto, tci, out, &n_out),
				 XDP_REDIRECT);
		assert_int_equal(n_out, sizeof(out));
		assert_bytes(out, 0, TAG_AT);
		assert_memory_equal(out + TAG_AT, tag, TAG_BYTES);
		assert_bytes(out + TAG_AT + TAG_BYTES, TAG_AT,
			     FRAME_BYTES - TAG_AT);
	}
	bed_close(&bed);
}

struct untagged {
	const char *name;
	bool has_tags, has_socket;
	uint16_t proto;
	uint32_t action;
};

static const struct untagged cases[] = {
	{ "a frame without a tag stays as it is", true, true, 0, XDP_REDIRECT },
	{ "a frame for the kernel stays as it is", true, false, ETH_P_8021Q,
	  XDP_PASS },
	{ "a program that asks for no tags writes none", false, true,
	  ETH_P_8021Q, XDP_REDIRECT },
};

static void stays(void **state)
{
	const struct untagged *c = *state;
	uint8_t out[FRAME_BYTES + TAG_BYTES];
	uint32_t n_out;
	struct bed bed;

	bed_open(&bed, c->has_tags, false, c->has_socket);
	assert_int_equal(steer(&bed, c->proto, 5, out, &n_out), c->action);
	assert_int_equal(n_out, FRAME_BYTES);
	assert_bytes(out, 0, FRAME_BYTES);
	bed_close(&bed);
}

TEST(a_tag_that_a_filter_put_in_is_not_in_what_the_kernel_gets)
{
	uint8_t out[FRAME_BYTES + TAG_BYTES];
	uint32_t n_out;
	struct bed bed;

	bed_open(&bed, false, true, false);
	assert_int_equal(steer(&bed, ETH_P_8021Q, 5, out, &n_out), XDP_PASS);
	assert_int_equal(n_out, FRAME_BYTES - TAG_BYTES);
	assert_bytes(out, 0, TAG_AT);
	assert_bytes(out + TAG_AT, TAG_AT + TAG_BYTES,
		     FRAME_BYTES - TAG_AT - TAG_BYTES);
	assert_int_equal(steer(&bed, 0, 0, out, &n_out), XDP_PASS);
	assert_int_equal(n_out, FRAME_BYTES);
	bed_close(&bed);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		test_register((struct CMUnitTest){ cases[i].name, stays, NULL,
						   NULL, (void *)&cases[i] });
	return test_run(NULL, NULL, NULL);
}

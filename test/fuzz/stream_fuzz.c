/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of streams from anywhere: frames with right sums and stamps, all inside
 * their buffers, or one line that says what is wrong.
 */
#include <stdlib.h>
#include <string.h>

#include <millrace/millrace.h>

#include "fuzz.h"
#include "stream/stream.h"

enum { MAGIC = 77, N_FRAMES = 90, N_SENDERS = 3 };

const struct fuzz_seed fuzz_seeds[] = {
	SEED("ip.src=10.0.0.0/16:random udp.dst=53,80 size=imix"),
	SEED("tcp.flags=syn,ack,fin+ack tcp.src=1024-65535 weight=3"),
	SEED("ip.src=2001:db8::/96:random ip.flow=0-0xfffff ip.ttl=1-9"),
	SEED("qinq.id=1-9:zipf=1.5 vlan.id=7 vlan.pcp=3 size=90x2,101"),
	SEED("eth.src=02:00:00:00:00:00/32 eth.type=0x88b5-0x88b9:step=2"),
	SEED("icmp.id=1-9 ip.options=8 ip.tos=0-255 ip.id=7\nip6\nudp"),
	SEED("ip.proto=50 size=60-99"),
	{ NULL, 0 },
};

static void check_sum(const uint8_t *bytes, uint32_t n, uint64_t sum)
{
	FUZZ_CHECK(mr_csum_fold(mr_csum_add(bytes, n, sum)) == UINT16_MAX);
}

static void check_frame(const uint8_t *bytes, uint32_t n)
{
	struct mr_net_view view;

	/* eth.type can make a header of any bytes. */
	if (mr_net_parse(bytes, n, n, &view) < 0 || view.l4_bytes == 0)
		return;
	if (view.ether_type == MR_ETHER_IPV4)
		check_sum(bytes + view.l3_bytes,
			  (bytes[view.l3_bytes] & 15u) * 4, 0);
	if (view.csum_bytes != 0)
		check_sum(bytes + view.l4_bytes, view.l4_len_bytes,
			  mr_csum_pseudo(bytes, &view));
}

/* Each frame in a piece of memory of its size, for ASan. */
static void check_sender(const struct streams *streams, uint32_t sender,
			 bool is_stamped)
{
	const uint32_t room = streams_max_bytes(streams);
	uint8_t *base = malloc((size_t)room * N_FRAMES);
	struct mr_frame frames[N_FRAMES];
	uint64_t seqs[4] = { 0 };
	struct builder *builder = NULL;
	struct mr_reason why;

	FUZZ_CHECK(base != NULL);
	FUZZ_CHECK(builder_open(streams, sender, N_SENDERS, 1, &builder,
				&why) == 0);
	for (uint32_t i = 0; i < N_FRAMES; i++)
		frames[i].addr = (uint64_t)i * room;
	builder_fill(builder, base, frames, NULL, N_FRAMES);
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		const uint8_t *bytes = base + frames[i].addr;
		struct stamp stamp;

		FUZZ_CHECK(frames[i].len >= MR_ETH_MIN_BYTES);
		FUZZ_CHECK(frames[i].len <= room);
		check_frame(bytes, frames[i].len);
		if (!is_stamped)
			continue;
		FUZZ_CHECK(stamp_read(bytes + frames[i].len, MAGIC, &stamp));
		FUZZ_CHECK(stamp.lane % N_SENDERS == sender);
		FUZZ_CHECK(stamp.seq == seqs[stamp.lane / N_SENDERS]++);
	}
	builder_free(builder);
	free(base);
}

/* Up to three streams: a zero byte ends each. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct stream_defaults defaults = { .magic = MAGIC };
	const char *texts[3];
	uint32_t n_texts = 0;
	struct streams *streams = NULL;
	struct mr_reason why;
	char copy[4097];

	if (n_bytes == 0 || n_bytes >= sizeof(copy))
		return 0;
	defaults.is_stamped = bytes[n_bytes - 1] % 2 != 0;
	memcpy(copy, bytes, n_bytes);
	copy[n_bytes] = '\0';
	for (size_t at = 0; at < n_bytes && n_texts < 3;
	     at += strlen(copy + at) + 1) {
		if (strstr(copy + at, "pcap") != NULL)
			return 0; /* files are not the input's to choose */
		texts[n_texts++] = copy + at;
	}
	if (streams_parse(texts, n_texts, &defaults, &streams, &why) < 0) {
		FUZZ_CHECK(streams == NULL);
		FUZZ_CHECK(memchr(why.text, '\0', sizeof(why.text)) != NULL);
		FUZZ_CHECK(why.text[0] != '\0');
		return 0;
	}
	FUZZ_CHECK(streams_n(streams) == n_texts);
	FUZZ_CHECK(streams_mean_bytes(streams) <= streams_max_bytes(streams));
	for (uint32_t i = 0; i < N_SENDERS; i++)
		check_sender(streams, i, defaults.is_stamped);
	streams_free(streams);
	return 0;
}

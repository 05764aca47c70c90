/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads captures by libpcap, where it is there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/specs.h"
#include "stream/capture.h"
#include "stream/grammar.h"

void capture_free(struct capture_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(frames[i].bytes);
	free(frames);
}

#ifdef BENCH_PCAP

#include <pcap/pcap.h>

static int check_frame(const char *path, uint32_t n,
		       const struct pcap_pkthdr *head, struct mr_reason *why)
{
	if (n == CAPTURE_FRAMES_MAX)
		return fail_with(why, -EINVAL,
				 "pcap=%s has more than %d frames; 'mr-bench "
				 "replay' takes any number",
				 path, CAPTURE_FRAMES_MAX);
	if (head->caplen < head->len)
		return fail_with(why, -EINVAL,
				 "pcap=%s: frame %u was cut off when it was "
				 "captured; capture with -s 0",
				 path, n + 1);
	if (head->len < MR_ETH_BYTES || head->len > FRAME_BYTES_MAX)
		return fail_with(why, -EINVAL,
				 "pcap=%s: frame %u has %u bytes; there are "
				 "frames of %d to %d",
				 path, n + 1, head->len, MR_ETH_BYTES,
				 FRAME_BYTES_MAX);
	return 0;
}

/* Behind the n frames there are; the array grows by doubling. */
static int add_frame(const uint8_t *bytes, uint32_t n_bytes,
		     struct capture_frame **frames, uint32_t n)
{
	const uint32_t n_room =
		n_bytes < MR_ETH_MIN_BYTES ? MR_ETH_MIN_BYTES : n_bytes;
	struct capture_frame *more;
	uint8_t *copy = calloc(1, n_room);

	if (copy == NULL)
		return -ENOMEM;
	if ((n & (n - 1)) == 0) {
		more = realloc(*frames,
			       (n == 0 ? 1 : 2 * (size_t)n) * sizeof(more[0]));
		if (more == NULL) {
			free(copy);
			return -ENOMEM;
		}
		*frames = more;
	}
	memcpy(copy, bytes, n_bytes);
	(*frames)[n] = (struct capture_frame){ copy, n_room };
	return 0;
}

static int read_frames(pcap_t *pcap, const char *path,
		       struct capture_frame **frames, uint32_t *n,
		       struct mr_reason *why)
{
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	int n_read;

	while ((n_read = pcap_next_ex(pcap, &head, &bytes)) == 1) {
		int err = check_frame(path, *n, head, why);

		if (err < 0)
			return err;
		if (add_frame(bytes, head->len, frames, *n) < 0)
			return fail_with(why, -ENOMEM,
					 "pcap=%s: no memory for its frames",
					 path);
		(*n)++;
	}
	if (n_read != PCAP_ERROR_BREAK)
		return fail_with(why, -EINVAL, "pcap=%s: %s", path,
				 pcap_geterr(pcap));
	return *n > 0 ? 0 :
			fail_with(why, -EINVAL, "pcap=%s has no frame", path);
}

int capture_read(const char *path, struct capture_frame **ret, uint32_t *ret_n,
		 struct mr_reason *why)
{
	char error[PCAP_ERRBUF_SIZE];
	struct capture_frame *frames = NULL;
	uint32_t n = 0;
	pcap_t *pcap;
	int err;

	if (access(path, R_OK) < 0)
		return fail_with(why, -ENOENT, "pcap=%s: %s", path,
				 strerror(errno));
	pcap = pcap_open_offline(path, error);
	if (pcap == NULL)
		return fail_with(why, -EINVAL, "pcap=%s: %s", path, error);
	if (pcap_datalink(pcap) != DLT_EN10MB)
		err = fail_with(why, -EINVAL,
				"pcap=%s has no Ethernet frames; capture on an "
				"interface, not on 'any'",
				path);
	else
		err = read_frames(pcap, path, &frames, &n, why);
	pcap_close(pcap);
	if (err < 0) {
		capture_free(frames, n);
		return err;
	}
	*ret = frames;
	*ret_n = n;
	return 0;
}

#else

int capture_read(const char *path, struct capture_frame **ret, uint32_t *ret_n,
		 struct mr_reason *why)
{
	(void)ret;
	(void)ret_n;
	return fail_with(why, -ENOTSUP,
			 "pcap=%s: built without libpcap; apt install "
			 "libpcap-dev and build again",
			 path);
}

#endif

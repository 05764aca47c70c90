/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads captures with libpcap, if it was there at build time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream/compile.h"
#include "support/specs.h"

#ifdef BENCH_PCAP

#include <pcap/pcap.h>

enum { CAPTURE_FRAMES_MAX = 1 << 16 };

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

/* Append a frame; the array grows by doubling. */
static int add_frame(const uint8_t *bytes, uint32_t n_bytes, struct stream *ret)
{
	const uint32_t n = ret->n_shapes;
	const uint32_t n_room =
		n_bytes < MR_ETH_MIN_BYTES ? MR_ETH_MIN_BYTES : n_bytes;
	struct shape *shapes = ret->shapes;

	if ((n & (n - 1)) == 0)
		shapes = realloc(shapes, (n == 0 ? 1 : 2 * (size_t)n) *
						 sizeof(shapes[0]));
	if (shapes == NULL)
		return -ENOMEM;
	ret->shapes = shapes;
	shapes[n] =
		(struct shape){ .bytes = calloc(1, n_room), .n_bytes = n_room };
	if (shapes[n].bytes == NULL)
		return -ENOMEM;
	memcpy(shapes[n].bytes, bytes, n_bytes);
	ret->n_shapes++;
	return 0;
}

/* Frame k has the k-th shape. */
static int count_sizes(struct stream *ret)
{
	ret->sizes = calloc(ret->n_shapes, sizeof(ret->sizes[0]));
	if (ret->sizes == NULL)
		return -ENOMEM;
	for (; ret->n_sizes < ret->n_shapes; ret->n_sizes++)
		ret->sizes[ret->n_sizes] = ret->n_sizes;
	return 0;
}

/* Length of the FCS at the end of each frame, by the link type. */
static uint32_t fcs_bytes_of(pcap_t *pcap)
{
	const int extension = pcap_datalink_ext(pcap);

	return LT_FCS_LENGTH_PRESENT(extension) ?
		       2 * LT_FCS_LENGTH((uint32_t)extension) :
		       0;
}

static int read_frames(pcap_t *pcap, const char *path, struct stream *ret,
		       struct mr_reason *why)
{
	const uint32_t fcs_bytes = fcs_bytes_of(pcap);
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	int n_read;

	while ((n_read = pcap_next_ex(pcap, &head, &bytes)) == 1) {
		int err = check_frame(path, ret->n_shapes, head, why);

		if (err < 0)
			return err;
		if (head->len >= MR_ETH_BYTES + fcs_bytes)
			head->len -= fcs_bytes;
		if (add_frame(bytes, head->len, ret) < 0)
			return fail_with(why, -ENOMEM,
					 "pcap=%s: no memory for its frames",
					 path);
	}
	if (n_read != PCAP_ERROR_BREAK)
		return fail_with(why, -EINVAL, "pcap=%s: %s", path,
				 pcap_geterr(pcap));
	if (ret->n_shapes == 0)
		return fail_with(why, -EINVAL, "pcap=%s has no frame", path);
	return count_sizes(ret) == 0 ?
		       0 :
		       fail_with(why, -ENOMEM, "no memory for a stream");
}

int capture_read(const char *path, struct stream *ret, struct mr_reason *why)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap;
	int err;

	ret->is_capture = true;
	if (access(path, R_OK) < 0)
		return fail_with(why, -ENOENT, "pcap=%s: %s", path,
				 mr_strerror(errno));
	pcap = pcap_open_offline(path, error);
	if (pcap == NULL)
		return fail_with(why, -EINVAL, "pcap=%s: %s", path, error);
	if (pcap_datalink(pcap) != DLT_EN10MB)
		err = fail_with(why, -EINVAL,
				"pcap=%s has no Ethernet frames; capture on an "
				"interface, not on 'any'",
				path);
	else
		err = read_frames(pcap, path, ret, why);
	pcap_close(pcap);
	return err;
}

#else

int capture_read(const char *path, struct stream *ret, struct mr_reason *why)
{
	(void)ret;
	return fail_with(why, -ENOTSUP,
			 "pcap=%s: built without libpcap; apt install "
			 "libpcap-dev and build again",
			 path);
}

#endif

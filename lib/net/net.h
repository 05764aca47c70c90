/* SPDX-License-Identifier: BSD-3-Clause */
/* Wire constants for lib/net, and software segmentation. */
#ifndef NET_NET_H
#define NET_NET_H

#include <millrace/frame.h>
#include <millrace/net.h>

enum {
	MRI_ETHER_IPV4 = 0x0800,  /* IEEE RA: IPv4 */
	MRI_ETHER_VLAN = 0x8100,  /* IEEE 802.1Q */
	MRI_ETHER_SVLAN = 0x88a8, /* IEEE 802.1ad */
	MRI_ETHER_IPV6 = 0x86dd,  /* IEEE RA: IPv6 */
};

enum { MRI_GSO_HEADER_BYTES = 256 };

/* A frame being segmented: the common header, and where the payload is. */
struct mri_gso {
	uint8_t header[MRI_GSO_HEADER_BYTES];
	struct mr_net_view view; /* of header */
	uint32_t n_header_bytes;
	uint32_t payload_at;      /* in the frame */
	uint32_t n_payload_bytes; /* of all segments */
	uint32_t n_segment_bytes; /* per segment, at most; 0: no segmentation */
};

/*
 * Segment a frame as its metadata requests; bytes is its start. -EBADMSG: its
 * headers are not those of gso_type, or too long.
 */
int mri_gso_begin(struct mri_gso *gso, const uint8_t *bytes, uint32_t n_bytes,
		  uint32_t n_frame, const struct mr_meta *meta);
/* A single "segment" of a whole frame, of at least 14 bytes, unchanged. */
void mri_gso_whole(struct mri_gso *gso, const uint8_t *bytes, uint32_t n_frame);
/* Insert this tag into every header. Call at most once. */
void mri_gso_tag(struct mri_gso *gso, const struct mr_meta *meta);
/*
 * The header, n_header_bytes, of the segment after `done` bytes of payload,
 * with a partial checksum. Returns how many bytes of payload follow it.
 */
uint32_t mri_gso_header(const struct mri_gso *gso, uint32_t done, uint8_t *to);

/* The 4 bytes of the tag that a frame's metadata describes. */
void mri_tag_write(uint8_t *to, const struct mr_meta *meta);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the wire that lib/net uses, and segmentation in software. */
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

/* A frame on its way to segments: their header, and where their payload is. */
struct mri_gso {
	uint8_t header[MRI_GSO_HEADER_BYTES];
	struct mr_net_view view; /* of header */
	uint32_t n_header_bytes;
	uint32_t payload_at;      /* in the frame */
	uint32_t n_payload_bytes; /* of all segments together */
	uint32_t n_segment_bytes; /* of one, at most; 0: nothing is cut */
};

/*
 * Cut a frame as its metadata says; bytes are the first ones of it. -EBADMSG:
 * its headers are not those of gso_type, or too long.
 */
int mri_gso_begin(struct mri_gso *gso, const uint8_t *bytes, uint32_t n_bytes,
		  uint32_t n_frame, const struct mr_meta *meta);
/* One "segment" with all of a frame, of 14 bytes or more, as it is. */
void mri_gso_whole(struct mri_gso *gso, const uint8_t *bytes, uint32_t n_frame);
/* Insert this tag into every header. Call at most once. */
void mri_gso_tag(struct mri_gso *gso, uint16_t tci);
/*
 * The header, n_header_bytes, of the segment behind `done` bytes of payload,
 * with a partial sum. Returns how many bytes of payload follow it.
 */
uint32_t mri_gso_header(const struct mri_gso *gso, uint32_t done, uint8_t *to);

/* The 4 bytes of a tag. */
void mri_tag_write(uint8_t *to, uint16_t tci);

#endif

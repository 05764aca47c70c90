/* SPDX-License-Identifier: BSD-3-Clause */
/* Wire constants for lib/net; software segmentation and its inverse. */
#ifndef NET_NET_H
#define NET_NET_H

#include <stdbool.h>

#include <millrace/frame.h>
#include <millrace/net.h>

enum {
	MRI_ETHER_IPV4 = 0x0800,  /* IEEE RA: IPv4 */
	MRI_ETHER_VLAN = 0x8100,  /* IEEE 802.1Q */
	MRI_ETHER_SVLAN = 0x88a8, /* IEEE 802.1ad */
	MRI_ETHER_IPV6 = 0x86dd,  /* IEEE RA: IPv6 */
};

/* mr_net_parse() from the EtherType at offset `at` on; offsets in the view are
 * from the first byte of the frame, too. */
int mri_net_parse_at(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
		     uint32_t at, struct mr_net_view *ret_view);
/* The same of the layer-3 header at offset `at`. */
int mri_net_parse_l3(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
		     uint32_t at, uint16_t ether_type,
		     struct mr_net_view *ret_view);

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
/*
 * Write the lengths from the view and the partial checksum and, for IPv4, the
 * header checksum and the identification plus i.
 */
void mri_gso_lengths(uint8_t *bytes, const struct mr_net_view *view,
		     uint32_t i);

/* How segment merging classifies a frame. */
enum mri_gro_kind {
	MRI_GRO_OTHER,   /* of no flow */
	MRI_GRO_UNKNOWN, /* of a flow that cannot be told */
	MRI_GRO_ALONE,   /* of a flow, but not to be merged */
	MRI_GRO_SEGMENT,
};

/* Segments being merged, initially one. */
struct mri_gro {
	const uint8_t *bytes;     /* of the first one: its headers */
	struct mr_net_view view;  /* of the first one */
	uint32_t hash;            /* of addresses and ports */
	uint32_t n_header_bytes;  /* of each */
	uint32_t n_payload_bytes; /* of all */
	uint32_t n_segment_bytes; /* of each but the last */
	uint16_t n;               /* segments */
	uint16_t gso_type;        /* enum mr_gso_type */
	uint8_t tcp_flags;        /* of all */
	bool is_over;             /* nothing can follow the last one */
};

/* Parse a frame's headers; bytes is its first entry. Does not check the layer-4
 * checksum. With MRI_GRO_ALONE, sets what mri_gro_is_same_flow() needs. */
enum mri_gro_kind mri_gro_begin(struct mri_gro *gro, const uint8_t *bytes,
				uint32_t n_bytes, uint32_t n_frame);
bool mri_gro_is_same_flow(const struct mri_gro *a, const struct mri_gro *b);
/* Add a segment of the same flow. False: segmentation would not restore it. */
bool mri_gro_add(struct mri_gro *gro, const struct mri_gro *next);
/* Write the headers of two or more segments, with a partial checksum. */
void mri_gro_finish(const struct mri_gro *gro, uint8_t *bytes);

/* The 4 bytes of the tag that a frame's metadata describes. */
void mri_tag_write(uint8_t *to, const struct mr_meta *meta);

#endif

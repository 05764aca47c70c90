/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes frames with the headers that a stream's words ask for, and finds the
 * headers of any frame. */
#ifndef STREAM_TEMPLATE_H
#define STREAM_TEMPLATE_H

#include "stream/words.h"

/* Offsets in a frame; 0: it has none. */
struct layout {
	uint16_t layers[LAYER_L4 + 1]; /* by enum layer; LAYER_ETH is 0 */
	uint16_t ether_type;           /* behind the tags */
	uint8_t proto;
	uint16_t l3_csum, l4_csum;
	uint32_t l4_end;    /* as layer 3 has it */
	uint32_t n_headers; /* bytes in front of the payload */
	bool has_pseudo;    /* l4_csum is over a pseudo-header too */
	struct mr_net_view view;
};

/* Bytes of the headers of a frame that template_make() makes. */
uint32_t template_n_headers(const struct words *words);

/* Make a frame of n_bytes, at least template_n_headers(); checksums are not
 * set. */
void template_make(const struct words *words,
		   const struct stream_defaults *defaults, uint8_t *bytes,
		   uint32_t n_bytes);

/* Returns 0, or -EBADMSG: headers are cut off or contradict themselves. */
int layout_find(const uint8_t *bytes, uint32_t n_bytes, struct layout *ret);

/* Where the field is; NULL: the frame has none. *ret_at is the offset of the
 * window in the frame. */
const struct place *layout_place(const struct layout *layout,
				 const struct field_row *row, uint16_t *ret_at);

/* Write constants, and 0 in fields that vary. False: the frame has no field
 * given[*ret_missing]. */
bool template_set(const struct words *words, const struct layout *layout,
		  uint8_t *bytes, uint32_t *ret_missing);

/* The window of a field, read and written in host order. */
uint32_t window_get(const uint8_t *bytes, uint32_t n_bytes);
void window_put(uint8_t *bytes, uint32_t n_bytes, uint32_t window);

#endif

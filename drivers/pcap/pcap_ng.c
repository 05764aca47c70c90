/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts about a pcapng file that libpcap does not report: the length of the FCS
 * of frames, and the records after an interface of another link type, where
 * libpcap stops. Source: draft-ietf-opsawg-pcapng, sections 3 and 4.
 */
#include <string.h>

#include "pcap_port.h"

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_OBSOLETE = 2, /* a packet, like the next two */
	BLOCK_SIMPLE = 3,
	BLOCK_PACKET = 6,
	MAGIC = 0x1a2b3c4d,
	OPTION_FCS_LEN = 13,
	INTERFACE_BYTES = 8, /* before its options */
	MAX_BODY_BYTES = 4096,
};

struct block {
	bool is_swapped; /* the section is in the other byte order */
	uint32_t type;
	uint32_t n_body;              /* in the file */
	uint8_t body[MAX_BODY_BYTES]; /* its first bytes */
};

static uint16_t get16(const struct block *block, uint32_t at)
{
	uint16_t value;

	memcpy(&value, block->body + at, sizeof(value));
	return block->is_swapped ? __builtin_bswap16(value) : value;
}

/* False: the file ends or is damaged here. */
static bool read_block(FILE *file, struct block *block)
{
	uint32_t head[3], n_read;

	/* The body of a section begins with a word in its byte order. */
	if (fread(head, 1, sizeof(head), file) != sizeof(head))
		return false;
	if (head[0] == BLOCK_SECTION)
		block->is_swapped = head[2] == __builtin_bswap32(MAGIC);
	block->type = block->is_swapped ? __builtin_bswap32(head[0]) : head[0];
	block->n_body = block->is_swapped ? __builtin_bswap32(head[1]) :
					    head[1];
	if (block->n_body < 16 || block->n_body % 4 != 0)
		return false;
	block->n_body -= 12;
	memcpy(block->body, &head[2], 4);
	n_read = block->type != BLOCK_INTERFACE ? 4 :
		 block->n_body < MAX_BODY_BYTES ? block->n_body :
						  MAX_BODY_BYTES;
	if (fread(block->body + 4, 1, n_read - 4, file) != n_read - 4)
		return false;
	return fseeko(file, (off_t)block->n_body - n_read + 4, SEEK_CUR) == 0;
}

static uint32_t fcs_bytes_of(const struct block *block)
{
	const uint32_t end = block->n_body < MAX_BODY_BYTES ? block->n_body :
							      MAX_BODY_BYTES;
	uint32_t at = INTERFACE_BYTES;

	while (at + 4 < end) {
		if (get16(block, at) == OPTION_FCS_LEN &&
		    get16(block, at + 2) == 1)
			return block->body[at + 4];
		at += 4 + (get16(block, at + 2) + 3u) / 4 * 4;
	}
	return 0;
}

static void add_interface(const struct block *block, struct pcapng_facts *ret)
{
	const uint16_t link_type = get16(block, 0);
	const uint32_t fcs_bytes =
		block->n_body >= INTERFACE_BYTES ? fcs_bytes_of(block) : 0;

	if (ret->n_interfaces++ == 0) {
		ret->link_type = link_type;
		ret->fcs_bytes = fcs_bytes;
	}
	if (link_type != ret->link_type && !ret->has_other) {
		ret->has_other = true;
		ret->other_link_type = link_type;
	}
	ret->has_other_fcs |= fcs_bytes != ret->fcs_bytes;
}

bool mri_pcapng_read(int fd, bool is_whole, struct pcapng_facts *ret)
{
	FILE *file = mri_pcap_file(fd);
	struct block block = { .type = 0 };

	*ret = (struct pcapng_facts){ .link_type = 0 };
	if (file == NULL)
		return false;
	if (!read_block(file, &block) || block.type != BLOCK_SECTION) {
		fclose(file);
		return false;
	}
	while (read_block(file, &block)) {
		if (block.type == BLOCK_INTERFACE)
			add_interface(&block, ret);
		if (block.type != BLOCK_PACKET && block.type != BLOCK_SIMPLE &&
		    block.type != BLOCK_OBSOLETE)
			continue;
		ret->n_records++;
		if (!is_whole)
			break;
	}
	fclose(file);
	return true;
}

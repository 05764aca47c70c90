/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP over IPv4 with five bytes of payload. Its checksum field has the
 * pseudo-header's sum, 0a00 + 0001 + 0a00 + 0002 + 0011 + 000d = 1421; the
 * complete one is 1421 + 0007 + 0009 + 000d + 0102 + 0304 + 0500 = 1d44,
 * complemented, all computed by hand.
 */
#ifndef SUPPORT_UDP_PACKET_H
#define SUPPORT_UDP_PACKET_H

#include <stdint.h>

enum { UDP_FIELD = 14 + 20 + 6, UDP_SUM_HIGH = 0xe2, UDP_SUM_LOW = 0xbb };

static const uint8_t udp_packet[14 + 20 + 8 + 5] = {
	2, 0,  0, 0, 0, 1, 2,  0,  0,    0,    0,  2, 0x08, 0x00, 0x45, 0,
	0, 33, 0, 0, 0, 0, 64, 17, 0,    0,    10, 0, 0,    1,    10,   0,
	0, 2,  0, 7, 0, 9, 0,  13, 0x14, 0x21, 1,  2, 3,    4,    5,
};

#endif

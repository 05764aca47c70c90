/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of TCP. Sources: RFC 9293 3.1, RFC 6691. */
#include "tcp_option.h"

#include <arpa/inet.h>
#include <string.h>

uint8_t *nat_tcp_option(const struct mr_tcp *tcp, uint32_t n_bytes,
			uint8_t kind, uint8_t n_option)
{
	enum { END = 0, NOP = 1 };
	uint8_t *option = (uint8_t *)(uintptr_t)(tcp + 1);
	const uint8_t *end = (const uint8_t *)tcp + n_bytes;

	while (option < end && *option != END) {
		if (*option == NOP) {
			option++;
			continue;
		}
		if (end - option < 2 || option[1] < 2 ||
		    end - option < option[1])
			return NULL;
		if (*option == kind && option[1] == n_option)
			return option;
		option += option[1];
	}
	return NULL;
}

void nat_clamp_mss(uint16_t mss, struct mr_tcp *tcp, uint32_t n_bytes,
		   bool is_partial)
{
	enum { MSS = 2, MSS_BYTES = 4 };
	uint8_t *option = nat_tcp_option(tcp, n_bytes, MSS, MSS_BYTES);
	uint16_t before, after = htons(mss);

	if (option == NULL)
		return;
	memcpy(&before, option + 2, sizeof(before));
	if (ntohs(before) <= mss)
		return;
	memcpy(option + 2, &after, sizeof(after));
	if (is_partial)
		return; /* the device will compute it */
	/* In the middle of a word, its bytes are swapped. */
	if ((option - (uint8_t *)tcp) & 1) {
		before = (uint16_t)(before << 8 | before >> 8);
		after = (uint16_t)(after << 8 | after >> 8);
	}
	tcp->csum = mr_csum_fix(tcp->csum, mr_csum_delta16(before, after));
}

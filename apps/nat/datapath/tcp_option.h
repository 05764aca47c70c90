/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of TCP. */
#ifndef NAT_TCP_OPTION_H
#define NAT_TCP_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

/* The option of this kind and length in a header of n_bytes, or NULL. */
uint8_t *nat_tcp_option(const struct mr_tcp *tcp, uint32_t n_bytes,
			uint8_t kind, uint8_t n_option);
/* Lower the MSS option of a SYN. */
void nat_clamp_mss(uint16_t mss, struct mr_tcp *tcp, uint32_t n_bytes,
		   bool is_partial);

#endif

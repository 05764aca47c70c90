/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses and protocols in text form, for the configuration file and the
 * command line. They return the same as those of support/values.h.
 */
#ifndef NAT_VALUES_H
#define NAT_VALUES_H

#include <netinet/in.h>

#include "config.h"
#include "support/values.h"

bool value_addr(const char *text, uint32_t *ret, struct mr_reason *ret_why);

/* 10.0.0.0/8: without host bits. */
bool value_prefix(const char *text, struct nat_prefix *ret,
		  struct mr_reason *ret_why);

/* 10.0.0.1/24: a host address and its network. */
bool value_host(const char *text, uint32_t *ret_addr,
		struct nat_prefix *ret_net, struct mr_reason *ret_why);

/* 192.0.2.1, 192.0.2.1-192.0.2.9 or 192.0.2.0/28. */
bool value_range(const char *text, struct nat_range *ret,
		 struct mr_reason *ret_why);

/* 80 or 8000-8009. */
bool value_ports(const char *text, uint16_t *ret_first, uint16_t *ret_last,
		 struct mr_reason *ret_why);

/* 192.0.2.1:80 or 192.0.2.1:8000-8009. */
bool value_end(const char *text, uint32_t *ret_addr, uint16_t *ret_first,
	       uint16_t *ret_last, struct mr_reason *ret_why);

/* udp, tcp, icmp, or 1 to 255. */
bool value_protocol(const char *text, uint8_t *ret, struct mr_reason *ret_why);

/* An address, and ":PORT" unless that is 0; network order. */
struct nat_end_text {
	char text[INET_ADDRSTRLEN + 6];
};
struct nat_end_text nat_end_text(uint32_t addr, uint16_t port);
/* udp, tcp or icmp; NULL: it is shown as a number. */
const char *nat_proto_name(uint8_t proto);

/*
 * The inverse, for keys.c: *from is what the reader of the same name sets. ""
 * if there is no value.
 */
void write_addr(const void *from, char *ret_text, size_t n_bytes);
void write_prefix(const void *from, char *ret_text, size_t n_bytes);
void write_range(const void *from, char *ret_text, size_t n_bytes);
void write_protocol(const void *from, char *ret_text, size_t n_bytes);

bool value_mac(const char *text, uint8_t ret[6], struct mr_reason *ret_why);

#endif

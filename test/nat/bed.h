/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bed.c gives to bed.py, and to programs in C: bed_new(), settings,
 * bed_start(), frames, bed_free(). Addresses and ports are in host order.
 */
#ifndef NAT_BED_H
#define NAT_BED_H

#include <stdbool.h>
#include <stdint.h>

struct bed;

enum { BED_SHARED = 1 << 0 }; /* of bed_send(): the frame has another owner */
/* What bed_recv() knows besides the sides: frames for other workers. */
enum { BED_LOOP = 2, BED_OUTS };
enum { BED_SESSION_NUMBERS = 13, BED_EVENT_NUMBERS = 8 };

/* Defaults of the application; no addresses. */
struct bed *bed_new(void);
/* Pages that were not given back: 0. */
int64_t bed_free(struct bed *bed);

/* Before bed_start(). name: a number of struct nat_config; -1: no such. */
int bed_set(struct bed *bed, const char *name, uint32_t value);
void bed_address(struct bed *bed, uint32_t side, uint32_t addr,
		 uint32_t n_bits);
void bed_link(struct bed *bed, uint32_t side, uint32_t gateway, uint32_t vlan,
	      uint32_t mtu);
void bed_neighbour(struct bed *bed, uint32_t side, uint32_t addr,
		   const uint8_t *mac);
void bed_pool(struct bed *bed, uint32_t first, uint32_t last);
void bed_subscriber(struct bed *bed, uint32_t addr, uint32_t n_bits);
void bed_forward(struct bed *bed, uint32_t proto_mask, uint32_t outside_addr,
		 uint32_t first, uint32_t last, uint32_t inside_addr,
		 uint32_t inside_first);
void bed_one_to_one(struct bed *bed, uint32_t outside_addr,
		    uint32_t inside_addr);
void bed_exclude(struct bed *bed, uint32_t addr, uint32_t n_bits,
		 uint32_t proto, uint32_t first_port, uint32_t last_port);

struct nat_config;
int bed_read(const char *text, uint32_t n_workers,
	     struct nat_config *ret_config, char *why, uint32_t n_why);
/* Instead of all these: a configuration file. 0, or -1 and why. */
int bed_parse(struct bed *bed, const char *text, char *why, uint32_t n_why);
/* The i-th key of such a file, as "timeouts.udp"; false behind the last one. */
bool bed_key(uint32_t i, char *ret_name, uint32_t n_max);

/* 0, or -1 and why. */
int bed_start(struct bed *bed, char *why, uint32_t n_why);

/* Once: another configuration file. 0, or -1 and why: if it is the name of a
 * setting, that cannot change. */
int bed_reload(struct bed *bed, const char *text, char *why, uint32_t n_why);

/* flags: BED_SHARED, MR_FRAME_CSUM_*. Entries have n_first, n_rest, ... bytes.
 */
int bed_send(struct bed *bed, uint32_t side, const uint8_t *bytes,
	     uint32_t n_bytes, uint32_t flags, uint32_t n_first,
	     uint32_t n_rest);
int bed_shared_is(struct bed *bed, const uint8_t *bytes, uint32_t n_bytes);
/* The next frame that came out; its length, or 0. */
int bed_recv(struct bed *bed, uint32_t side, uint8_t *bytes, uint32_t n_max,
	     uint32_t *ret_flags);
void bed_advance_ms(struct bed *bed, uint32_t ms);

/* By the names of nat_reason_name(), and those in bed.c. -1: no such. */
int64_t bed_counter(const struct bed *bed, const char *name);
const char *bed_reason_name(uint32_t i);
/* 0: every frame has ended, once. */
int64_t bed_law(const struct bed *bed);
int64_t bed_pages_in_use(const struct bed *bed);
/* Rows of BED_SESSION_NUMBERS, of the live ones; how many. */
uint32_t bed_sessions(struct bed *bed, uint32_t *numbers, uint32_t n_max);
/* BED_EVENT_NUMBERS of what was logged; see bed.py. -1: no more. */
int bed_event(const struct bed *bed, uint32_t i, uint32_t *numbers);

#endif

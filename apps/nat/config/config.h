/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checked settings of a NAT, from the configuration file or the command
 * line. They never change; a reload creates new ones. Addresses and ports are
 * in host order unless marked (be).
 */
#ifndef NAT_CONFIG_H
#define NAT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "support/dataplane.h"

enum nat_side { NAT_INSIDE, NAT_OUTSIDE, NAT_SIDES };

/* Protocols with separate external ports; index of many arrays. */
enum nat_proto { NAT_UDP, NAT_TCP, NAT_ICMP, NAT_PROTOS };

/* RFC 4787 section 5: who may send to a mapping from outside. */
enum nat_filtering {
	NAT_FILTER_NONE,         /* endpoint-independent: anyone */
	NAT_FILTER_ADDRESS,      /* hosts that were sent to */
	NAT_FILTER_ADDRESS_PORT, /* hosts and ports that were sent to */
};

struct nat_prefix {
	uint32_t addr; /* host order; bits beyond the prefix are 0 */
	uint32_t mask;
};

struct nat_range {
	uint32_t first, last; /* host order, both included */
};

enum { NAT_MAX_ADDRS = 16, NAT_MAX_NEIGHBOURS = 64 };

struct nat_fixed_neighbour {
	uint32_t addr; /* host order */
	uint8_t mac[6];
};

/* One side: a port. */
struct nat_side_config {
	char spec[512];
	uint32_t n_addrs; /* own addresses; we send from the first */
	uint32_t addrs[NAT_MAX_ADDRS];         /* host order */
	struct nat_prefix nets[NAT_MAX_ADDRS]; /* on the link */
	uint32_t gateway;                      /* host order; 0: none */
	uint16_t vlan;                         /* 0: untagged */
	uint16_t mtu;                          /* 0: the port's */
	uint32_t n_neighbours;                 /* static ARP entries */
	struct nat_fixed_neighbour neighbours[NAT_MAX_NEIGHBOURS];
};

/* A port or range forwarded from outside; proto_mask: 1 << enum nat_proto. */
struct nat_port_forward {
	uint32_t outside_addr, inside_addr; /* host order */
	uint16_t outside_first, outside_last, inside_first;
	uint8_t proto_mask;
};

/* All protocols and ports of one address. */
struct nat_one_to_one {
	uint32_t outside_addr, inside_addr; /* host order */
};

/* Destinations that are not translated (RFC 6888 REQ-6). */
struct nat_exclude {
	struct nat_prefix to;
	uint8_t proto;                  /* IPPROTO_*; 0: any */
	uint16_t first_port, last_port; /* 0, 65535: any */
};

struct nat_timeouts {
	uint32_t udp_s;             /* 300; 4787 REQ-5 */
	uint32_t tcp_opening_s;     /* 240; 5382 REQ-5, 7857 section 2 */
	uint32_t tcp_open_s;        /* 7440 */
	uint32_t tcp_closing_s;     /* 240 */
	uint32_t tcp_reset_s;       /* 240 after an RST; 7857 section 2 */
	uint32_t tcp_unsolicited_s; /* 6: time to hold an unsolicited SYN */
	uint32_t icmp_s;            /* 60; 5508 REQ-2 */
	uint32_t other_s;           /* 300: address-only mappings */
	uint32_t fragment_s;        /* 2 */
	uint32_t hold_down_s; /* 120: before a port is reused; 6888 REQ-8 */
};

struct nat_port_config {
	uint16_t first, last;  /* 1024, 65535 */
	bool keeps_port;       /* try the inside port first */
	bool keeps_parity;     /* 4787 REQ-4 */
	bool keeps_class;      /* 0-1023 maps to 1-1023, if that is in an
				* external range; 4787 REQ-3a */
	uint16_t block;        /* ports per block, power of two; 0: none */
	uint16_t max_blocks;   /* per subscriber and protocol */
	bool is_deterministic; /* RFC 7422: block computed from the address */
};

struct nat_config {
	struct nat_side_config sides[NAT_SIDES];
	struct nat_range *pool; /* external addresses, host order */
	uint32_t n_pool;
	struct nat_prefix
		*subscribers; /* inside networks; others are spoofed */
	uint32_t n_subscribers;
	bool is_inside_subscribed; /* subscribers are the inside networks */
	struct nat_port_forward *forwards;
	uint32_t n_forwards;
	struct nat_one_to_one *one_to_ones;
	uint32_t n_one_to_ones;
	struct nat_exclude *excludes;
	uint32_t n_excludes;
	enum nat_filtering filtering[NAT_PROTOS];
	struct nat_timeouts timeouts;
	struct nat_port_config ports;
	uint32_t max_mappings;       /* of all workers */
	uint32_t max_sessions;       /* besides the first of each mapping */
	uint32_t max_mappings_per_subscriber; /* mappings; 0: no limit */
	uint32_t max_sessions_per_subscriber; /* 0: no limit */
	bool is_paired;                       /* 6888 REQ-2; true */
	bool hairpins;                        /* true */
	bool refreshes_inbound;               /* 4787 REQ-6a; false */
	bool passes_other_protocols;          /* address-only mappings; false */
	bool answers_ping;                    /* true */
	bool is_shared; /* the kernel gets what is for our addresses; false */
	bool fills_options;        /* Record Route, Timestamp; true */
	bool checks_embedded_sums; /* 5508 REQ-3a; false */
	uint16_t mss;              /* clamp; 0: none, 1: by the MTU */
	uint16_t max_fragments;    /* held out of order, per worker */
	char log_path[256];        /* JSON lines; "": none */
	bool logs_sessions;        /* else blocks and errors only */
	char state_path[256];      /* sessions saved and restored; "" none */
	uint32_t state_interval_s; /* 30: between snapshots */
	/* Classes of addresses, for all workers: nat_addrs_create(). */
	struct nat_addrs *addrs;
	struct nat_config *older;      /* app.c: one that a worker still uses */
	struct dataplane_config plane; /* without specs */
};

/* Entries per list: people write short ones. */
enum { NAT_MAX_ITEMS = 4096 };

struct objections; /* support/objections.h */

/* Sets the defaults (keys.c); everything else is empty. */
void nat_config_init(struct nat_config *config);

/* Number of workers: one unless more were requested, because several have to
 * hand frames over. */
static inline uint32_t nat_config_n_workers(const struct nat_config *config)
{
	const struct dataplane_config *plane = &config->plane;

	return plane->n_workers > 0 ? plane->n_workers :
	       plane->n_cores > 0   ? plane->n_cores :
				      1;
}

/* The same for two configurations: their tables of mappings and ports are laid
 * out, and age, alike. */
uint64_t nat_config_digest(const struct nat_config *config);

/* Frees the lists and addrs, not the struct. */
void nat_config_free(struct nat_config *config);

/* Whether a mapping, a forward or a one-to-one host may have that port of an
 * external address, both in host order. */
bool nat_config_has_port(const struct nat_config *config, uint32_t addr,
			 uint16_t port);

/*
 * Derive what was omitted: the external address is the first one outside,
 * subscribers are those on the inside links. 0, -ENOMEM.
 */
int nat_config_complete(struct nat_config *config);

/*
 * Whether a complete configuration is consistent, for n_workers: 0, or -EINVAL
 * with all objections.
 */
int nat_config_check(const struct nat_config *config, uint32_t n_workers,
		     struct objections *ret_objections);
/* ports_check.c: its part about ports; adds objections. */
int nat_config_check_ports(const struct nat_config *config, uint32_t n_workers,
			   struct objections *ret);

/* Line i of warnings about valid settings below an RFC's recommendation; false
 * after the last. */
bool nat_config_advice(const struct nat_config *config, uint32_t i,
		       struct mr_reason *ret_advice);

struct yaml_errors; /* support/yaml_keys.h */

/*
 * Read, complete and check a configuration for n_workers; 0: as many as the
 * configuration says. 0, or -EINVAL, -ENOMEM or the errno of opening it, with
 * errors that name file and line.
 * *ret_config is set on success only; nat_config_free() it. If bytes is NULL,
 * the file called name is read.
 */
int nat_settings_parse(const char *name, const char *bytes, size_t n_bytes,
		       uint32_t n_workers, struct nat_config *ret_config,
		       struct yaml_errors *ret_errors);

/* One more address of a side: 10.0.0.1/24. False, and why. */
bool nat_add_address(struct nat_side_config *side, const char *text,
		     struct mr_reason *ret_why);

/* Addresses of a range. */
static inline uint64_t nat_range_n(const struct nat_range *range)
{
	return (uint64_t)range->last - range->first + 1;
}

/* Addresses of the inside networks. */
static inline uint64_t nat_config_n_subscribers(const struct nat_config *config)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < config->n_subscribers; i++)
		n += (uint64_t)~config->subscribers[i].mask + 1;
	return n;
}

static inline bool nat_prefix_has(const struct nat_prefix *prefix,
				  uint32_t addr)
{
	return (addr & prefix->mask) == prefix->addr;
}

#endif

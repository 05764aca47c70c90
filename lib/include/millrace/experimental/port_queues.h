/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_PORT_QUEUES_H
#define MILLRACE_EXPERIMENTAL_PORT_QUEUES_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/port.h>

MR_BEGIN_DECLS

/**
 * @file
 * Which rx queue of a port a frame arrives at.
 *
 *     frame --> steering rule that matches --> its queue
 *           --> otherwise: hash --> table[hash % its entries] --> queue
 *
 * Both are settings as in <millrace/port_device.h>: closing the port undoes
 * them, and programs that share the device (xdp:) share them.
 */

/** Input of the hash for TCP and UDP; for other IP: the addresses. */
enum mr_rss_fields {
	MR_RSS_FIELDS_KEEP = 0,  /**< leave unchanged */
	MR_RSS_FIELDS_ADDRS = 1, /**< addresses: fragments go with the rest */
	MR_RSS_FIELDS_PORTS = 2, /**< addresses and ports */
};

/** What mr_port_set_rss() leaves unchanged. */
enum mr_rss_keep {
	MR_RSS_KEEP_KEY = 1u << 0,
	MR_RSS_KEEP_TABLE = 1u << 1,
};

/** Longest hash key of any device, in bytes. */
enum { MR_RSS_KEY_MAX = 64 };

/**
 * Receive-side scaling (RSS): a Toeplitz hash and its table. In all members
 * except size, 0 is the default: a symmetric key, all queues in turn.
 */
struct mr_rss_config {
	uint32_t size;        /**< sizeof(struct mr_rss_config) */
	uint32_t keep;        /**< enum mr_rss_keep; 0: nothing */
	uint32_t fields;      /**< enum mr_rss_fields */
	uint32_t n_key_bytes; /**< as long as the device's key */
	/** NULL: bytes 0x6d 0x5a, repeated, which give both directions of a
	 * connection the same hash. */
	const uint8_t *key;
	const uint32_t *table; /**< rx queues of the port */
	uint32_t n_entries;    /**< of @c table, which fills the device's by
				*   repetition; 0: the queues in turn */
	uint32_t reserved;
};

/** For drivers. @return byte @p i of the key. Thread: any. */
static inline uint8_t mr_rss_key_byte(const struct mr_rss_config *config,
				      uint32_t i)
{
	/* Woo and Park, "Scalable TCP Session Monitoring with Symmetric
	 * Receive-side Scaling", 2012. */
	return config->key != NULL ? config->key[i] : i % 2 ? 0x5a : 0x6d;
}

/** For drivers. @return the queue of entry @p i of the table. Thread: any. */
static inline uint32_t mr_rss_queue(const struct mr_rss_config *config,
				    uint32_t i, uint32_t n_queues)
{
	return config->n_entries == 0 ? i % n_queues :
					config->table[i % config->n_entries];
}

/**
 * Set how frames are distributed over the rx queues of @p port.
 *
 * @param port    an open port
 * @param config  copied
 *
 * @return 0, or with nothing changed
 *   -EINVAL  size is 0, an unknown value, an entry that is not an rx queue of
 *            the port, or a key or table whose length does not suit the device;
 *            the reason states the device's length
 *   -ENOTSUP the device has no RSS, or cannot change this part of it
 *   -EBUSY   xdp: another Millrace program has the interface
 *   -EPERM, -ENODEV, -EIO  as mr_port_set_promisc()
 *
 * Owner:  unchanged.
 * Thread: as mr_port_set_promisc(). While the device changes the table, frames
 *         of a flow may arrive at the old and the new queue.
 * Cost:   system calls, register writes or a command to the device.
 */
MR_API int mr_port_set_rss(struct mr_port *port,
			   const struct mr_rss_config *config,
			   struct mr_reason *reterr_reason);

/**
 * Frames of one kind and their queue. A member that is 0 matches anything; of
 * one with a mask, the bits that are 1 in the mask must be equal, and the
 * others are 0. Addresses are as on the wire and IPv4 uses the first 4 bytes;
 * other numbers are in host byte order.
 */
struct mr_steer_rule {
	uint32_t size;      /**< sizeof(struct mr_steer_rule) */
	uint32_t queue;     /**< rx queue of the port */
	uint16_t ethertype; /**< only with @c protocol 0 */
	uint8_t protocol;   /**< 6: TCP, 17: UDP; 0: any frame */
	uint8_t is_ipv6;    /**< 1: IPv6; only with @c protocol */
	uint8_t dst_mac[6]; /**< only with @c protocol 0 */
	uint16_t reserved;
	/* Only with @c protocol: */
	uint16_t src_port, src_port_mask;
	uint16_t dst_port, dst_port_mask;
	uint8_t src[16], src_mask[16];
	uint8_t dst[16], dst_mask[16];
};

/**
 * Add a rule that steers frames to a queue. It has priority over RSS. If two
 * rules match a frame, the device decides which one applies.
 *
 * @param      rule    copied
 * @param[out] ret_id  for mr_port_unsteer()
 *
 * @return 0, or with nothing changed
 *   -EINVAL  size is 0, an impossible combination, no such rx queue, or the
 *            device cannot match these members or masks
 *   -ENOSPC  the device has no room for another rule
 *   -ENOTSUP the device, or its driver, has no such rules
 *   -EBUSY, -EPERM, -ENODEV, -EIO  as mr_port_set_rss()
 *
 * Owner: the port, of the rule. Thread, Cost: as mr_port_set_rss().
 */
MR_API int mr_port_steer(struct mr_port *port, const struct mr_steer_rule *rule,
			 uint32_t *ret_id, struct mr_reason *reterr_reason);

/**
 * Remove a rule of mr_port_steer().
 *
 * @return 0, or -ENOENT: @p port has no such rule; and as mr_port_steer()
 *
 * Owner: unchanged. Thread, Cost: as mr_port_steer().
 */
MR_API int mr_port_unsteer(struct mr_port *port, uint32_t id,
			   struct mr_reason *reterr_reason);

MR_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_NETLINK_H
#define MILLRACE_EXPERIMENTAL_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>

MR_BEGIN_DECLS

/**
 * @file
 * For authors of drivers of kernel interfaces: requests over netlink.
 */

struct nlmsghdr;
struct rtattr;

/** Receives each message of an answer, without the end marker. */
typedef void mr_netlink_fn(void *opaque, const struct nlmsghdr *message);

/**
 * Send a request to the kernel over a new netlink socket; @p take may be NULL.
 *
 * @return 0, the kernel's error, -EAGAIN after 2 s without an answer, or -EIO
 *         or -EMSGSIZE for an answer that is malformed or too long
 *
 * Thread: any.
 */
MR_API int mr_netlink_ask(int protocol, const struct nlmsghdr *request,
			  mr_netlink_fn *take, void *opaque);

/**
 * Find the attribute @p type of a message whose family's header has @p n_header
 * bytes, and within it the nested attribute @p inner; 0: @p type itself.
 *
 * @return NULL if there is none. Owner: the message's. Thread: any.
 */
MR_API const struct rtattr *mr_netlink_attribute(const struct nlmsghdr *message,
						 size_t n_header, uint16_t type,
						 uint16_t inner);

MR_END_DECLS

#endif

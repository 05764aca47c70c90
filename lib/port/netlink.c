/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A netlink request to the kernel, and its reply.
 *
 * Source: netlink(7); linux/Documentation/userspace-api/netlink/intro.rst.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/driver.h>
#include <millrace/experimental/netlink.h>

enum {
	ANSWER_WAIT_S = 2,
	ANSWER_BYTES = 32768, /* the most in one part of a dump */
};

/* The status at the end of a reply: a negative errno, or 0. */
static int end_of(const struct nlmsghdr *request, const struct nlmsghdr *end)
{
	const struct nlmsgerr *error = NLMSG_DATA(end);

	if (end->nlmsg_len < NLMSG_LENGTH(sizeof(error->error)) ||
	    error->error > 0)
		return -EIO;
	/* An ACK that was not requested is not a reply. */
	if (end->nlmsg_type == NLMSG_ERROR && error->error == 0 &&
	    !(request->nlmsg_flags & NLM_F_ACK))
		return -EIO;
	return error->error;
}

/* Returns 1 if more parts follow, 0 at the end, or a negative errno. */
static int take_part(int fd, const struct nlmsghdr *request,
		     mr_netlink_fn *take, void *opaque)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	const struct nlmsghdr *message = (const struct nlmsghdr *)answer;
	ssize_t n = recv(fd, answer, sizeof(answer), MSG_TRUNC);

	if (n < 0)
		return -errno;
	if (n > (ssize_t)sizeof(answer))
		return -EMSGSIZE;
	if (!NLMSG_OK(message, n))
		return -EIO;
	for (; NLMSG_OK(message, n); message = NLMSG_NEXT(message, n)) {
		if (message->nlmsg_type == NLMSG_DONE ||
		    message->nlmsg_type == NLMSG_ERROR)
			return end_of(request, message);
		if (take != NULL)
			take(opaque, message);
		if (!((message->nlmsg_flags & NLM_F_MULTI) ||
		      (request->nlmsg_flags & NLM_F_ACK)))
			return 0;
	}
	return 1;
}

int mr_netlink_ask(int protocol, const struct nlmsghdr *request,
		   mr_netlink_fn *take, void *opaque)
{
	const struct timeval wait = { .tv_sec = ANSWER_WAIT_S };
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	int err = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
	    send(fd, request, request->nlmsg_len, 0) < 0)
		err = -errno;
	while (err == 1)
		err = take_part(fd, request, take, opaque);
	close(fd);
	return err;
}

static const struct rtattr *find_attribute(const void *first, size_t n_bytes,
					   uint16_t type)
{
	const struct rtattr *attribute = first;
	int n_left = (int)n_bytes;

	for (; RTA_OK(attribute, n_left);
	     attribute = RTA_NEXT(attribute, n_left))
		if ((attribute->rta_type & NLA_TYPE_MASK) == type)
			return attribute;
	return NULL;
}

const struct rtattr *mr_netlink_attribute(const struct nlmsghdr *message,
					  size_t n_header, uint16_t type,
					  uint16_t inner)
{
	const char *first =
		(const char *)NLMSG_DATA(message) + NLMSG_ALIGN(n_header);
	const char *end = (const char *)message + message->nlmsg_len;
	const struct rtattr *attribute;

	if (first > end)
		return NULL;
	attribute = find_attribute(first, (size_t)(end - first), type);
	if (attribute == NULL || inner == 0)
		return attribute;
	return find_attribute(RTA_DATA(attribute), RTA_PAYLOAD(attribute),
			      inner);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generic netlink family "netdev": facts about an interface, its queues and
 * NAPIs. A kernel that lacks the family or a command returns an error.
 *
 * Source: linux/Documentation/netlink/specs/netdev.yaml; genetlink.h. The
 * numbers are copied here for the reason that xdp_uapi.h gives.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "xdp.h"

enum {
	DEV_GET = 1, /* Linux 6.3 */
	DEV_IFINDEX = 1,
	DEV_ZC_MAX_SEGS = 4, /* 6.6 */
	QUEUE_GET = 10,      /* 6.8 */
	QUEUE_ID = 1,
	QUEUE_IFINDEX = 2,
	QUEUE_TYPE = 3,
	QUEUE_NAPI_ID = 4,
	NAPI_GET = 11, /* 6.8 */
	NAPI_SET = 14, /* 6.13 */
	NAPI_IFINDEX = 1,
	NAPI_ID = 2,
	NAPI_DEFER_HARD_IRQS = 5,
	NAPI_GRO_FLUSH_TIMEOUT = 6,

	REPLY_BYTES = 16384,
};

struct request {
	struct nlmsghdr header;
	struct genlmsghdr command;
	uint8_t attributes[64];
};

struct napis {
	uint32_t *ids;
	uint32_t n, n_max;
};

struct napi_setting {
	uint16_t attribute;
	uint64_t value;
};

/* struct nlattr has the layout of struct rtattr. */
typedef void answer_fn(const struct rtattr *first, int n_bytes, void *opaque);

static void begin(struct request *request, uint16_t family, uint8_t command)
{
	*request = (struct request){
		.header = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			    .nlmsg_type = family,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.command = { .cmd = command, .version = 1 },
	};
}

static void put(struct request *request, uint16_t type, const void *value,
		uint16_t n_bytes)
{
	const uint32_t at = NLMSG_ALIGN(request->header.nlmsg_len);
	struct rtattr *attribute = (void *)((uint8_t *)request + at);

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(n_bytes);
	memcpy(RTA_DATA(attribute), value, n_bytes);
	request->header.nlmsg_len = at + RTA_ALIGN(attribute->rta_len);
}

/* An integer of 4 or 8 bytes; unchanged if it is not there. */
static void get(const struct rtattr *attribute, int n_left, uint16_t type,
		uint64_t *value)
{
	for (; RTA_OK(attribute, n_left);
	     attribute = RTA_NEXT(attribute, n_left)) {
		const size_t n = RTA_PAYLOAD(attribute);

		if ((attribute->rta_type & NLA_TYPE_MASK) != type ||
		    n > sizeof(*value))
			continue;
		*value = 0; /* the machine is little-endian */
		memcpy(value, RTA_DATA(attribute), n);
	}
}

/* Send the request and call answer for each reply; 0 or -errno. */
static int ask(int fd, const struct request *request, answer_fn *answer,
	       void *opaque)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];

	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		const struct nlmsghdr *message = (const void *)reply;
		ssize_t n = recv(fd, reply, sizeof(reply), 0);

		if (n < 0)
			return -errno;
		for (; NLMSG_OK(message, n); message = NLMSG_NEXT(message, n)) {
			const struct nlmsgerr *error = NLMSG_DATA(message);
			const int n_bytes = (int)(message->nlmsg_len -
						  NLMSG_LENGTH(GENL_HDRLEN));

			/* The end of a dump has its error as well. */
			if (message->nlmsg_type == NLMSG_ERROR ||
			    message->nlmsg_type == NLMSG_DONE)
				return n_bytes >= 0 ? error->error : 0;
			if (answer != NULL && n_bytes > 0)
				answer((const void *)((const uint8_t *)error +
						      GENL_HDRLEN),
				       n_bytes, opaque);
		}
	}
}

static void take_family(const struct rtattr *first, int n_bytes, void *opaque)
{
	get(first, n_bytes, CTRL_ATTR_FAMILY_ID, opaque);
}

/* A socket, and a request of the family "netdev" for it; or -errno. */
static int open_request(struct request *request, uint8_t command)
{
	const int fd = mri_xdp_netlink_open(NETLINK_GENERIC, 0);
	uint64_t family = 0;
	int err;

	if (fd < 0)
		return fd;
	begin(request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	put(request, CTRL_ATTR_FAMILY_NAME, "netdev", sizeof("netdev"));
	err = ask(fd, request, take_family, &family);
	if (err < 0 || family == 0) {
		close(fd);
		return err < 0 ? err : -ENOENT;
	}
	begin(request, (uint16_t)family, command);
	return fd;
}

static void take_max_segs(const struct rtattr *first, int n_bytes, void *opaque)
{
	get(first, n_bytes, DEV_ZC_MAX_SEGS, opaque);
}

uint32_t mri_xdp_zc_max_segs(uint32_t ifindex)
{
	struct request request;
	uint64_t n = 1;
	const int fd = open_request(&request, DEV_GET);

	if (fd < 0)
		return 1;
	put(&request, DEV_IFINDEX, &ifindex, sizeof(ifindex));
	(void)ask(fd, &request, take_max_segs, &n);
	close(fd);
	return n < MR_MAX_SEGS ? (uint32_t)n : MR_MAX_SEGS;
}

static void take_napi(const struct rtattr *first, int n_bytes, void *opaque)
{
	struct napis *napis = opaque;
	uint64_t id = 0;

	get(first, n_bytes, NAPI_ID, &id);
	if (id != 0 && napis->n < napis->n_max)
		napis->ids[napis->n++] = (uint32_t)id;
}

int mri_xdp_napi_list(uint32_t ifindex, uint32_t *ret_ids, uint32_t n_max)
{
	struct napis napis = { .ids = ret_ids, .n_max = n_max };
	struct request request;
	const int fd = open_request(&request, NAPI_GET);
	int err;

	if (fd < 0)
		return fd;
	request.header.nlmsg_flags |= NLM_F_DUMP;
	put(&request, NAPI_IFINDEX, &ifindex, sizeof(ifindex));
	err = ask(fd, &request, take_napi, &napis);
	close(fd);
	return err < 0 ? err : (int)napis.n;
}

static void take_queue(const struct rtattr *first, int n_bytes, void *opaque)
{
	get(first, n_bytes, QUEUE_NAPI_ID, opaque);
}

uint32_t mri_xdp_queue_napi(uint32_t ifindex, uint32_t queue)
{
	const uint32_t rx = 0;
	struct request request;
	uint64_t id = 0;
	const int fd = open_request(&request, QUEUE_GET);

	if (fd < 0)
		return 0;
	put(&request, QUEUE_IFINDEX, &ifindex, sizeof(ifindex));
	put(&request, QUEUE_TYPE, &rx, sizeof(rx));
	put(&request, QUEUE_ID, &queue, sizeof(queue));
	(void)ask(fd, &request, take_queue, &id);
	close(fd);
	return (uint32_t)id;
}

static const uint16_t napi_attributes[XDP_N_SETTINGS] = {
	[XDP_SETTING_DEFER] = NAPI_DEFER_HARD_IRQS,
	[XDP_SETTING_FLUSH] = NAPI_GRO_FLUSH_TIMEOUT,
};

static void take_setting(const struct rtattr *first, int n_bytes, void *opaque)
{
	struct napi_setting *setting = opaque;

	get(first, n_bytes, setting->attribute, &setting->value);
}

int mri_xdp_napi_read(uint32_t id, enum xdp_setting setting,
		      uint64_t *ret_value)
{
	struct napi_setting s = { napi_attributes[setting], UINT64_MAX };
	struct request request;
	const int fd = open_request(&request, NAPI_GET);
	int err;

	if (fd < 0)
		return fd;
	put(&request, NAPI_ID, &id, sizeof(id));
	err = ask(fd, &request, take_setting, &s);
	close(fd);
	*ret_value = s.value;
	return err == 0 && s.value == UINT64_MAX ? -EOPNOTSUPP : err;
}

int mri_xdp_napi_write(uint32_t id, enum xdp_setting setting, uint64_t value)
{
	const uint32_t word = (uint32_t)value;
	struct request request;
	const int fd = open_request(&request, NAPI_SET);
	int err;

	if (fd < 0)
		return fd;
	put(&request, NAPI_ID, &id, sizeof(id));
	put(&request, napi_attributes[setting], &word, sizeof(word));
	err = ask(fd, &request, NULL, NULL);
	close(fd);
	return err;
}

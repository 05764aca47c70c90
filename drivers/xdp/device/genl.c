/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generic netlink family "netdev": facts about an interface, its queues and
 * NAPIs. A kernel that lacks the family or a command returns an error.
 *
 * Source: linux/Documentation/netlink/specs/netdev.yaml; genetlink.h. The
 * numbers are copied here, for the same reason as in uapi.h.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/experimental/netlink.h>

#include "device/netdev.h"
#include "device/settings.h"

enum {
	DEV_GET = 1, /* Linux 6.3 */
	DEV_IFINDEX = 1,
	DEV_XDP_FEATURES = 3,
	DEV_ZC_MAX_SEGS = 4, /* 6.6 */
	DEV_RX_METADATA = 5, /* 6.7 */
	DEV_TX_METADATA = 6, /* 6.8 */
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
};

struct request {
	struct nlmsghdr header;
	struct genlmsghdr command;
	uint8_t attributes[64];
};

/* Of a request of the family "netdev": each has 4 bytes. */
struct attribute {
	uint16_t type;
	uint32_t value;
};

struct napis {
	uint32_t *ids;
	uint32_t n;
};

struct answer {
	uint16_t attribute;
	uint64_t value;
};

static void begin_request(struct request *request, uint16_t family,
			  uint8_t command)
{
	*request = (struct request){
		.header = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			    .nlmsg_type = family,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.command = { .cmd = command, .version = 1 },
	};
}

static void put_attribute(struct request *request, uint16_t type,
			  const void *value, uint16_t n_bytes)
{
	const uint32_t at = NLMSG_ALIGN(request->header.nlmsg_len);
	struct rtattr *attribute = (void *)((uint8_t *)request + at);

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(n_bytes);
	memcpy(RTA_DATA(attribute), value, n_bytes);
	request->header.nlmsg_len = at + RTA_ALIGN(attribute->rta_len);
}

/* An integer of 4 or 8 bytes; unchanged if it is not there. */
static void get_number(const struct nlmsghdr *message, uint16_t type,
		       uint64_t *value)
{
	/* struct nlattr has the layout of struct rtattr. */
	const struct rtattr *attribute =
		mr_netlink_attribute(message, GENL_HDRLEN, type, 0);

	if (attribute == NULL || RTA_PAYLOAD(attribute) > sizeof(*value))
		return;
	*value = 0; /* the machine is little-endian */
	memcpy(value, RTA_DATA(attribute), RTA_PAYLOAD(attribute));
}

static void take_answer(void *opaque, const struct nlmsghdr *message)
{
	struct answer *answer = opaque;

	get_number(message, answer->attribute, &answer->value);
}

static int send_request(const struct request *request, mr_netlink_fn *take,
			void *opaque)
{
	return mr_netlink_ask(NETLINK_GENERIC, &request->header, take, opaque);
}

/* Ask the kernel about a family such as "netdev". */
static int ask_family(const char *name, mr_netlink_fn *take, void *opaque)
{
	struct request request;

	begin_request(&request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	put_attribute(&request, CTRL_ATTR_FAMILY_NAME, name,
		      (uint16_t)(strlen(name) + 1));
	return send_request(&request, take, opaque);
}

/* A request of that family; 0 or -errno. */
static int ask_netdev(uint8_t command, uint16_t flags,
		      const struct attribute *attributes, uint32_t n,
		      mr_netlink_fn *take, void *opaque)
{
	struct answer family = { CTRL_ATTR_FAMILY_ID, 0 };
	struct request request;
	const int err = ask_family("netdev", take_answer, &family);

	if (err < 0 || family.value == 0)
		return err < 0 ? err : -ENOENT;
	begin_request(&request, (uint16_t)family.value, command);
	request.header.nlmsg_flags |= flags;
	for (uint32_t i = 0; i < n; i++)
		put_attribute(&request, attributes[i].type,
			      &attributes[i].value,
			      sizeof(attributes[i].value));
	return send_request(&request, take, opaque);
}

/* An attribute of a device; *value stays if the kernel does not have it. */
static int read_device(uint32_t ifindex, uint16_t attribute, uint64_t *value)
{
	const struct attribute device = { DEV_IFINDEX, ifindex };
	struct answer answer = { attribute, *value };
	const int err =
		ask_netdev(DEV_GET, 0, &device, 1, take_answer, &answer);

	*value = answer.value;
	return err;
}

uint32_t mri_xdp_zc_max_segs(uint32_t ifindex)
{
	uint64_t n = 1;

	(void)read_device(ifindex, DEV_ZC_MAX_SEGS, &n);
	return n < MR_MAX_SEGS ? (uint32_t)n : MR_MAX_SEGS;
}

int mri_xdp_features(uint32_t ifindex, uint64_t *ret_features)
{
	return read_device(ifindex, DEV_XDP_FEATURES, ret_features);
}

uint64_t mri_xdp_rx_metadata(uint32_t ifindex)
{
	uint64_t features = 0;

	(void)read_device(ifindex, DEV_RX_METADATA, &features);
	return features;
}

int mri_xdp_tx_metadata(uint32_t ifindex, uint64_t *ret_features)
{
	*ret_features = UINT64_MAX;
	if (read_device(ifindex, DEV_TX_METADATA, ret_features) < 0 ||
	    *ret_features == UINT64_MAX)
		return -ENOENT;
	return 0;
}

struct group {
	const char *name;
	uint32_t id; /* 0: the family has no such group */
};

static void take_group(void *opaque, const struct nlmsghdr *message)
{
	struct group *wanted = opaque;
	const struct rtattr *groups = mr_netlink_attribute(
		message, GENL_HDRLEN, CTRL_ATTR_MCAST_GROUPS, 0);
	const struct rtattr *group;
	int n_left;

	if (groups == NULL)
		return;
	n_left = (int)RTA_PAYLOAD(groups);
	for (group = RTA_DATA(groups); RTA_OK(group, n_left);
	     group = RTA_NEXT(group, n_left)) {
		const struct rtattr *part = RTA_DATA(group);
		const char *name = "";
		uint32_t id = 0;

		for (int n = (int)RTA_PAYLOAD(group); RTA_OK(part, n);
		     part = RTA_NEXT(part, n)) {
			if (part->rta_type == CTRL_ATTR_MCAST_GRP_NAME)
				name = RTA_DATA(part);
			if (part->rta_type == CTRL_ATTR_MCAST_GRP_ID)
				memcpy(&id, RTA_DATA(part), sizeof(id));
		}
		if (strcmp(name, wanted->name) == 0)
			wanted->id = id;
	}
}

static int open_group(const char *family, const char *name)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	struct group group = { .name = name };
	int fd, err = ask_family(family, take_group, &group);

	if (err == 0 && group.id == 0)
		err = -ENOENT;
	if (err < 0)
		return err;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    NETLINK_GENERIC);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group.id,
		       sizeof(group.id)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int mri_xdp_features_open(void)
{
	return open_group("netdev", "mgmt");
}

int mri_xdp_channels_open(void)
{
	return open_group("ethtool", "monitor");
}

static void take_napi(void *opaque, const struct nlmsghdr *message)
{
	struct napis *napis = opaque;
	uint64_t id = 0;

	get_number(message, NAPI_ID, &id);
	if (id != 0 && napis->n < XDP_MAX_NAPIS)
		napis->ids[napis->n++] = (uint32_t)id;
}

int mri_xdp_napi_list(uint32_t ifindex, uint32_t ret_ids[XDP_MAX_NAPIS])
{
	const struct attribute device = { NAPI_IFINDEX, ifindex };
	struct napis napis = { .ids = ret_ids };
	const int err =
		ask_netdev(NAPI_GET, NLM_F_DUMP, &device, 1, take_napi, &napis);

	return err < 0 ? err : (int)napis.n;
}

uint32_t mri_xdp_queue_napi(uint32_t ifindex, uint32_t queue)
{
	const struct attribute attributes[] = {
		{ QUEUE_IFINDEX, ifindex },
		{ QUEUE_TYPE, 0 }, /* rx */
		{ QUEUE_ID, queue },
	};
	struct answer answer = { QUEUE_NAPI_ID, 0 };

	(void)ask_netdev(QUEUE_GET, 0, attributes, 3, take_answer, &answer);
	return (uint32_t)answer.value;
}

int mri_xdp_napi_setting(uint32_t id, enum xdp_setting setting, bool is_write,
			 uint64_t *value)
{
	const struct attribute attributes[] = {
		{ NAPI_ID, id },
		{ setting == XDP_SETTING_DEFER ? NAPI_DEFER_HARD_IRQS :
						 NAPI_GRO_FLUSH_TIMEOUT,
		  (uint32_t)*value },
	};
	struct answer answer = { attributes[1].type, UINT64_MAX };
	int err;

	if (is_write)
		return ask_netdev(NAPI_SET, 0, attributes, 2, NULL, NULL);
	err = ask_netdev(NAPI_GET, 0, attributes, 1, take_answer, &answer);
	*value = answer.value;
	return err == 0 && answer.value == UINT64_MAX ? -EOPNOTSUPP : err;
}

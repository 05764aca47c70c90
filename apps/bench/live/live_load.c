/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the program that sends live frames. */
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <bpf/libbpf.h>

#include "live/live.h"
#include "support/specs.h"

#include "live.skel.h" /* uses the structs of the headers above */

static int print_nothing(enum libbpf_print_level level, const char *format,
			 va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* Quantiles of the exponential distribution, with mean 1; the program has no
 * room for the last 4 bits of each. */
static void fill_gaps(__u32 *ret_gaps)
{
	double values[LIVE_GAPS], sum = 0;

	for (int i = 0; i < LIVE_GAPS; i++) {
		values[i] = -log((i + 0.5) / LIVE_GAPS);
		sum += values[i];
	}
	for (int i = 0; i < LIVE_GAPS; i++)
		ret_gaps[i] =
			(__u32)lround(values[i] / sum * LIVE_GAPS * (1 << 12))
			<< 4;
}

/* 0: not known, and then nothing is counted. */
static uint32_t current_netns(void)
{
	struct stat found;

	return stat("/proc/thread-self/ns/net", &found) == 0 ?
		       (uint32_t)found.st_ino :
		       0;
}

/* On success, *ret is destroyed and replaced. */
static int load_skeleton(const char *ifname, const struct live_shape *shape,
			 struct live_bpf **ret)
{
	struct live_bpf *skeleton = live_bpf__open();
	struct live_shape *own;
	int err;

	if (skeleton == NULL)
		return -errno;
	memcpy((void *)&skeleton->rodata->shape, shape, sizeof(*shape));
	own = (struct live_shape *)&skeleton->rodata->shape;
	own->ifindex = if_nametoindex(ifname);
	own->netns = current_netns();
	fill_gaps((__u32 *)skeleton->rodata->gaps);
	err = live_bpf__load(skeleton);
	if (err == 0)
		err = live_bpf__attach(skeleton);
	if (err < 0) {
		live_bpf__destroy(skeleton);
		return err;
	}
	live_bpf__destroy(*ret);
	*ret = skeleton;
	return 0;
}

int live_load(const char *spec, const struct live_shape *shape,
	      struct live_bpf **skeleton, struct mr_reason *why)
{
	const char *ifname = spec + strlen(live_place.prefix);
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	int err;

	if (if_nametoindex(ifname) == 0)
		return fail_with(why, -ENODEV,
				 "%.60s: no such network interface here", spec);
	/* For the whole process: we report failures ourselves. */
	libbpf_set_print(print_nothing);
	/* Kernels before 5.11 count maps here; failing to raise it does not
	 * matter. */
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	err = load_skeleton(ifname, shape, skeleton);
	if (err == 0)
		return 0;
	/* The verifier returns EINVAL or EACCES if a capability is missing,
	 * libbpf ESRCH if there is no BTF. */
	return fail_with(
		why, err == -EPERM ? -EPERM : -ENOTSUP,
		"%s: the kernel does not load the program for live "
		"frames (%s): it needs root, or CAP_BPF, CAP_PERFMON and "
		"CAP_NET_ADMIN, and a kernel with BTF",
		spec, mr_strerror(-err));
}

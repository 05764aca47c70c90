/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a device cannot be opened: one line with cause and cure.
 *
 * The kernel returns EBUSY or EPERM for many reasons; sysfs tells which one,
 * after the fact.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "pci/vfio.h"

enum { RINGS_KIB = 1024 }; /* of a NIC with many queues */

int mri_refuse_driver(const struct mr_pci_info *info,
		      struct mr_reason *reterr_reason)
{
	if (info->kernel_driver[0] == '\0')
		return mr_fail(reterr_reason, -ENODEV,
			       "%s has no kernel driver; bind it to vfio-pci: "
			       "mr-devices bind %s",
			       info->bdf, info->bdf);
	return mr_fail(reterr_reason, -ENODEV,
		       "%s is bound to the kernel driver %s%s%s; bind it to "
		       "vfio-pci: mr-devices bind %s",
		       info->bdf, info->kernel_driver,
		       info->netdev[0] != '\0' ? " as interface " : "",
		       info->netdev, info->bdf);
}

int mri_refuse_no_iommu(const struct mr_pci_info *info,
			struct mr_reason *reterr_reason)
{
	return mr_fail(reterr_reason, -ENOTSUP,
		       "%s has no IOMMU group: the IOMMU is missing or "
		       "disabled; enable it in the firmware (VT-d, AMD-Vi) "
		       "and, on Intel, boot with intel_iommu=on",
		       info->bdf);
}

/* Without an IOMMU, owning the node is not enough, not even for root. */
static int refuse_user(const struct mr_pci_info *info, const char *path,
		       bool is_without_iommu, int err,
		       struct mr_reason *reterr_reason)
{
	const unsigned int user = (unsigned int)geteuid();

	if (is_without_iommu)
		return mr_fail(reterr_reason, err,
			       "%s: user %u may not open %s: without an IOMMU, "
			       "this requires CAP_SYS_RAWIO",
			       info->bdf, user, path);
	if (user == 0)
		return mr_fail(reterr_reason, err,
			       "%s: root may not open %s: pass it to the "
			       "container (--device=%s)",
			       info->bdf, path, path);
	return mr_fail(reterr_reason, err,
		       "%s: user %u may not open %s: as root, chown %u %s",
		       info->bdf, user, path, user, path);
}

int mri_refuse_node(const struct mr_pci_info *info, const char *path, int err,
		    struct mr_reason *reterr_reason)
{
	char noiommu[64];

	snprintf(noiommu, sizeof(noiommu), "/dev/vfio/noiommu-%d",
		 info->iommu_group);
	if (err == -ENOENT && access(noiommu, F_OK) == 0)
		return mr_fail(
			reterr_reason, -ENOTSUP,
			"%s: vfio has it without an IOMMU, so it can access "
			"all memory; to allow that, add iommu=noiommu",
			info->bdf);
	if (err == -ENOENT || err == -ENODEV || err == -ENXIO)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: there is no %s: modprobe vfio-pci, or the "
			       "kernel does not support this value of iommu=",
			       info->bdf, path);
	if (err == -EACCES || err == -EPERM)
		return refuse_user(info, path, strcmp(path, noiommu) == 0, err,
				   reterr_reason);
	if (err == -EBUSY)
		return mr_fail(reterr_reason, err,
			       "%s is in use by another process, which has %s "
			       "open (see fuser -v %s)",
			       info->bdf, path, path);
	return mr_fail(reterr_reason, -EIO, "%s: cannot open %s: %s", info->bdf,
		       path, mr_strerror(-err));
}

/* The members that keep the group from being used, "" if none seems to. */
static void list_members(const struct mr_ctx *ctx,
			 const struct mr_pci_info *info, char *ret, size_t n)
{
	struct mr_pci_info other;
	char path[MRI_PATH_BYTES];
	struct dirent **names;
	int n_names;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "%s/kernel/iommu_groups/%d/devices",
		 ctx->config.sysfs, info->iommu_group);
	n_names = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n_names; i++) {
		const size_t n_used = strlen(ret);

		other = (struct mr_pci_info){ .size = sizeof(other) };
		if (mri_sysfs_info(ctx, names[i]->d_name, &other, NULL) == 0 &&
		    strcmp(other.bdf, info->bdf) != 0 &&
		    mr_pci_use(ctx, &other) == MR_PCI_USE_KERNEL)
			snprintf(ret + n_used, n - n_used, "%s%s (%s)",
				 n_used > 0 ? ", " : "", other.bdf,
				 other.kernel_driver);
		free(names[i]);
	}
	if (n_names >= 0)
		free(names);
}

int mri_refuse_group(const struct mr_ctx *ctx, const struct mr_pci_info *info,
		     struct mr_reason *reterr_reason)
{
	char members[200];

	list_members(ctx, info, members, sizeof(members));
	if (members[0] == '\0')
		return mr_fail(reterr_reason, -EBUSY,
			       "%s: another process or a kernel driver uses "
			       "its IOMMU group %d",
			       info->bdf, info->iommu_group);
	return mr_fail(
		reterr_reason, -EBUSY,
		"%s: its IOMMU group %d has other functions with kernel "
		"drivers, %s; bind network devices as well (mr-devices bind), "
		"and unbind others from their drivers (driver/unbind in sysfs)",
		info->bdf, info->iommu_group, members);
}

int mri_refuse_call(const struct mr_pci_info *info, const char *call, int err,
		    struct mr_reason *reterr_reason)
{
	if (err == -EBUSY)
		return mr_fail(reterr_reason, err,
			       "%s is in use by another process, or just being "
			       "released (%s: %s)",
			       info->bdf, call, mr_strerror(-err));
	if (err == -EPERM || err == -EACCES)
		return mr_fail(reterr_reason, err,
			       "%s: the kernel does not allow %s: %s",
			       info->bdf, call, mr_strerror(-err));
	if (err == -ENODEV)
		return mr_fail(reterr_reason, err,
			       "%s is gone, or not bound to vfio (%s: %s)",
			       info->bdf, call, mr_strerror(-err));
	return mr_fail(reterr_reason, -EIO, "%s: %s failed: %s", info->bdf,
		       call, mr_strerror(-err));
}

/* Bytes that the process has locked, as the kernel counts them for vfio. */
static uint64_t read_locked(const char *line_name)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t n_kib = 0;
	char line[128];

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, line_name, strlen(line_name)) == 0)
			n_kib = strtoull(line + strlen(line_name), NULL, 10);
	(void)fclose(file);
	return n_kib << 10;
}

/*
 * The required limit: what others of the process have locked, the whole region,
 * even if this was its first segment, and room for future rings, so that
 * following the advice does not lead to the next refusal.
 */
static int refuse_limit(const struct mri_vfio *vfio, uint64_t n_bytes,
			const struct rlimit *limit,
			struct mr_reason *reterr_reason)
{
	const uint64_t n_locked = read_locked(vfio->way->locked);
	const uint64_t n_ours = __atomic_load_n(
		&vfio->container->n_mapped_bytes, __ATOMIC_RELAXED);
	uint64_t n_wanted = n_ours + n_bytes;

	if (n_wanted < vfio->n_region_bytes)
		n_wanted = vfio->n_region_bytes;
	if (n_locked > n_ours)
		n_wanted += n_locked - n_ours;
	return mr_fail(reterr_reason, -ENOMEM,
		       "%s: the device needs %llu KiB of locked memory and up "
		       "to %d more for its rings, but the limit is %llu KiB; "
		       "raise it (ulimit -l %llu), or grant CAP_IPC_LOCK",
		       vfio->info->bdf, (unsigned long long)(n_wanted >> 10),
		       RINGS_KIB, (unsigned long long)(limit->rlim_cur >> 10),
		       (unsigned long long)(n_wanted >> 10) + RINGS_KIB);
}

int mri_refuse_map(const struct mri_vfio *vfio, uint64_t n_bytes, int err,
		   struct mr_reason *reterr_reason)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		return refuse_limit(vfio, n_bytes, &limit, reterr_reason);
	if (err == -ENOSPC)
		return mr_fail(reterr_reason, err,
			       "%s: vfio has no room for another mapping "
			       "(vfio_iommu_type1: dma_entry_limit)",
			       vfio->info->bdf);
	if (vfio->way == &mri_vfio_noiommu)
		return mr_fail(
			reterr_reason, err == -EPERM ? -EPERM : -ENOTSUP,
			err == -EPERM ?
				"%s: without an IOMMU, physical addresses are "
				"needed, which requires CAP_SYS_ADMIN" :
				"%s: without an IOMMU, the region must be "
				"physically contiguous: a single huge page of "
				"1 GiB",
			vfio->info->bdf);
	return mr_fail(reterr_reason, err == -ENOMEM ? -ENOMEM : -EIO,
		       "%s: cannot map %llu KiB for the device: %s",
		       vfio->info->bdf, (unsigned long long)(n_bytes >> 10),
		       mr_strerror(-err));
}

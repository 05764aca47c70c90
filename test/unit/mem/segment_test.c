/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/mem/segment.c, and of the ladder in region.c that calls it.
 *
 * The linker hands the library's system calls to the functions below
 * (-Wl,--wrap), so that each rung can fail here whatever the machine has.
 */
#include "support/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include <millrace/driver_mem.h>

#include "mem/mem.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

/* What the next calls do, and what they were asked. */
static struct {
	bool no_memfd_1g, no_memfd_2m; /* ENOENT: no such huge pages */
	bool small_instead; /* give 4 KiB pages where huge ones are asked */
	int fail_advice;    /* madvise() of this advice fails with ENOMEM */
	int fail_advice_errno;
	bool fail_truncate;
	bool all_cloexec;
	uint32_t n_memfds;
} calls;

int __real_memfd_create(const char *name, unsigned int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);
int __real_madvise(void *at, size_t n_bytes, int advice);
int __wrap_madvise(void *at, size_t n_bytes, int advice);
int __real_ftruncate64(int fd, off_t n_bytes);
int __wrap_ftruncate64(int fd, off_t n_bytes);

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	const unsigned int log2_bytes = flags >> 26;

	calls.n_memfds++;
	calls.all_cloexec &= (flags & MFD_CLOEXEC) != 0;
	if ((calls.no_memfd_1g && log2_bytes == 30) ||
	    (calls.no_memfd_2m && log2_bytes == 21)) {
		errno = ENOENT;
		return -1;
	}
	if (calls.small_instead)
		flags &= MFD_CLOEXEC | MFD_ALLOW_SEALING;
	return __real_memfd_create(name, flags);
}

int __wrap_madvise(void *at, size_t n_bytes, int advice)
{
	if (calls.fail_advice != 0 && advice == calls.fail_advice) {
		errno = calls.fail_advice_errno;
		return -1;
	}
	return __real_madvise(at, n_bytes, advice);
}

int __wrap_ftruncate64(int fd, off_t n_bytes)
{
	if (calls.fail_truncate) {
		errno = ENOSPC;
		return -1;
	}
	return __real_ftruncate64(fd, n_bytes);
}

static struct {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_region *region;
} f;

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	memset(&calls, 0, sizeof(calls));
	calls.all_cloexec = true;
	f.ctx = test_ctx(&f.allocator);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mr_region_destroy(f.region, NULL);
	mr_ctx_destroy(f.ctx);
	assert_int_equal(f.allocator.n_out, 0);
	return 0;
}

static void make_region(enum mr_os_pages os_pages,
			uint32_t numa_node_plus_1)
{
	const struct mr_region_config config = {
		.size = sizeof(config),
		.max_bytes = GIB(1),
		.os_pages = os_pages,
		.numa_node_plus_1 = numa_node_plus_1,
		.name = "unit-segment",
	};

	assert_int_equal(mr_region_create(f.ctx, &config, &f.region, NULL), 0);
}

static int add_segment(uint64_t n_bytes, struct mr_segment_info *ret_info,
		       struct mr_reason *why)
{
	const struct mri_segment_wish wish = { .addr = MRI_ADDR_ANY,
					       .n_bytes = n_bytes };
	struct mr_segment_info info;
	const int err = mri_region_add(f.region, &wish, &info, why);

	for (uint32_t i = 0; err == 0; i++) {
		assert_int_equal(mr_region_segment(f.region, i, ret_info), 0);
		if (ret_info->addr == info.addr)
			break;
	}
	return err;
}

/* A line of /proc/self/smaps of the mapping at an address; 0: not found. */
static int smaps_line(const void *at, const char *begin, char *line, int n)
{
	char key[32];
	FILE *file = fopen("/proc/self/smaps", "re");
	bool is_there = false;
	int found = 0;

	assert_non_null(file);
	snprintf(key, sizeof(key), "%lx-", (unsigned long)at);
	while (!found && fgets(line, n, file) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0)
			is_there = true;
		found = is_there && (begin == NULL ||
				     strncmp(line, begin, strlen(begin)) == 0);
	}
	fclose(file);
	return found;
}

/* Mappings of the segments that this test makes. */
static uint32_t n_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];
	uint32_t n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		n += strstr(line, "memfd:unit-segment") != NULL;
	fclose(file);
	return n;
}

static uint32_t n_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

TEST_WITH(setup, teardown, best_page_size_wastes_less_than_half)
{
	static const struct {
		uint64_t n_bytes;
		enum mr_os_pages wanted, best;
	} cases[] = {
		{ 1, MR_OS_PAGES_AUTO, MR_OS_PAGES_4K },
		{ MIB(1), MR_OS_PAGES_AUTO, MR_OS_PAGES_4K },
		{ MIB(1) + 1, MR_OS_PAGES_AUTO, MR_OS_PAGES_2M },
		{ MIB(512), MR_OS_PAGES_AUTO, MR_OS_PAGES_2M },
		{ MIB(512) + 1, MR_OS_PAGES_AUTO, MR_OS_PAGES_1G },
		{ GIB(3), MR_OS_PAGES_AUTO, MR_OS_PAGES_1G },
		{ 1, MR_OS_PAGES_1G, MR_OS_PAGES_1G },
		{ GIB(3), MR_OS_PAGES_4K, MR_OS_PAGES_4K },
		{ GIB(3), MR_OS_PAGES_THP, MR_OS_PAGES_THP },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			mri_segment_best(cases[i].n_bytes, cases[i].wanted),
			cases[i].best);
}

TEST_WITH(setup, teardown, page_size_falls_back_with_a_reason)
{
	struct mr_segment_info info;

	make_region(MR_OS_PAGES_1G, 0);
	calls.no_memfd_1g = calls.no_memfd_2m = true;
	assert_int_equal(add_segment(MIB(3), &info, NULL), 0);
	assert_int_equal(info.os_page_bytes, 4096);
	assert_string_equal(info.why, "no 1 GiB huge pages: No such file or "
				      "directory");
	assert_int_equal(calls.n_memfds, 3);
	assert_non_null(strstr(f.allocator.last_line, info.why)); /* logged */

	calls.fail_advice = MADV_HUGEPAGE; /* no transparent ones either */
	calls.fail_advice_errno = EINVAL;
	assert_int_equal(add_segment(MIB(3), &info, NULL), 0);
	assert_int_equal(info.os_page_bytes, 4096);
	assert_int_equal(info.n_bytes, MIB(3)); /* rounded to 64 KiB only */
}

TEST_WITH(setup, teardown, segment_of_huge_pages_counts_as_huge)
{
	struct mr_region_stats stats = { .size = sizeof(stats) };
	struct mr_segment_info info;

	make_region(MR_OS_PAGES_AUTO, 0);
	calls.small_instead = true; /* this machine may have none */
	assert_int_equal(add_segment(MIB(2), &info, NULL), 0);
	assert_int_equal(info.os_page_bytes, MIB(2));
	assert_string_equal(info.why, "");
	mr_region_stats(f.region, &stats);
	assert_int_equal(stats.n_huge_bytes, MIB(2));
}

/* 600 MiB must not become 1 GiB for a huge page that was not to be had. */
TEST_WITH(setup, teardown, fallback_does_not_keep_the_rounding)
{
	struct mr_segment_info info;

	make_region(MR_OS_PAGES_1G, 0);
	calls.no_memfd_1g = calls.no_memfd_2m = true;
	assert_int_equal(add_segment(MIB(3), &info, NULL), 0);
	assert_int_equal(info.n_bytes, MIB(4)); /* transparent ones: 2 MiB */
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), MIB(4));
}

/* A gap that is too short for 1 GiB pages may do for smaller ones. */
TEST_WITH(setup, teardown, a_page_size_without_a_gap_is_not_tried)
{
	struct mr_segment_info info;

	make_region(MR_OS_PAGES_1G, 0);
	calls.small_instead = calls.no_memfd_1g = calls.no_memfd_2m = true;
	assert_int_equal(add_segment(MIB(2), &info, NULL), 0);
	calls.no_memfd_2m = calls.no_memfd_1g = false;
	calls.n_memfds = 0;
	assert_int_equal(add_segment(MIB(4), &info, NULL), 0);
	assert_int_equal(info.addr, MIB(2));
	assert_int_equal(info.os_page_bytes, MIB(2));
	assert_int_equal(calls.n_memfds, 1); /* 1 GiB: not even tried */
	assert_string_equal(info.why,
			    "no 1 GiB huge pages: no gap in the region "
			    "(mr_region_config.max_bytes)");
}

TEST_WITH(setup, teardown, transparent_huge_pages_are_not_promised)
{
	struct mr_segment_info info;

	make_region(MR_OS_PAGES_THP, 0);
	assert_int_equal(add_segment(MIB(2), &info, NULL), 0);
	assert_int_equal(info.os_page_bytes, 4096);
	assert_non_null(strstr(info.why, "transparent huge pages"));
}

TEST_WITH(setup, teardown, without_memory_the_range_stays_reserved)
{
	static const int hints[] = { 23 /* MADV_POPULATE_WRITE */,
				     MADV_DONTFORK };
	struct mr_segment_info info;
	struct mr_reason why = { "" };
	const uint32_t n_fds_before = n_fds();

	make_region(MR_OS_PAGES_4K, 0);
	for (size_t i = 0; i < 2; i++) {
		calls.fail_advice = hints[i];
		calls.fail_advice_errno = ENOMEM;
		assert_int_equal(add_segment(KIB(64), &info, &why), -ENOMEM);
		assert_reason_has(&why, "cannot get 64 KiB");
		assert_int_equal(n_mappings(), 0);
	}
	calls.fail_advice = 0;
	calls.fail_truncate = true;
	assert_int_equal(add_segment(KIB(64), &info, &why), -ENOMEM);
	assert_int_equal(n_fds(), n_fds_before);
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), 0);
	assert_int_equal(n_mappings(), 0);
}

/* Before Linux 5.14 pages are touched one by one. */
TEST_WITH(setup, teardown, old_kernel_touches_pages_itself)
{
	struct mr_segment_info info;
	char line[512];

	make_region(MR_OS_PAGES_4K, 0);
	calls.fail_advice = 23; /* MADV_POPULATE_WRITE */
	calls.fail_advice_errno = EINVAL;
	assert_int_equal(add_segment(KIB(128), &info, NULL), 0);
	assert_int_equal(
		smaps_line(f.region->base, "Rss:", line, sizeof(line)), 1);
	assert_int_equal(strtoul(line + 4, NULL, 10), 128);
}

TEST_WITH(setup, teardown, mapping_is_dontfork_and_the_fd_is_sealed)
{
	const uint32_t n_fds_before = n_fds();
	struct mr_segment_info info;
	char line[512];

	make_region(MR_OS_PAGES_4K, 0);
	assert_int_equal(add_segment(KIB(64), &info, NULL), 0);
	assert_true(calls.all_cloexec && calls.n_memfds == 1);
	assert_int_equal(n_fds(), n_fds_before + 1);
	assert_int_equal(lseek(info.fd, 0, SEEK_END), KIB(64));
	assert_int_equal(ftruncate(info.fd, 0), -1);
	assert_int_equal(ftruncate(info.fd, KIB(128)), -1);
	assert_int_equal(smaps_line(f.region->base, NULL, line, sizeof(line)),
			 1);
	assert_non_null(strstr(line, " rw-s "));
	assert_non_null(strstr(line, "memfd:unit-segment"));
	assert_int_equal(
		smaps_line(f.region->base, "VmFlags:", line, sizeof(line)), 1);
	assert_non_null(strstr(line, " dc")); /* do not copy on fork */
	assert_int_equal(
		smaps_line(f.region->base, "Rss:", line, sizeof(line)), 1);
	assert_int_equal(strtoul(line + 4, NULL, 10), 64); /* all touched */
}

TEST_WITH(setup, teardown, removed_segment_gives_its_memory_back)
{
	struct mr_segment_info info;

	make_region(MR_OS_PAGES_4K, 0);
	assert_int_equal(add_segment(KIB(64), &info, NULL), 0);
	assert_int_equal(n_mappings(), 1);
	assert_int_equal(mri_region_remove_segment(f.region, 0, NULL), 0);
	assert_int_equal(n_mappings(), 0);
}

TEST_WITH(setup, teardown, memory_is_bound_to_its_numa_node)
{
	struct mr_segment_info info;
	struct mr_reason why = { "" };

	make_region(MR_OS_PAGES_4K, 1);
	if (add_segment(KIB(64), &info, &why) < 0) {
		print_message("mbind() on node 0: %s\n", why.text);
		skip(); /* a kernel without NUMA */
	}
	assert_int_equal(info.numa_node, 0);
	assert_int_equal(mr_region_destroy(f.region, NULL), 0);
	make_region(MR_OS_PAGES_4K, 256); /* node 255: hardly anywhere */
	assert_int_equal(add_segment(KIB(64), &info, &why), -ENOMEM);
	assert_reason_has(&why, "NUMA node 255");
}

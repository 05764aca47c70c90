/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dpdk: driver's DMA maps, on devices that have none: DPDK's calls for them
 * are ours here, since the program comes before its libraries.
 *
 *     memory_test TEST
 *
 * net_null1 and net_null2 have maps of their own, net_null8 and net_null9 those
 * of vfio, in common, and all others none, which is said as DPDK says it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_memory.h>

#include <millrace/experimental/page.h>
#include <millrace/experimental/pci_info.h>

#include "fixture.h"
#include "support/limit.h"

/* ---- what DPDK would keep ---- */

struct map {
	const char *owner;
	const uint8_t *addr;
	uint64_t iova;
	size_t n_bytes;
};

static const char vfio[] = "vfio", own_1[] = "1", own_2[] = "2";

static struct map maps[N_PAGES + 64];
static uint32_t n_maps;
static uint32_t n_wrong; /* mapped twice, or unmapped and not there */
static int n_until_failure = -1;
static bool is_physical;
static uint64_t physical_offset;

static const char *owner_of(const struct rte_device *device)
{
	const char *name = rte_dev_name(device);

	if (strcmp(name, "net_null8") == 0 || strcmp(name, "net_null9") == 0)
		return vfio;
	if (strcmp(name, "net_null1") == 0)
		return own_1;
	return strcmp(name, "net_null2") == 0 ? own_2 : NULL;
}

static uint32_t find_map(const struct map *wanted)
{
	uint32_t i = 0;

	while (i < n_maps && memcmp(&maps[i], wanted, sizeof(*wanted)) != 0)
		i++;
	return i;
}

int rte_dev_dma_map(struct rte_device *device, void *addr, uint64_t iova,
		    size_t n_bytes)
{
	const struct map map = { owner_of(device), addr, iova, n_bytes };

	if (map.owner == NULL) {
		rte_errno = ENOTSUP;
		return -1;
	}
	if (n_until_failure >= 0 && n_until_failure-- == 0)
		return -1; /* and rte_errno is left as it was */
	n_wrong += find_map(&map) < n_maps;
	assert_true(n_maps < RTE_DIM(maps));
	maps[n_maps++] = map;
	return 0;
}

int rte_dev_dma_unmap(struct rte_device *device, void *addr, uint64_t iova,
		      size_t n_bytes)
{
	const struct map map = { owner_of(device), addr, iova, n_bytes };
	const uint32_t i = find_map(&map);

	if (i == n_maps) {
		n_wrong++;
		return -1;
	}
	maps[i] = maps[--n_maps];
	return 0;
}

/* A segment is mapped in pieces where addresses are physical. */
enum rte_iova_mode rte_eal_iova_mode(void)
{
	return is_physical ? RTE_IOVA_PA : RTE_IOVA_VA;
}

rte_iova_t rte_mem_virt2iova(const void *addr)
{
	return (rte_iova_t)(uintptr_t)addr + physical_offset;
}

/* A device is looked for, and memory comes meanwhile, on another thread. */
static bool is_probing; /* atomic */
static uint32_t n_meanwhile;
static bool grows_meanwhile;
static pthread_t grower;
static pid_t grower_tid; /* atomic */

static void *grow_memory(void *opaque)
{
	int *ret_err = opaque;

	__atomic_store_n(&grower_tid, gettid(), __ATOMIC_SEQ_CST);
	*ret_err = mr_pool_grow(pool, 2048, NULL);
	return NULL;
}

/* Whether it sleeps, waiting for its turn, or has ended. */
static bool grower_waits(void)
{
	const pid_t tid = __atomic_load_n(&grower_tid, __ATOMIC_SEQ_CST);
	char path[64], state = '\0';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return tid != 0;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '\0'; /* it ends */
	fclose(file);
	return state == 'S';
}

/* Says something that is no reason for what fails later. */
int rte_dev_probe(const char *devargs)
{
	static int (*theirs)(const char *);
	static int grow_err;
	int err;

	if (theirs == NULL)
		*(void **)&theirs = dlsym(RTLD_NEXT, "rte_dev_probe");
	__atomic_store_n(&is_probing, true, __ATOMIC_SEQ_CST);
	if (grows_meanwhile) {
		assert_int_equal(
			pthread_create(&grower, NULL, grow_memory, &grow_err),
			0);
		for (uint32_t ms = 0; !grower_waits(); ms++) {
			assert_true(ms < test_limit_ms(10000));
			usleep(1000);
		}
	}
	err = theirs(devargs);
	rte_log(RTE_LOG_NOTICE, RTE_LOGTYPE_EAL, "EAL: looked for it\n");
	__atomic_store_n(&is_probing, false, __ATOMIC_SEQ_CST);
	return err;
}

int rte_extmem_register(void *addr, size_t n_bytes, rte_iova_t iovas[],
			unsigned int n_pages, size_t page_bytes)
{
	static int (*theirs)(void *, size_t, rte_iova_t[], unsigned int,
			     size_t);

	if (theirs == NULL)
		*(void **)&theirs = dlsym(RTLD_NEXT, "rte_extmem_register");
	n_meanwhile += __atomic_load_n(&is_probing, __ATOMIC_SEQ_CST);
	return theirs(addr, n_bytes, iovas, n_pages, page_bytes);
}

/* Those of vfio are on PCI, net_null7 on another bus with such a driver. */
const struct rte_bus *rte_dev_bus(const struct rte_device *device)
{
	static const struct rte_bus *(*theirs)(const struct rte_device *);

	if (owner_of(device) == vfio)
		return rte_bus_find_by_name("pci");
	if (theirs == NULL)
		*(void **)&theirs = dlsym(RTLD_NEXT, "rte_dev_bus");
	return theirs(device);
}

/* In place of the library's: the kernel's driver of these devices. */
int mr_pci_info(struct mr_ctx *context, const char *bdf,
		struct mr_pci_info *info, struct mr_reason *reason)
{
	(void)context;
	(void)reason;
	if (strcmp(bdf, "net_null7") != 0 && strcmp(bdf, "net_null8") != 0 &&
	    strcmp(bdf, "net_null9") != 0)
		return -ENODEV;
	snprintf(info->kernel_driver, sizeof(info->kernel_driver), "vfio-pci");
	return 0;
}

static uint32_t n_of(const char *owner)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_maps; i++)
		n += maps[i].owner == owner;
	return n;
}

static uint32_t n_segments(void)
{
	struct mr_segment_info info;
	uint32_t n = 0;

	while (mr_region_segment(mr_pool_region(pool), n, &info) == 0)
		n++;
	return n;
}

static void assert_none_is_left(void)
{
	assert_int_equal(n_maps, 0);
	assert_int_equal(n_wrong, 0);
}

/* ---- tests ---- */

/* Whichever other ports are left, and however often the device is opened. */
TEST(maps_go_with_the_devices_last_port)
{
	struct mr_port *null = open_port("dpdk:net_null0");
	struct mr_port *two = open_port("dpdk:net_null2"), *one;
	const uint32_t n = n_segments();

	assert_true(n > 0);
	for (int round = 0; round < 3; round++) {
		one = open_port("dpdk:net_null1");
		assert_int_equal(n_of(own_1), n);
		mr_port_close(one);
		assert_int_equal(n_of(own_1), 0);
		assert_int_equal(n_of(own_2), n);
	}
	mr_port_close(two);
	assert_none_is_left();
	mr_port_close(null);
}

/* What one of them unmaps, the others had no more: the last one does it. */
TEST(devices_of_vfio_have_one_map)
{
	struct mr_port *null = open_port("dpdk:net_null0");
	struct mr_port *eight = open_port("dpdk:net_null8"), *nine;

	for (int round = 0; round < 3; round++) {
		nine = open_port("dpdk:net_null9");
		assert_int_equal(n_of(vfio), n_segments());
		mr_port_close(eight);
		assert_int_equal(n_of(vfio), n_segments());
		eight = nine;
		nine = open_port("dpdk:net_null8");
		mr_port_close(eight);
		eight = nine;
	}
	mr_port_close(eight);
	assert_none_is_left();
	mr_port_close(null);
}

/* It has none, and nothing is said of those that have. */
TEST(driver_of_another_bus_is_not_theirs)
{
	struct mr_port *seven = open_port("dpdk:net_null7"), *eight;

	eight = open_port("dpdk:net_null8");
	assert_int_equal(n_of(vfio), n_segments());
	mr_port_close(eight);
	assert_none_is_left();
	mr_port_close(seven);
}

/* No piece is left of a map that failed, and the next open maps all. */
TEST(failed_map_is_undone)
{
	struct mr_port *null = open_port("dpdk:net_null0"), *port;
	struct mr_reason why;

	is_physical = true;
	n_until_failure = 2;
	assert_int_equal(try_open("dpdk:net_null1", &port, &why), -EIO);
	assert_non_null(strstr(why.text, "cannot map the pool's memory: "
					 "Input/output error"));
	assert_int_equal(n_until_failure, -1);
	assert_none_is_left();
	is_physical = false;
	port = open_port("dpdk:net_null1");
	assert_int_equal(n_of(own_1), n_segments());
	mr_port_close(port);
	assert_none_is_left();
	mr_port_close(null);
}

/* For all devices or for none, before a page of it is given out. */
TEST(later_segment_is_mapped_for_all_or_none)
{
	struct mr_port *ports[] = { open_port("dpdk:net_null1,ring=64"),
				    open_port("dpdk:net_null8,ring=64"),
				    open_port("dpdk:net_null9,ring=64"),
				    open_port("dpdk:net_null2,ring=64") };
	const uint32_t n = n_segments();

	for (int k = 0; k < 3; k++) {
		n_until_failure = k;
		assert_true(mr_pool_grow(pool, 2048, NULL) < 0);
		assert_int_equal(n_segments(), n);
		assert_int_equal(n_maps, 3 * n);
	}
	assert_int_equal(mr_pool_grow(pool, 2048, NULL), 0);
	assert_int_equal(n_segments(), n + 1);
	assert_int_equal(n_maps, 3 * (n + 1));
	for (size_t i = 0; i < RTE_DIM(ports); i++)
		mr_port_close(ports[i]);
	assert_none_is_left();
}

/* DPDK's lock of its memory is not to be asked for while it reads that. */
TEST(segment_waits_for_a_device_that_is_probed)
{
	struct mr_port *null = open_port("dpdk:net_null0"), *port;
	const uint32_t n = n_segments();

	grows_meanwhile = true;
	port = open_port("dpdk:net_null1");
	grows_meanwhile = false;
	pthread_join(grower, NULL);
	assert_int_equal(n_meanwhile, 0);
	assert_int_equal(n_segments(), n + 1);
	assert_int_equal(n_of(own_1), n + 1);
	mr_port_close(port);
	mr_port_close(null);
	assert_none_is_left();
}

/* ---- where a device finds a page ---- */

enum { N_SHARED = 2048 };

static struct mr_port *open_in(struct mr_pool *in, const char *spec)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = in };
	struct mr_port *port = NULL;
	struct mr_reason why;

	if (mr_port_open(ctx, spec, &config, &port, &why) < 0)
		fail_msg("%s: %s", spec, why.text);
	return port;
}

/* The view that was made last. */
static void keep_view(struct rte_mempool *mempool, void *ret_mempool)
{
	if (strncmp(mempool->name, "millrace_pages", 14) == 0)
		*(struct rte_mempool **)ret_mempool = mempool;
}

/* Of pages behind end, with this offset, and of those before, with none. */
static void assert_offsets(const uint8_t *end, uint64_t offset)
{
	static void *mbufs[N_SHARED + BURST];
	struct rte_mempool *mempool = NULL;
	uint32_t n_behind = 0;

	rte_mempool_walk(keep_view, &mempool);
	assert_non_null(mempool);
	assert_int_equal(rte_mempool_get_bulk(mempool, mbufs, RTE_DIM(mbufs)),
			 0);
	for (size_t i = 0; i < RTE_DIM(mbufs); i++) {
		const struct rte_mbuf *mbuf = mbufs[i];
		const bool is_behind = (const uint8_t *)mbuf->buf_addr >= end;

		n_behind += is_behind;
		assert_int_equal(rte_mbuf_iova_get(mbuf),
				 (uintptr_t)mbuf->buf_addr +
					 (is_behind ? offset : 0));
	}
	assert_true(n_behind >= BURST);
	rte_mempool_put_bulk(mempool, mbufs, RTE_DIM(mbufs));
}

/* Two pools of a region, and a third port that refuses a segment: the next one
 * at its address is other memory. */
TEST(refused_segment_leaves_no_address)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = N_SHARED };
	struct mr_segment_info info;
	struct mr_region *region;
	struct mr_pool *pools[2];
	struct mr_port *ports[3];
	const uint8_t *end = NULL;

	mr_port_close(open_port("dpdk:net_null0"));
	assert_int_equal(mr_region_create(ctx, NULL, &region, NULL), 0);
	config.region = region;
	for (int i = 0; i < 2; i++) {
		/* The second one grows, right behind what is there. */
		config.max_pages = i == 0 ? N_SHARED : 4 * N_SHARED;
		assert_int_equal(mr_pool_create(ctx, &config, &pools[i], NULL),
				 0);
	}
	for (uint32_t i = 0; mr_region_segment(region, i, &info) == 0; i++)
		end = (uint8_t *)mr_region_base(region) + info.addr +
		      info.n_bytes;
	is_physical = true;
	ports[0] = open_in(pools[0], "dpdk:net_null3,ring=64");
	ports[1] = open_in(pools[1], "dpdk:net_null4,ring=64");
	ports[2] = open_in(pools[0], "dpdk:net_null1,ring=64");
	n_until_failure = 0;
	assert_true(mr_pool_grow(pools[1], N_SHARED, NULL) < 0);
	assert_int_equal(n_until_failure, -1);
	physical_offset = UINT64_C(1) << 40;
	assert_int_equal(mr_pool_grow(pools[1], N_SHARED, NULL), 0);
	assert_offsets(end, physical_offset);
	for (int i = 0; i < 3; i++)
		mr_port_close(ports[i]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(mr_pool_destroy(pools[i], NULL), 0);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

/* ---- memory of the headers ---- */

/* A region of 8 GiB, for whose pages there are 512 MiB of headers. */
static struct mr_pool *make_large(struct mr_region **ret_region)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(8) << 30,
	};
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = N_PAGES,
					 .max_pages = MAX_PAGES };
	struct mr_pool *large;

	/* EAL's own memory is not looked at. */
	mr_port_close(open_port("dpdk:net_null0"));
	assert_int_equal(
		mr_region_create(ctx, &region_config, ret_region, NULL), 0);
	config.region = *ret_region;
	assert_int_equal(mr_pool_create(ctx, &config, &large, NULL), 0);
	return large;
}

static int open_on(struct mr_pool *large, struct mr_port **ret_port,
		   struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = large };

	return mr_port_open(ctx, "dpdk:net_null0", &config, ret_port, why);
}

static void end_large(struct mr_pool *large, struct mr_region *region)
{
	assert_int_equal(mr_pool_destroy(large, NULL), 0);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

/* Of the process: all of its addresses, and those with memory. */
static void read_sizes(uint64_t *ret_n_mib, uint64_t *ret_n_resident_mib)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long n, n_resident;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &n, &n_resident), 2);
	fclose(file);
	*ret_n_mib = n / 256;
	*ret_n_resident_mib = n_resident / 256;
}

/* Or a limit that only shows at the first mapping behind mlockall(). */
static bool may_lock(void)
{
	struct rlimit limit;

	return geteuid() == 0 || (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
				  limit.rlim_cur == RLIM_INFINITY);
}

/* All that is mapped from now on gets memory at once. */
TEST(locked_process_has_headers_for_what_is_there)
{
	struct mr_region *region;
	struct mr_pool *large = make_large(&region);
	uint64_t n_mib, before_mib, after_mib;
	struct mr_port *port;
	struct mr_reason why;

	read_sizes(&n_mib, &before_mib);
	if (!may_lock() || mlockall(MCL_FUTURE) < 0) {
		end_large(large, region);
		skip();
	}
	if (open_on(large, &port, &why) < 0)
		fail_msg("%s", why.text);
	read_sizes(&n_mib, &after_mib);
	assert_true(after_mib < before_mib + 64);
	/* Headers for pages that come later come with them. */
	assert_int_equal(mr_pool_grow(large, 2048, NULL), 0);
	read_sizes(&n_mib, &after_mib);
	assert_true(after_mib < before_mib + 64);
	munlockall();
	mr_port_close(port);
	end_large(large, region);
}

TEST(no_addresses_for_headers_is_a_reason)
{
	struct rlimit limit, low;
	struct mr_region *region;
	struct mr_pool *large = make_large(&region);
	uint64_t n_mib, n_resident_mib;
	struct mr_port *port;
	struct mr_reason why;
	int err;

	read_sizes(&n_mib, &n_resident_mib);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	low = limit;
	low.rlim_cur = (n_mib + 256) << 20;
	assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
	err = open_on(large, &port, &why);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(err, -ENOMEM);
	assert_non_null(strstr(why.text, "a region of 8192 MiB, 512 MiB"));
	assert_int_equal(open_on(large, &port, &why), 0);
	mr_port_close(port);
	end_large(large, region);
}

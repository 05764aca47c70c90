/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/region.c: one function per promise in <millrace/region.h>;
 * and of tenant.c, by way of pools. */
#include <sys/socket.h>
#include <unistd.h>

#include "support/unit.h"

#include <millrace/driver_mem.h>
#include <millrace/pool.h>

#include "base/parcel.h"
#include "mem/mem.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

static struct {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_region *region; /* of 1 GiB, on small OS pages */
} f;

static int setup(void **state)
{
	const struct mr_region_config config = { .size = sizeof(config),
						 .max_bytes = 1,
						 .os_pages = MR_OS_PAGES_4K };

	(void)state;
	memset(&f, 0, sizeof(f));
	f.ctx = test_ctx(&f.allocator);
	assert_int_equal(mr_region_create(f.ctx, &config, &f.region, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(mr_region_destroy(f.region, NULL), 0);
	mr_ctx_destroy(f.ctx);
	assert_int_equal(f.allocator.n_out, 0);
	return 0;
}

/* Where it fits. */
static int add_segment(uint64_t n_bytes, uint64_t *ret_addr,
		       struct mr_reason *why)
{
	const struct mri_segment_wish wish = { .addr = MRI_ADDR_ANY,
					       .n_bytes = n_bytes };
	struct mr_segment_info info;
	const int err = mri_region_add(f.region, &wish, &info, why);

	if (err == 0)
		*ret_addr = info.addr;
	return err;
}

static uint64_t add(uint64_t n_bytes)
{
	uint64_t addr = UINT64_MAX;

	assert_int_equal(add_segment(n_bytes, &addr, NULL), 0);
	return addr;
}

TEST_WITH(setup, teardown, wrong_config_is_refused_with_a_reason)
{
	static const struct {
		struct mr_region_config config;
		const char *words;
	} cases[] = {
		{ { .size = 0 }, "mr_region_config.size is 0" },
		{ { .size = sizeof(struct mr_region_config) + 8 }, "at most" },
		{ { .size = sizeof(struct mr_region_config),
		    .os_pages = (enum mr_os_pages)5 },
		  "os_pages" },
		{ { .size = sizeof(struct mr_region_config),
		    .os_pages = (enum mr_os_pages) - 1 },
		  "os_pages" },
		{ { .size = sizeof(struct mr_region_config),
		    .max_bytes = (UINT64_C(1) << 46) + 1 },
		  "64 TiB" },
		{ { .size = sizeof(struct mr_region_config),
		    .numa_node_plus_1 = 257 },
		  "no NUMA node 256" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_region *region = (struct mr_region *)1;
		struct mr_reason why = { "" };

		assert_int_equal(mr_region_create(f.ctx, &cases[i].config,
						  &region, &why),
				 -EINVAL);
		assert_reason_has(&why, cases[i].words);
		assert_ptr_equal(region, (struct mr_region *)1);
	}
}

TEST_WITH(setup, teardown, shorter_config_is_completed_with_defaults)
{
	const struct mr_region_config old = { .size = 8,
					      .os_pages = MR_OS_PAGES_4K,
					      .max_bytes = UINT64_MAX };
	struct mr_region_stats stats = { .size = sizeof(stats) };
	struct mr_region *region;

	assert_int_equal(mr_region_create(f.ctx, &old, &region, NULL), 0);
	assert_int_equal(mr_region_stats(region, &stats), 0);
	assert_int_equal(stats.max_bytes, GIB(64));
	assert_int_equal(mr_region_destroy(region, NULL), 0);
	assert_int_equal(mr_region_destroy(NULL, NULL), 0);
}

TEST_WITH(setup, teardown, no_memory_is_enomem_and_leaves_nothing)
{
	const int32_t n_out = f.allocator.n_out;
	struct mr_region *region = NULL;
	struct mr_reason why = { "" };

	f.allocator.fail_at = f.allocator.n_calls + 1;
	assert_int_equal(mr_region_create(f.ctx, NULL, &region, &why), -ENOMEM);
	assert_reason_has(&why, "no memory for a region");
	assert_null(region);
	assert_int_equal(f.allocator.n_out, n_out);
}

/* 128 TiB of addresses are all that a process has on x86-64. */
TEST_WITH(setup, teardown, addresses_used_up_is_enomem)
{
	const struct mr_region_config config = { .size = sizeof(config),
						 .max_bytes = UINT64_C(1)
							      << 46 };
	struct mr_region *regions[4];
	struct mr_reason why = { "" };
	const int32_t n_out = f.allocator.n_out;
	int n = 0, err = 0;

	while (n < 4 && err == 0) {
		err = mr_region_create(f.ctx, &config, &regions[n], &why);
		n += err == 0;
	}
	if (err == 0 && n == 4)
		skip(); /* more addresses than this test knows of */
	assert_int_equal(err, -ENOMEM);
	assert_reason_has(&why, "cannot reserve 65536 GiB");
	while (n > 0)
		mr_region_destroy(regions[--n], NULL);
	assert_int_equal(f.allocator.n_out, n_out);
}

TEST_WITH(setup, teardown, segments_take_the_lowest_gap)
{
	assert_int_equal(add(KIB(64)), 0);
	assert_int_equal(add(KIB(128)), KIB(64));
	assert_int_equal(add(1), KIB(192)); /* rounded up to 64 KiB */
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), KIB(256));

	assert_int_equal(mri_region_remove_segment(f.region, KIB(64), NULL), 0);
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), KIB(64));
	assert_int_equal(add(KIB(192)), KIB(256)); /* does not fit the gap */
	assert_int_equal(add(KIB(64)), KIB(64));   /* does */
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), KIB(128));
	assert_int_equal(add(KIB(64)), KIB(128)); /* the rest of it */
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), KIB(448));
	assert_int_equal(mri_region_remove_segment(f.region, 0, NULL), 0);
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), 0);
}

TEST_WITH(setup, teardown, segments_are_described_in_order_of_address)
{
	struct mr_segment_info info;
	struct mr_reason why = { "" };

	add(KIB(64));
	add(KIB(64));
	add(KIB(128));
	mri_region_remove_segment(f.region, KIB(64), NULL);
	add(KIB(64));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(mr_region_segment(f.region, i, &info), 0);
		assert_int_equal(info.addr, i * KIB(64));
		assert_int_equal(info.n_bytes, i < 2 ? KIB(64) : KIB(128));
		assert_int_equal(info.os_page_bytes, 4096);
		assert_int_equal(info.numa_node, -1);
		assert_int_equal(info.n_pins, 0);
		assert_string_equal(info.why, ""); /* asked for small pages */
	}
	assert_int_equal(mr_region_segment(f.region, 3, &info), -ENOENT);
	assert_int_equal(mri_region_remove_segment(f.region, 4096, &why),
			 -ENOENT);
	assert_reason_has(&why, "no segment at 0x1000");
}

TEST_WITH(setup, teardown, base_is_aligned_and_stays)
{
	uint8_t *base = mr_region_base(f.region);
	uint64_t addr;

	assert_int_equal((uintptr_t)base % GIB(1), 0);
	add(KIB(64));
	addr = add(KIB(64));
	base[addr] = 0x42;
	base[addr + KIB(64) - 1] = 0x43;
	mri_region_remove_segment(f.region, 0, NULL);
	add(KIB(64));
	assert_ptr_equal(mr_region_base(f.region), base);
	assert_int_equal(base[addr], 0x42);
	assert_int_equal(base[0], 0); /* new memory is zeroed */
}

TEST_WITH(setup, teardown, statistics_add_up)
{
	struct mr_region_stats stats = { .size = sizeof(stats) };

	add(KIB(64));
	add(KIB(128));
	assert_int_equal(mr_region_stats(f.region, &stats), 0);
	assert_int_equal(stats.size, sizeof(stats));
	assert_int_equal(stats.n_segments, 2);
	assert_int_equal(stats.n_bytes, KIB(192));
	assert_int_equal(stats.n_huge_bytes, 0);
	assert_int_equal(stats.max_bytes, GIB(1));
	stats = (struct mr_region_stats){ .size = 8, .n_bytes = 77 };
	assert_int_equal(mr_region_stats(f.region, &stats), 0);
	assert_int_equal(stats.n_segments, 2);
	assert_int_equal(stats.n_bytes, 77); /* behind size: left alone */
	stats.size = 0;
	assert_int_equal(mr_region_stats(f.region, &stats), -EINVAL);
}

TEST_WITH(setup, teardown, range_used_up_is_enomem)
{
	struct mr_reason why = { "" };
	uint64_t addr = 77;

	assert_int_equal(add_segment(GIB(1) + 1, &addr, &why), -ENOMEM);
	assert_reason_has(&why, "no room for 1048576 KiB more in a region of "
				"1024 MiB");
	assert_int_equal(addr, 77);
}

/* Nobody else's segments come into a reservation; its owner's do. */
TEST_WITH(setup, teardown, a_reservation_is_kept_for_its_owner)
{
	struct mri_segment_wish wish = { .n_bytes = 1 };
	struct mr_segment_info info, before;
	struct mr_reason why = { "" };
	uint64_t addr, more;

	assert_int_equal(add(KIB(64)), 0);
	assert_int_equal(mri_region_reserve(f.region, KIB(200), 0, false, &addr,
					    &why),
			 0);
	assert_int_equal(addr, KIB(64));
	assert_int_equal(add(KIB(64)), KIB(64 + 256));
	assert_int_equal(mri_region_remove_segment(f.region, 0, NULL), 0);
	assert_int_equal(add(KIB(128)), KIB(64 + 256 + 64));
	assert_int_equal(add(KIB(64)), 0);
	/* Its own, from the beginning or not, and not past its end. */
	wish.reserved_addr = addr;
	wish.addr = addr + KIB(64);
	assert_int_equal(mri_region_add(f.region, &wish, &info, &why), 0);
	assert_int_equal(info.addr, KIB(128));
	assert_true(mr_region_is_backed(f.region, KIB(128), KIB(64)));
	assert_false(mr_region_is_backed(f.region, KIB(64), 1));
	assert_false(mr_region_is_backed(f.region, KIB(192), 1));
	assert_int_equal(mr_region_n_contiguous_bytes(f.region), KIB(64));
	wish.addr = addr + KIB(128);
	wish.n_bytes = KIB(129);
	assert_int_equal(mri_region_add(f.region, &wish, &info, &why), -ENOMEM);
	wish.addr = addr + KIB(129);
	wish.n_bytes = 1;
	assert_int_equal(mri_region_add(f.region, &wish, &info, &why), -ENOMEM);
	wish.addr = MIB(512); /* in no reservation */
	assert_int_equal(mri_region_add(f.region, &wish, &info, &why), -ENOMEM);
	/* Segments stand in order, however they came. */
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(mr_region_segment(f.region, i - 1, &before),
				 0);
		assert_int_equal(mr_region_segment(f.region, i, &info), 0);
		assert_true(before.addr < info.addr);
	}
	/* Aligned; too large; released. */
	assert_int_equal(mri_region_reserve(f.region, KIB(64), MIB(2), false,
					    &more, &why),
			 0);
	assert_int_equal(more, MIB(2));
	assert_int_equal(mri_region_reserve(f.region, GIB(1), 0, false, &more,
					    &why),
			 -ENOMEM);
	assert_reason_has(&why, "no room for");
	mri_region_release(f.region, addr);
	assert_int_equal(add(KIB(64)), addr);
}

TEST_WITH(setup, teardown, too_many_reservations_are_enomem)
{
	struct mr_reason why = { "" };
	uint64_t addr;

	for (uint32_t i = 0; i < MRI_MAX_TENANTS; i++)
		assert_int_equal(mri_region_reserve(f.region, 1, 0, false,
						    &addr, NULL),
				 0);
	assert_int_equal(mri_region_reserve(f.region, 1, 0, false, &addr,
					    &why),
			 -ENOMEM);
	assert_reason_has(&why, "16 pools");
	mri_region_release(f.region, 0);
	assert_int_equal(mri_region_reserve(f.region, 1, 0, false, &addr,
					    NULL),
			 0);
	assert_int_equal(addr, 0);
}

TEST_WITH(setup, teardown, full_table_of_segments_is_enomem)
{
	struct mr_reason why = { "" };
	uint64_t addr;

	for (uint32_t i = 0; i < MRI_MAX_SEGMENTS; i++)
		add(1);
	assert_int_equal(add_segment(1, &addr, &why), -ENOMEM);
	assert_reason_has(&why, "64 segments");
	assert_int_equal(mri_region_remove_segment(f.region, KIB(64), NULL), 0);
	assert_int_equal(add(1), KIB(64));
}

TEST_WITH(setup, teardown, registered_segment_is_pinned)
{
	struct mr_segment_info info;
	struct mr_reason why = { "" };

	add(KIB(64));
	add(KIB(64));
	assert_int_equal(mr_region_pin(f.region, "xdp:a", KIB(64)), 0);
	assert_int_equal(mr_region_pin(f.region, "xdp:b", KIB(128)), 0);
	mr_region_segment(f.region, 0, &info);
	assert_int_equal(info.n_pins, 2);
	mr_region_segment(f.region, 1, &info);
	assert_int_equal(info.n_pins, 1);

	assert_int_equal(mri_region_remove_segment(f.region, 0, &why), -EBUSY);
	assert_reason_has(&why, "xdp:a");
	assert_int_equal(mri_region_remove_segment(f.region, KIB(64), &why),
			 -EBUSY);
	assert_reason_has(&why, "xdp:b");
	assert_int_equal(mr_region_destroy(f.region, &why), -EBUSY);
	assert_reason_has(&why, "xdp:a");

	mr_region_unpin(f.region, "xdp:b", KIB(64)); /* no such pin */
	assert_int_equal(mri_region_remove_segment(f.region, KIB(64), NULL),
			 -EBUSY);
	mr_region_unpin(f.region, "xdp:b", KIB(128));
	assert_int_equal(mri_region_remove_segment(f.region, KIB(64), NULL), 0);
	assert_int_equal(mri_region_remove_segment(f.region, 0, NULL), -EBUSY);
	mr_region_unpin(f.region, "xdp:a", KIB(64));
	assert_int_equal(mri_region_remove_segment(f.region, 0, NULL), 0);
}

/* Two queues of one port pin twice, and unpin twice. */
TEST_WITH(setup, teardown, a_segment_is_released_by_its_holders_last_unpin)
{
	char name[200];

	add(KIB(64));
	memset(name, 'n', sizeof(name) - 1); /* longer than what is kept */
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(mr_region_pin(f.region, name, KIB(64)), 0);
	assert_int_equal(mr_region_pin(f.region, name, KIB(64)), 0);
	mr_region_unpin(f.region, name, KIB(64));
	assert_int_equal(mri_region_remove_segment(f.region, 0, NULL), -EBUSY);
	mr_region_unpin(f.region, name, KIB(64));
	assert_int_equal(mri_region_remove_segment(f.region, 0, NULL), 0);
}

TEST_WITH(setup, teardown, a_segment_has_room_for_64_pins)
{
	for (int i = 0; i < MRI_MAX_PINS; i++)
		assert_int_equal(mr_region_pin(f.region, "p", KIB(64)), 0);
	assert_int_equal(mr_region_pin(f.region, "p", KIB(64)), -ENOSPC);
	for (int i = 0; i < MRI_MAX_PINS; i++)
		mr_region_unpin(f.region, "p", KIB(64));
	assert_int_equal(mr_region_pin(f.region, "p", KIB(64)), 0);
	mr_region_unpin(f.region, "p", KIB(64));
}

TEST_WITH(setup, teardown, region_with_a_pool_is_busy)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 16,
					       .region = f.region };
	struct mr_reason why = { "" };
	struct mr_pool *pool;

	assert_int_equal(mr_pool_create(f.ctx, &config, &pool, NULL), 0);
	assert_int_equal(mr_region_destroy(f.region, &why), -EBUSY);
	assert_reason_has(&why, "pool");
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
}

/* Take over f.region; `file` stands in for its first segment, unless -1. */
static int take_with(int file)
{
	struct mr_parcel *parcel = mri_parcel_create(f.ctx);
	struct mr_region *region;
	int fds[2], err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	mr_parcel_put_fd(parcel, file < 0 ? "other" : "segment/0", file);
	mri_region_put(f.region, parcel);
	assert_int_equal(mri_parcel_send(parcel, fds[0], NULL), 0);
	mri_parcel_destroy(parcel);
	assert_int_equal(mri_parcel_receive(f.ctx, fds[1], 1000, &parcel, NULL),
			 0);
	err = mri_region_take(f.ctx, "heir", parcel, &region, NULL);
	if (err == 0)
		assert_int_equal(mr_region_destroy(region, NULL), 0);
	mri_parcel_destroy(parcel);
	close(fds[0]);
	close(fds[1]);
	return err;
}

/* Else its owner could shrink it, and kill the process that takes it over. */
TEST_WITH(setup, teardown, file_that_cannot_be_sealed_is_no_segment)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	add(KIB(64));
	assert_int_equal(ftruncate(fileno(file), KIB(64)), 0);
	assert_int_equal(take_with(-1), 0);
	assert_int_equal(take_with(fileno(file)), -EPROTO);
	fclose(file);
}

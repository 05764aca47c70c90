/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/port/driver_list.c: the list, and "vfio:NAME" through
 * mr_pool_size_for().
 */
#include "port/driver_list.h"
#include "support/port_pages.h"
#include "support/soft_pci.h"

#include <millrace/driver.h>

static int need_17(struct mr_ctx *ctx, const struct mr_spec *spec,
		   uint32_t page_bytes, uint32_t *ret_n_pages,
		   struct mr_reason *reterr_reason)
{
	(void)ctx;
	(void)page_bytes;
	(void)reterr_reason;
	assert_string_equal(mr_spec_device(spec), "nic");
	*ret_n_pages = 17;
	return 0;
}

static int need_18(struct mr_ctx *ctx, const struct mr_spec *spec,
		   uint32_t page_bytes, uint32_t *ret_n_pages,
		   struct mr_reason *reterr_reason)
{
	(void)need_17(ctx, spec, page_bytes, ret_n_pages, reterr_reason);
	*ret_n_pages = 18;
	return 0;
}

static int never_open(struct mr_port *port, const struct mr_spec *spec,
		      struct mr_reason *reterr_reason)
{
	(void)port;
	(void)spec;
	(void)reterr_reason;
	fail_msg("nothing is opened");
	return -EIO;
}

static void never_close(struct mr_port *port)
{
	(void)port;
}

/* Ids that no driver of this tree has. */
static const struct mr_pci_id ids_17[] = { { 0x1af4, 0xfec9 },
					   { 0x8086, 0xfed3 },
					   { 0 } };
static const struct mr_pci_id ids_18[] = { { 0x8086, 0xfe21 },
					   { 0x8086, 0xfec9 },
					   { 0 } };

static const struct mr_driver seventeen = { .name = "seventeen",
					    .version = MR_DRIVER_VERSION,
					    .size = sizeof(struct mr_driver),
					    .port_bytes =
						    sizeof(struct mr_port),
					    .need = need_17,
					    .open = never_open,
					    .close = never_close,
					    .pci_ids = ids_17 };
static const struct mr_driver eighteen = { .name = "eighteen",
					   .version = MR_DRIVER_VERSION,
					   .size = sizeof(struct mr_driver),
					   .port_bytes = sizeof(struct mr_port),
					   .need = need_18,
					   .open = never_open,
					   .close = never_close,
					   .pci_ids = ids_18 };

TEST(the_pci_ids_choose_the_driver)
{
	struct test_allocator allocator = { 0 };
	struct mr_ctx *ctx = test_ctx(&allocator);
	struct mr_pci_info info = { .size = sizeof(info) };
	struct mr_reason why = { "" };
	struct soft_pci nic;
	uint32_t n = 0;

	soft_init(&nic);
	nic.config[3] = 0xfe;
	assert_int_equal(mr_ctx_add_pci_device(ctx, "nic", &soft_backend, &nic),
			 0);
	assert_int_equal(mr_ctx_add_driver(ctx, &seventeen, NULL), 0);
	assert_int_equal(mr_ctx_add_driver(ctx, &eighteen, NULL), 0);
	assert_int_equal(pages_for_port(ctx, "vfio:nic", &n, NULL),
			 0);
	assert_int_equal(n, 18);
	assert_int_equal(mr_pci_info(ctx, "nic", &info, NULL), 0);
	assert_string_equal(mr_pci_driver_name(ctx, &info), "eighteen");
	info.device_id = 1;
	assert_null(mr_pci_driver_name(ctx, &info));
	nic.config[2] = 0xd3;
	assert_int_equal(pages_for_port(ctx, "vfio:nic", &n, NULL),
			 0);
	assert_int_equal(n, 17);
	nic.config[0] = 0xf4;
	nic.config[1] = 0x1a;
	assert_int_equal(pages_for_port(ctx, "vfio:nic", &n, &why),
			 -ENODEV);
	assert_reason_has(&why, "vfio:nic is 1af4:fed3, which no driver of "
				"this build drives; it has:");
	assert_reason_has(&why, " seventeen eighteen");
	assert_int_equal(nic.n_opens, 0);
	mr_ctx_destroy(ctx);
}

TEST(a_device_that_is_not_there_is_named)
{
	struct test_allocator allocator = { 0 };
	struct mr_ctx *ctx = test_ctx(&allocator);
	struct mr_reason why = { "" };
	uint32_t n = 0;

	assert_int_equal(
		pages_for_port(ctx, "ffff:ff:1f.7", &n, &why),
		-ENODEV);
	assert_reason_has(&why, "no PCI device ffff:ff:1f.7");
	mr_ctx_destroy(ctx);
}

static struct mr_driver driver_named(const char *name)
{
	return (struct mr_driver){ .name = name,
				   .version = MR_DRIVER_VERSION,
				   .size = sizeof(struct mr_driver),
				   .port_bytes = sizeof(struct mr_port),
				   .need = need_17,
				   .open = never_open,
				   .close = never_close };
}

TEST(an_incomplete_driver_is_refused)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mr_reason why = { "" };
	struct mr_driver d;
	uint32_t n = 1;

	d = driver_named("of_old");
	d.version--;
	assert_int_equal(mr_ctx_add_driver(ctx, &d, &why), -ENOEXEC);
	assert_reason_has(&why, "driver of_old has version 0 of the interface, "
				"this library 1");
	d = driver_named(NULL);
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), -EINVAL);
	d = driver_named("x");
	d.open = NULL;
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), -EINVAL);
	d = driver_named("x");
	d.close = NULL;
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), -EINVAL);
	d = driver_named("x");
	d.port_bytes = sizeof(struct mr_port) - 1;
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), -EINVAL);
	d = driver_named("null"); /* a built-in one */
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), -EEXIST);
	d = driver_named("x");
	d.need = NULL; /* it holds nothing */
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), 0);
	assert_int_equal(pages_for_port(ctx, "x:y", &n, NULL), 0);
	assert_int_equal(n, 0);
	mr_ctx_destroy(ctx);
}

/* Members that a driver's headers did not have are behind its struct. */
TEST(members_missing_in_older_headers_are_empty)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mr_driver d = driver_named("older");
	const struct mr_driver *copy = NULL;
	struct mr_reason why;

	memset(&d.set_rss, 0xff,
	       sizeof(d) - offsetof(struct mr_driver, set_rss));
	d.size = offsetof(struct mr_driver, set_rss);
	a.fail_at = a.n_calls + 1;
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), -ENOMEM);
	assert_int_equal(mr_ctx_add_driver(ctx, &d, NULL), 0);
	for (uint32_t i = 0; mri_driver_at(ctx, i) != NULL; i++)
		copy = mri_driver_at(ctx, i);
	assert_ptr_equal(copy->open, d.open);
	assert_true(copy->set_rss == NULL && copy->steer == NULL &&
		    copy->unsteer == NULL);
	d = driver_named("x");
	d.size = offsetof(struct mr_driver, set_rss) - 1;
	assert_int_equal(mr_ctx_add_driver(ctx, &d, &why), -ENOEXEC);
	d.size = sizeof(d) + 8;
	assert_int_equal(mr_ctx_add_driver(ctx, &d, &why), -ENOEXEC);
	assert_reason_has(&why, "driver x: its struct mr_driver has");
	mr_ctx_destroy(ctx);
}

TEST(list_has_room_for_32_drivers)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mr_driver drivers[33];
	char names[33][8];
	uint32_t n_built_in = 0, n;

	while (mri_driver_at(ctx, n_built_in) != NULL)
		n_built_in++;
	assert_true(n_built_in >= 1);
	for (n = n_built_in; n <= 32; n++) {
		snprintf(names[n], sizeof(names[n]), "d%u", n);
		drivers[n] = driver_named(names[n]);
		assert_null(mr_ctx_driver_slot(ctx, &drivers[n]));
		assert_int_equal(mr_ctx_add_driver(ctx, &drivers[n], NULL),
				 n < 32 ? 0 : -ENOSPC);
		if (n < 32)
			assert_string_equal(mri_driver_at(ctx, n)->name,
					    names[n]);
	}
	assert_null(mri_driver_at(ctx, 32));
	mr_ctx_destroy(ctx);
}

TEST(each_driver_has_a_slot_of_its_own)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	const struct mr_driver d1 = driver_named("d1"), d2 = driver_named("d2");
	void **s1, **s2;

	assert_int_equal(mr_ctx_add_driver(ctx, &d1, NULL), 0);
	assert_int_equal(mr_ctx_add_driver(ctx, &d2, NULL), 0);
	s1 = mr_ctx_driver_slot(ctx, &d1);
	s2 = mr_ctx_driver_slot(ctx, &d2);
	assert_non_null(s1);
	assert_non_null(s2);
	assert_ptr_not_equal(s1, s2);
	assert_null(*s1);
	*s1 = &a;
	assert_null(*s2);
	assert_ptr_equal(mr_ctx_driver_slot(ctx, &d1), s1);
	mr_ctx_destroy(ctx);
}

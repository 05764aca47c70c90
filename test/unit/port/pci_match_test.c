/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/pci_match.c: "vfio:NAME" through mr_port_need_pages(). */
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
					    .port_bytes =
						    sizeof(struct mr_port),
					    .need = need_17,
					    .open = never_open,
					    .close = never_close,
					    .pci_ids = ids_17 };
static const struct mr_driver eighteen = { .name = "eighteen",
					   .port_bytes = sizeof(struct mr_port),
					   .need = need_18,
					   .open = never_open,
					   .close = never_close,
					   .pci_ids = ids_18 };

TEST(the_ids_choose_the_driver)
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
	assert_int_equal(mr_ctx_add_driver(ctx, &seventeen), 0);
	assert_int_equal(mr_ctx_add_driver(ctx, &eighteen), 0);
	assert_int_equal(mr_port_need_pages(ctx, "vfio:nic", 4096, &n, NULL),
			 0);
	assert_int_equal(n, 18);
	assert_int_equal(mr_pci_info(ctx, "nic", &info, NULL), 0);
	assert_string_equal(mr_pci_driver_name(ctx, &info), "eighteen");
	info.device_id = 1;
	assert_null(mr_pci_driver_name(ctx, &info));
	nic.config[2] = 0xd3;
	assert_int_equal(mr_port_need_pages(ctx, "vfio:nic", 4096, &n, NULL),
			 0);
	assert_int_equal(n, 17);
	nic.config[0] = 0xf4;
	nic.config[1] = 0x1a;
	assert_int_equal(mr_port_need_pages(ctx, "vfio:nic", 4096, &n, &why),
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
		mr_port_need_pages(ctx, "ffff:ff:1f.7", 4096, &n, &why),
		-ENODEV);
	assert_reason_has(&why, "no PCI device ffff:ff:1f.7");
	mr_ctx_destroy(ctx);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pci/vfio.c and dma.c: ioctls that fail where opening goes on
 * without them, and behind it.
 */
#include "support/vfio_unit.h"

/* The next one of a call. */
static void fail_next(const char *name)
{
	struct fake_call *call = fake_call(name);

	call->fail_at = call->n_calls + 1;
	call->fail_errno = EIO;
}

static const char mark[] = "kept";

/*
 * Whether memory is there, and has the mark. Once it is unmapped, its address
 * may be another's, who has not.
 */
static bool is_kept(const void *memory)
{
	char copy[sizeof(mark)] = "";
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	if (write(fds[1], memory, sizeof(mark)) > 0)
		assert_int_equal(read(fds[0], copy, sizeof(mark)),
				 sizeof(mark));
	close(fds[0]);
	close(fds[1]);
	return memcmp(copy, mark, sizeof(mark)) == 0;
}

/* The device may still reach it: it stays, and nothing takes its place. */
TEST(ring_memory_that_stays_mapped_is_kept)
{
	struct mr_pci *second;
	struct mr_dma a, b;
	void *kept;

	for (int has_cdev = 0; has_cdev < 2; has_cdev++) {
		const char *unmap = has_cdev ? "IOAS_UNMAP" : "UNMAP_DMA";

		vfio_prepare();
		if (has_cdev)
			vfio_add_cdev();
		second = vfio_open_both();
		assert_int_equal(mr_pci_dma_alloc(second, 4096, &a, NULL), 0);
		kept = a.memory;
		memcpy(kept, mark, sizeof(mark));
		fail_next(unmap);
		mr_pci_dma_free(second, &a);
		assert_null(a.memory);
		mr_pci_close(second);
		assert_true(is_kept(kept));
		assert_int_equal(f.pci->vfio->container->n_mapped_bytes,
				 65536 + 4096);
		assert_int_equal(mr_pci_dma_alloc(f.pci, 4096, &b, NULL), 0);
		assert_ptr_equal(fake_reach(b.iova), b.memory);
		/* The region's, too; closing the container unmaps all. */
		fake_call(unmap)->fail_at = fake_call(unmap)->n_calls + 2;
		fake.is_left_mapped = true;
		vfio_finish();
		assert_false(is_kept(kept));
	}
}

VFIO_TEST(missing_features_of_vfio_are_tolerated)
{
	fail_next("CHECK_EXTENSION"); /* version 2: then it is version 1 */
	fail_next("GET_IRQ_INFO");    /* ERR: then there is REQ */
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_string_equal(mr_pci_mode(f.pci), "type1");
	assert_int_equal(fake.devices[0].n_armed[VFIO_PCI_ERR_IRQ_INDEX], 0);
	assert_int_equal(fake.devices[0].n_armed[VFIO_PCI_REQ_IRQ_INDEX], 1);
	/* The kernel takes a group out that is closed. */
	fail_next("UNSET_CONTAINER");
	mr_pci_close(f.pci);
	f.pci = NULL;
	assert_vfio_clean();
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
}

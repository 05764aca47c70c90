/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/bench/result/nic.c, on a sysfs of their own. */
#include "support/fake_sysfs.h"

#include <jansson.h>

#include "result/nic.h"

static char root[] = "/tmp/mr-nic-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[FAKE_PATH_BYTES];
	FILE *file;

	fake_path(path, "%s/%s", root, name);
	fake_folders(path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void put_link(const char *name, const char *target)
{
	char path[FAKE_PATH_BYTES];

	fake_path(path, "%s/%s", root, name);
	fake_folders(path);
	assert_int_equal(symlink(target, path), 0);
}

/* Two nodes with a core each; a NIC on the second, in a slot of half width;
 * and a virtio interface, whose PCI function is one folder above. */
static int make_sysfs(void **state)
{
	(void)state;
	if (mkdtemp(root) == NULL)
		return -1;
	put("devices/system/cpu/cpu0/node0/x", "");
	put("devices/system/cpu/cpu1/node1/x", "");
	put("devices/system/node/node0/distance", "10 21\n");
	put("devices/system/node/node1/distance", "21 10\n");
	put("bus/pci/devices/0000:41:00.0/vendor", "0x8086\n");
	put("bus/pci/devices/0000:41:00.0/device", "0x1592\n");
	put("bus/pci/devices/0000:41:00.0/numa_node", "1\n");
	put("bus/pci/devices/0000:41:00.0/current_link_width", "8\n");
	put("bus/pci/devices/0000:41:00.0/max_link_width", "16\n");
	put_link("bus/pci/devices/0000:41:00.0/driver",
		 "../../../bus/pci/drivers/vfio-pci");
	put("devices/pci0/virtio3/vendor", "0x1af4\n");
	put("devices/pci0/vendor", "0x1af4\n");
	put("devices/pci0/current_link_width", "1\n");
	put("class/net/none0/speed", "25000\n");
	put("class/net/none0/napi_defer_hard_irqs", "2\n");
	put_link("class/net/none0/device", "../../../devices/pci0/virtio3");
	put("class/net/lo/speed", "-1\n");
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int flag,
			struct FTW *walk)
{
	(void)status;
	(void)flag;
	(void)walk;
	return remove(path);
}

static int remove_sysfs(void **state)
{
	(void)state;
	return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static json_int_t number(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

TEST(a_pci_address_has_its_slot_and_distance)
{
	const uint32_t both[] = { 1, 0 }, near[] = { 1 }, nowhere[] = { 7 };
	json_t *nic = nic_json(root, "0000:41:00.0", both, 2);
	const json_t *pci = json_object_get(nic, "pci");

	assert_string_equal(text(pci, "device"), "0x1592");
	assert_string_equal(text(pci, "driver"), "vfio-pci");
	assert_string_equal(text(pci, "link_width"), "8");
	assert_string_equal(text(pci, "max_link_width"), "16");
	assert_int_equal(number(nic, "numa_node"), 1);
	assert_int_equal(number(nic, "numa_distance"), 21);
	json_decref(nic);
	nic = nic_json(root, "0000:41:00.0", near, 1);
	assert_int_equal(number(nic, "numa_distance"), 10);
	json_decref(nic);
	nic = nic_json(root, "0000:41:00.0", nowhere, 1);
	assert_int_equal(number(nic, "numa_distance"), 0);
	json_decref(nic);
}

TEST(an_interface_of_virtio_has_the_slot_above_it)
{
	json_t *nic = nic_json(root, "none0", NULL, 0);
	const json_t *pci = json_object_get(nic, "pci");

	assert_string_equal(text(pci, "link_width"), "1");
	assert_int_equal(number(nic, "link_mbps"), 25000);
	assert_int_equal(number(nic, "napi_defer_hard_irqs"), 2);
	assert_int_equal(number(nic, "numa_node"), -1);
	json_decref(nic);
}

/* What the kernel does not know is left out or 0, never made up. */
TEST(a_software_interface_has_no_slot)
{
	json_t *nic = nic_json(root, "lo", NULL, 0);

	assert_true(json_is_null(json_object_get(nic, "pci")));
	assert_int_equal(number(nic, "link_mbps"), 0);
	json_decref(nic);
}

TEST(a_port_in_memory_has_no_nic)
{
	static const char *const names[] = { "", "a", "../../etc", "x/y" };

	for (uint32_t i = 0; i < 4; i++) {
		json_t *nic = nic_json(root, names[i], NULL, 0);

		assert_true(json_is_null(nic));
		json_decref(nic);
	}
}

int main(void)
{
	return test_run(NULL, make_sysfs, remove_sysfs);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <jansson.h>

#include "support/json_text.h"

#include "show.h"

/* What is not there is null, so that each member is always there. */
static json_t *text_or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? json_text(text) :
						 json_null();
}

static json_t *number_or_null(int32_t number)
{
	return number >= 0 ? json_integer(number) : json_null();
}

static json_t *id(uint32_t number, int n_digits)
{
	return json_sprintf("%0*x", n_digits, number);
}

static json_t *siblings_of(const struct device *device)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < device->siblings.n; i++)
		json_array_append_new(list,
				      json_string(device->siblings.list[i]));
	return list;
}

static json_t *link_of(const struct device *device)
{
	if (!device->has_link)
		return json_null();
	return json_pack("{s:b, s:i}", "up", device->is_up, "mbps",
			 (int)device->mbps);
}

static json_t *device_object(const struct device *device)
{
	const struct mr_pci_info *pci = &device->pci;
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o}", "address", pci->bdf, "vendor",
		id(pci->vendor_id, 4), "device", id(pci->device_id, 4),
		"subsystem_vendor", id(pci->subsystem_vendor_id, 4),
		"subsystem_device", id(pci->subsystem_id, 4), "class",
		id(pci->class_code, 6));

	json_object_set_new(object, "driver", text_or_null(device->driver));
	json_object_set_new(object, "kernel_driver",
			    text_or_null(pci->kernel_driver));
	json_object_set_new(object, "interface", text_or_null(pci->netdev));
	json_object_set_new(object, "link", link_of(device));
	json_object_set_new(object, "default_route",
			    json_boolean(device->default_route[0] != '\0'));
	json_object_set_new(object, "iommu_group",
			    number_or_null(pci->iommu_group));
	json_object_set_new(object, "group_shared_with", siblings_of(device));
	json_object_set_new(object, "numa_node",
			    number_or_null(pci->numa_node));
	json_object_set_new(object, "virtual_functions",
			    json_integer(pci->n_vfs));
	json_object_set_new(object, "former_kernel_driver",
			    device->is_remembered ?
				    json_string(device->remembered) :
				    json_null());
	json_object_set_new(object, "spec",
			    text_or_null(device_spec(device).text));
	return object;
}

bool show_json(const struct device *devices, uint32_t n)
{
	json_t *list = json_array();
	json_t *object;
	bool is_printed;

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list, device_object(&devices[i]));
	object = json_pack("{s:i, s:o}", "v", 1, "devices", list);
	is_printed = object != NULL &&
		     json_dumpf(object, stdout, JSON_COMPACT) == 0 &&
		     fputc('\n', stdout) != EOF && fflush(stdout) == 0;
	json_decref(object);
	return is_printed;
}

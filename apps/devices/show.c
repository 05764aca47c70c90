/* SPDX-License-Identifier: BSD-3-Clause */
/* All output is made from the JSON object of a device. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "support/json_text.h"

#include "devices.h"

enum { COLUMNS = 8, CELL_BYTES = 64 };

static const char *const titles[COLUMNS] = {
	"ADDRESS",   "IDS",   "VFIO", "KERNEL",
	"INTERFACE", "GROUP", "NODE", "LINK",
};
static const char *const columns[COLUMNS] = {
	"address",   "ids",         "driver",    "kernel_driver",
	"interface", "iommu_group", "numa_node", "link",
};

/* null if empty, so that each member is always present. */
static json_t *text_or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? json_text(text) : json_null();
}

static json_t *number_or_null(int32_t number)
{
	return number >= 0 ? json_integer(number) : json_null();
}

/* Its spec for programs, now. */
static json_t *spec_of(const struct device *device)
{
	char spec[CELL_BYTES] = "";

	if (device->is_vfio && device->driver != NULL)
		snprintf(spec, sizeof(spec), "vfio:%s", device->pci.bdf);
	else if (device->pci.netdev[0] != '\0')
		snprintf(spec, sizeof(spec), "xdp:%s", device->pci.netdev);
	return text_or_null(spec);
}

static json_t *siblings_of(const struct device *device)
{
	json_t *list = json_array();

	for (int i = 0; i < device->siblings.n; i++)
		if (strcmp(device->siblings.list[i]->d_name, device->pci.bdf) !=
		    0)
			json_array_append_new(
				list,
				json_text(device->siblings.list[i]->d_name));
	return list;
}

static json_t *object_of(const struct device *device)
{
	const struct mr_pci_info *pci = &device->pci;

	return json_pack(
		"{so so so so so so so so so so sb so so so si so so}",
		"address", json_text(pci->bdf), "vendor",
		json_sprintf("%04x", pci->vendor_id), "device",
		json_sprintf("%04x", pci->device_id), "subsystem_vendor",
		json_sprintf("%04x", pci->subsystem_vendor_id),
		"subsystem_device", json_sprintf("%04x", pci->subsystem_id),
		"class", json_sprintf("%06x", pci->class_code), "driver",
		text_or_null(device->driver), "kernel_driver",
		text_or_null(pci->kernel_driver), "interface",
		text_or_null(pci->netdev), "link",
		device->has_link ? json_pack("{sb si}", "up", device->is_up,
					     "mbps", device->mbps) :
				   json_null(),
		"default_route", device->default_route[0] != '\0',
		"iommu_group", number_or_null(pci->iommu_group),
		"group_shared_with", siblings_of(device), "numa_node",
		number_or_null(pci->numa_node), "virtual_functions",
		(int)pci->n_vfs, "former_kernel_driver",
		device->is_remembered ? json_text(device->former_driver) :
					json_null(),
		"spec", spec_of(device));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* A member as text, or none. */
static const char *words_of(const json_t *object, const char *key,
			    const char *none, char words[CELL_BYTES])
{
	json_t *value = json_object_get(object, key);

	snprintf(words, CELL_BYTES, "%s", none);
	if (strcmp(key, "ids") == 0)
		snprintf(words, CELL_BYTES, "%s:%s", text_of(object, "vendor"),
			 text_of(object, "device"));
	else if (json_is_integer(value))
		snprintf(words, CELL_BYTES, "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
	else if (json_is_boolean(value))
		snprintf(words, CELL_BYTES, "%s",
			 json_is_true(value) ? "yes" : "no");
	else if (json_integer_value(json_object_get(value, "mbps")) > 0)
		snprintf(words, CELL_BYTES, "up, %" JSON_INTEGER_FORMAT " Mb/s",
			 json_integer_value(json_object_get(value, "mbps")));
	else if (json_is_object(value))
		snprintf(words, CELL_BYTES, "%s",
			 json_is_true(json_object_get(value, "up")) ? "up" :
								      "down");
	else if (json_is_string(value) && json_string_length(value) > 0)
		snprintf(words, CELL_BYTES, "%s", json_string_value(value));
	return words;
}

/* Remarks that have no column, after the columns. */
static void print_remarks(const json_t *object)
{
	const json_t *siblings = json_object_get(object, "group_shared_with");
	const char *before = "  ";
	char words[CELL_BYTES];

	if (json_is_true(json_object_get(object, "default_route"))) {
		printf("%sdefault route", before);
		before = ", ";
	}
	if (json_array_size(siblings) > 0) {
		printf("%sgroup shared with", before);
		for (size_t i = 0; i < json_array_size(siblings); i++)
			printf(" %s",
			       json_string_value(json_array_get(siblings, i)));
		before = ", ";
	}
	if (json_is_string(json_object_get(object, "former_kernel_driver")))
		printf("%swas %s", before,
		       words_of(object, "former_kernel_driver",
				"without a driver", words));
	printf("\n");
}

static void print_list(const json_t *list)
{
	int widths[COLUMNS];
	char words[CELL_BYTES];
	const json_t *object;
	size_t i;

	for (uint32_t c = 0; c < COLUMNS; c++) {
		widths[c] = (int)strlen(titles[c]);
		json_array_foreach(list, i, object)
		{
			const int n = (int)strlen(
				words_of(object, columns[c], "-", words));

			widths[c] = n > widths[c] ? n : widths[c];
		}
	}
	widths[COLUMNS - 1] = 0;
	for (uint32_t c = 0; c < COLUMNS; c++)
		printf("%-*s%s", widths[c], titles[c],
		       c + 1 < COLUMNS ? "  " : "\n");
	json_array_foreach(list, i, object)
	{
		for (uint32_t c = 0; c < COLUMNS; c++)
			printf("%-*s%s", widths[c],
			       words_of(object, columns[c], "-", words),
			       c + 1 < COLUMNS ? "  " : "");
		print_remarks(object);
	}
}

static void print_siblings(const json_t *siblings)
{
	for (size_t i = 0; i < json_array_size(siblings); i++) {
		const char *const other =
			json_string_value(json_array_get(siblings, i));
		char driver[32];
		const bool is_viable =
			device_leaves_group_viable(other, driver);

		printf("%-16s %s, %s%s\n", "shared with", other,
		       driver[0] != '\0' ? driver : "no driver",
		       is_viable ? "" : ": not viable");
	}
}

static void print_info(const json_t *object)
{
	static const char *const lines[][2] = {
		{ "address", "address" },
		{ "ids", NULL },
		{ "driver (vfio:)", "driver" },
		{ "kernel driver", "kernel_driver" },
		{ "interface", "interface" },
		{ "link", "link" },
		{ "default route", "default_route" },
		{ "IOMMU group", "iommu_group" },
		{ "shared with", NULL },
		{ "NUMA node", "numa_node" },
		{ "virtual fns", "virtual_functions" },
		{ "was", "former_kernel_driver" },
		{ "port spec", "spec" },
	};
	char words[CELL_BYTES];

	for (uint32_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (i == 1)
			printf("%-16s %s, subsystem %s:%s, class %s\n",
			       lines[i][0], words_of(object, "ids", "", words),
			       text_of(object, "subsystem_vendor"),
			       text_of(object, "subsystem_device"),
			       text_of(object, "class"));
		else if (lines[i][1] == NULL)
			print_siblings(
				json_object_get(object, "group_shared_with"));
		else if (strcmp(lines[i][0], "was") != 0 ||
			 json_is_string(json_object_get(object, lines[i][1])))
			printf("%-16s %s\n", lines[i][0],
			       words_of(object, lines[i][1], "none", words));
}

bool show_devices(enum show how, const struct device *devices, uint32_t n)
{
	json_t *list = json_array();
	json_t *object = json_pack("{si so}", "v", 1, "devices", list);
	bool is_good = object != NULL;

	for (uint32_t i = 0; is_good && i < n; i++)
		is_good = json_array_append_new(list, object_of(&devices[i])) ==
			  0;
	if (is_good && how == SHOW_JSON)
		is_good = json_dumpf(object, stdout, JSON_COMPACT) == 0 &&
			  fputc('\n', stdout) != EOF;
	else if (is_good && how == SHOW_LIST)
		print_list(list);
	else if (is_good)
		print_info(json_array_get(list, 0));
	json_decref(object);
	return is_good && fflush(stdout) == 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "show.h"

enum { COLUMNS = 8, CELL_BYTES = 64 };

static const char *const titles[COLUMNS] = {
	"ADDRESS",   "IDS",   "VFIO", "KERNEL",
	"INTERFACE", "GROUP", "NODE", "LINK",
};

struct row {
	char cells[COLUMNS][CELL_BYTES];
};

static void print_cell(struct row *row, uint32_t column, const char *text)
{
	snprintf(row->cells[column], CELL_BYTES, "%s",
		 text != NULL && text[0] != '\0' ? text : "-");
}

static void print_number(struct row *row, uint32_t column, int32_t number)
{
	char text[16] = "";

	if (number >= 0)
		snprintf(text, sizeof(text), "%d", number);
	print_cell(row, column, text);
}

static void link_words(const struct device *device, char *text, size_t n)
{
	if (!device->has_link)
		snprintf(text, n, "-");
	else if (device->mbps > 0)
		snprintf(text, n, "up, %u Mb/s", device->mbps);
	else
		snprintf(text, n, "%s", device->is_up ? "up" : "down");
}

static struct row row_of(const struct device *device)
{
	const struct mr_pci_info *pci = &device->pci;
	struct row row;
	char text[CELL_BYTES];

	print_cell(&row, 0, pci->bdf);
	snprintf(text, sizeof(text), "%04x:%04x", pci->vendor_id,
		 pci->device_id);
	print_cell(&row, 1, text);
	print_cell(&row, 2, device->driver);
	print_cell(&row, 3, pci->kernel_driver);
	print_cell(&row, 4, pci->netdev);
	print_number(&row, 5, pci->iommu_group);
	print_number(&row, 6, pci->numa_node);
	link_words(device, text, sizeof(text));
	print_cell(&row, 7, text);
	return row;
}

static void measure(const struct row *row, size_t widths[COLUMNS])
{
	for (uint32_t i = 0; i < COLUMNS; i++)
		if (strlen(row->cells[i]) > widths[i])
			widths[i] = strlen(row->cells[i]);
}

/* What does not go into columns: in words behind them. */
static void print_remarks(const struct device *device)
{
	const char *before = "  ";

	if (device->default_route[0] != '\0') {
		printf("%sdefault route", before);
		before = ", ";
	}
	if (device->siblings.n > 0) {
		printf("%sgroup shared with", before);
		for (uint32_t i = 0; i < device->siblings.n; i++)
			printf(" %s", device->siblings.list[i]);
		before = ", ";
	}
	if (device->is_remembered)
		printf("%swas %s", before,
		       device->remembered[0] != '\0' ? device->remembered :
						       "without a driver");
}

static void print_row(const struct row *row, const size_t widths[COLUMNS])
{
	for (uint32_t i = 0; i + 1 < COLUMNS; i++)
		printf("%-*s  ", (int)widths[i], row->cells[i]);
	printf("%s", row->cells[COLUMNS - 1]);
}

bool show_list(const struct device *devices, uint32_t n)
{
	size_t widths[COLUMNS] = { 0 };
	struct row row;

	for (uint32_t i = 0; i < COLUMNS; i++)
		print_cell(&row, i, titles[i]);
	measure(&row, widths);
	for (uint32_t i = 0; i < n; i++) {
		const struct row other = row_of(&devices[i]);

		measure(&other, widths);
	}
	print_row(&row, widths);
	printf("\n");
	for (uint32_t i = 0; i < n; i++) {
		row = row_of(&devices[i]);
		print_row(&row, widths);
		print_remarks(&devices[i]);
		printf("\n");
	}
	return fflush(stdout) == 0;
}

static void print_line(const char *label, const char *text)
{
	printf("%-16s %s\n", label,
	       text != NULL && text[0] != '\0' ? text : "none");
}

static void print_siblings(const struct machine *machine,
			   const struct device *device)
{
	for (uint32_t i = 0; i < device->siblings.n; i++) {
		const char *const other = device->siblings.list[i];
		char driver[32];
		const bool is_viable =
			device_leaves_group_viable(machine, other, driver);

		printf("%-16s %s, %s%s\n", "shares it with", other,
		       driver[0] != '\0' ? driver : "no driver",
		       is_viable ? "" : ": not viable");
	}
}

bool show_info(const struct machine *machine, const struct device *device)
{
	const struct mr_pci_info *pci = &device->pci;
	char text[CELL_BYTES];

	print_line("address", pci->bdf);
	printf("%-16s %04x:%04x, subsystem %04x:%04x, class %06x\n", "ids",
	       pci->vendor_id, pci->device_id, pci->subsystem_vendor_id,
	       pci->subsystem_id, pci->class_code);
	print_line("driver (vfio:)", device->driver);
	print_line("kernel driver", pci->kernel_driver);
	print_line("interface", pci->netdev);
	link_words(device, text, sizeof(text));
	print_line("link", text);
	print_line("default route",
		   device->default_route[0] != '\0' ? "yes" : "no");
	snprintf(text, sizeof(text), "%d", pci->iommu_group);
	print_line("IOMMU group", pci->iommu_group >= 0 ? text : "");
	print_siblings(machine, device);
	snprintf(text, sizeof(text), "%d", pci->numa_node);
	print_line("NUMA node", pci->numa_node >= 0 ? text : "");
	snprintf(text, sizeof(text), "%u", pci->n_vfs);
	print_line("virtual fns", text);
	if (device->is_remembered)
		print_line("given back to", device->remembered);
	print_line("open it as", device_spec(device).text);
	return fflush(stdout) == 0;
}

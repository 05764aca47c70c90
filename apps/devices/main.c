/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-devices: network devices, between the kernel and vfio-pci. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "options.h"
#include "show.h"
#include "state.h"
#include "support/text.h"

static int complain(const char *text)
{
	print_error("mr-devices: %s", text);
	return 1;
}

static bool show(const struct options *options, const struct device *devices,
		 uint32_t n)
{
	return options->is_json ? show_json(devices, n) : show_list(devices, n);
}

/* Network devices, or with --all everything on the bus. */
static int list(const struct machine *machine, const struct options *options)
{
	struct device *devices;
	struct names names;
	uint32_t n = 0;
	bool is_shown;

	if (machine_names(machine_path(machine, "/sys/bus/pci/devices"),
			  &names) < 0)
		return complain("this machine has no PCI bus: no "
				"/sys/bus/pci/devices");
	devices = calloc(names.n + 1, sizeof(devices[0]));
	for (uint32_t i = 0; devices != NULL && i < names.n; i++) {
		struct mr_reason ignored; /* it went away in between */

		if (device_read(machine, names.list[i], &devices[n],
				&ignored) == 0 &&
		    (options->is_all || device_is_nic(&devices[n])))
			n++;
		else
			device_free(&devices[n]);
	}
	is_shown = devices != NULL && show(options, devices, n);
	for (uint32_t i = 0; i < n; i++)
		device_free(&devices[i]);
	free(devices);
	names_free(&names);
	return is_shown ? 0 : complain("cannot write");
}

static int info(const struct machine *machine, const struct options *options)
{
	struct mr_reason error;
	struct device device;
	bool is_shown;

	if (device_read(machine, options->bdfs[0], &device, &error) < 0) {
		device_free(&device);
		return complain(error.text);
	}
	is_shown = options->is_json ? show_json(&device, 1) :
				      show_info(machine, &device);
	device_free(&device);
	return is_shown ? 0 : complain("cannot write");
}

/* What can be given back is, whatever happens to the others. */
static int give_back(const struct machine *machine,
		     const struct options *options)
{
	struct mr_reason error;
	struct names names = { 0 };
	int status = 0;

	if (options->is_all && state_names(machine, &names) < 0)
		return complain("cannot read /run/millrace/devices");
	for (uint32_t i = 0; i < (options->is_all ? names.n : options->n_bdfs);
	     i++)
		if (bind_give_back(machine,
				   options->is_all ? names.list[i] :
						     options->bdfs[i],
				   &error) < 0)
			status = complain(error.text);
	if (options->is_all && names.n == 0)
		printf("no device is bound by mr-devices\n");
	names_free(&names);
	return status;
}

static int change(const struct machine *machine, const struct options *options)
{
	const struct bind_options how = {
		.is_forced = options->is_forced,
		.owner = options->has_owner ? &options->owner : NULL,
	};
	const int lock_fd = state_lock(machine);
	struct mr_reason error;
	int status = 0;

	if (lock_fd == -EWOULDBLOCK)
		return complain("another mr-devices is at work: wait for it");
	if (lock_fd < 0) {
		snprintf(error.text, sizeof(error.text),
			 "cannot keep notes in %s/run/millrace/devices: %s%s",
			 machine->root, strerror(-lock_fd),
			 lock_fd == -EACCES ? ": run as root" : "");
		return complain(error.text);
	}
	if (options->command == COMMAND_UNBIND)
		status = give_back(machine, options);
	else if (bind_devices(machine, options->bdfs, options->n_bdfs, &how,
			      &error) < 0)
		status = complain(error.text);
	close(lock_fd);
	return fflush(stdout) == 0 ? status : complain("cannot write");
}

static int run(const struct options *options)
{
	struct machine machine = { .root = options->root };
	struct mr_ctx_config config = { .size = sizeof(config) };
	struct mr_reason error;
	int status;

	snprintf(machine.sysfs, sizeof(machine.sysfs), "%s/sys", machine.root);
	config.sysfs = machine.sysfs;
	if (mr_ctx_create(&config, &machine.ctx, &error) < 0)
		return complain(error.text);
	switch (options->command) {
	case COMMAND_LIST:
		status = list(&machine, options);
		break;
	case COMMAND_INFO:
		status = info(&machine, options);
		break;
	default:
		status = change(&machine, options);
		break;
	}
	mr_ctx_destroy(machine.ctx);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	struct mr_reason error;

	switch (options_parse(argc, argv, &options, &error)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : complain("cannot write");
	case PARSE_WRONG:
		complain(error.text);
		return 2;
	default:
		return run(&options);
	}
}

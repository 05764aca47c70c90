/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk: the part inside the library.
 *
 * All code that uses DPDK is in a separate shared object, libmillrace-dpdk.so,
 * which is loaded when the first port is opened and supplies its own driver
 * table: from then on the port belongs to the module. So the library runs
 * without DPDK installed, and only programs that open such a port have DPDK's
 * libraries, thread and memory in the process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dpdk_module.h"
#include "dpdk_options.h"

static const char module_file[] = "libmillrace-dpdk.so";

extern const struct mr_driver mr_driver_dpdk;

/*
 * Look next to the library that contains this code; else where the loader
 * looks. In a program with the library linked in, dladdr(3) knows only argv[0],
 * which the caller chooses: a program with capabilities would load the caller's
 * module.
 */
static void *load_module(void)
{
	char path[PATH_MAX], whole[PATH_MAX + sizeof(module_file) + 1];
	struct link_map *us;
	Dl_info info;

	if (dladdr1(&mr_driver_dpdk, &info, (void **)&us, RTLD_DL_LINKMAP) !=
		    0 &&
	    us->l_name[0] != '\0') {
		snprintf(path, sizeof(path), "%s", us->l_name);
		snprintf(whole, sizeof(whole), "%s/%s", dirname(path),
			 module_file);
		/* The loader reports the reason of the last file it tried. */
		if (access(whole, F_OK) == 0)
			return dlopen(whole, RTLD_NOW | RTLD_LOCAL);
	}
	return dlopen(module_file, RTLD_NOW | RTLD_LOCAL);
}

/* The loader's message, about the module or a library that it needs. */
static int not_loaded(struct mr_reason *reason)
{
	const char *why = dlerror();

	if (why == NULL)
		why = "no reason given";
	if (strstr(why, "librte_") != NULL)
		return mr_fail(
			reason, -ENODEV,
			"dpdk: the DPDK libraries are missing, or of another "
			"version than Millrace was built with: %s",
			why);
	return mr_fail(reason, -ENODEV,
		       "dpdk: cannot load the module: %s; a build with libdpdk "
		       "installs it next to libmillrace",
		       why);
}

static int dpdk_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		     uint32_t page_bytes, uint32_t *ret_n_pages,
		     struct mr_reason *reterr_reason)
{
	struct dpdk_options options;
	const int err = mri_dpdk_read_options(spec, &options, reterr_reason);

	(void)ctx;
	(void)page_bytes;
	if (err == 0)
		*ret_n_pages = mri_dpdk_need(&options);
	return err;
}

/* The module is never unloaded: EAL has threads in it. */
static int dpdk_open(struct mr_port *port, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	const struct mri_dpdk_module *module;
	void *handle = load_module();

	if (handle == NULL)
		return not_loaded(reterr_reason);
	module = dlsym(handle, MRI_DPDK_MODULE);
	if (module == NULL || module->version != MRI_DPDK_VERSION ||
	    module->driver->version != MR_DRIVER_VERSION ||
	    module->driver->size != sizeof(struct mr_driver) ||
	    module->driver->port_bytes != sizeof(struct mri_dpdk_room))
		return mr_fail(
			reterr_reason, -ENODEV,
			"dpdk: %s belongs to another version of Millrace",
			module_file);
	/* mr_port_link() reads it while a port is opened again. */
	__atomic_store_n(&port->driver, module->driver, __ATOMIC_RELAXED);
	return module->driver->open(port, spec, reterr_reason);
}

/* Never called: an open port has the module's table. */
static void dpdk_close(struct mr_port *port)
{
	(void)port;
}

/* Never called either. mr_port_link() of another thread sees that the port has
 * one, and returns what was known before it was opened again. */
static uint32_t dpdk_poll(struct mr_port *port)
{
	(void)port;
	return 0;
}

static const char *const dpdk_keys[] = { "queues", "ring", "mtu",   "promisc",
					 "sg",     "csum", "irq",   "vlan",
					 "eal",    "force", NULL };

const struct mr_driver mr_driver_dpdk = {
	.name = "dpdk",
	.keys = dpdk_keys,
	.port_bytes = sizeof(struct mri_dpdk_room),
	.need = dpdk_need,
	.open = dpdk_open,
	.close = dpdk_close,
	.poll = dpdk_poll,
};

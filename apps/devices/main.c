/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-devices: move network devices between the kernel and vfio-pci. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices.h"
#include "support/options.h"
#include "support/text.h"

enum { MAX_BDFS = 64, MAX_ROOT_BYTES = 128 };
enum { ID_ALL = OPTION_LONG, ID_FORCE, ID_OWNER, ID_ROOT };
enum { HAS_ALL = 1, HAS_JSON = 2, HAS_FORCE = 4, HAS_OWNER = 8 };

struct options {
	const struct command *command;
	uint32_t given; /* HAS_... */
	struct bind_options bind;
	char *const *bdfs;
	uint32_t n_bdfs;
};

/* Returns the exit status. */
typedef int command_fn(const struct options *options);

/* Options and number of devices of a command. */
struct command {
	const char *word;
	command_fn *run;
	uint32_t takes; /* HAS_... */
	uint32_t n_least, n_most;
};

static const struct option_row rows[] = {
	{ "all", ID_ALL, NULL,
	  "list: all devices, not only NICs; unbind: all" },
	{ "json", 'j', NULL, "list, info: print one JSON object" },
	{ "force", ID_FORCE, NULL,
	  "bind: even if this machine uses the device" },
	{ "owner", ID_OWNER, "USER",
	  "bind: USER or USER:GROUP may open the devices" },
	{ "root", ID_ROOT, "DIR",
	  "look for /sys, /proc, /dev and /run below DIR" },
	{ "help", OPTION_HELP, NULL, "print this help" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

static const char usage[] =
	"usage: mr-devices [options] [list]\n"
	"       mr-devices [options] info BDF\n"
	"       mr-devices [options] bind BDF...\n"
	"       mr-devices [options] unbind BDF... | --all\n"
	"List network devices, bind them to vfio-pci for vfio: ports, and\n"
	"return them to their kernel driver.\n"
	"\n"
	"BDF is the address of a PCI function, 0000:03:00.0 or 03:00.0.\n";

static int complain(const char *text)
{
	print_error("mr-devices: %s", text);
	return 1;
}

/* One device, or all network devices, or with --all everything on the bus. */
static int show(const struct options *options)
{
	const bool is_info = options->n_bdfs > 0;
	enum show how = is_info ? SHOW_INFO : SHOW_LIST;
	struct names names = { .n = 1 };
	struct mr_reason error;
	struct device *devices;
	uint32_t n = 0;
	int status = 0;

	if (!is_info &&
	    machine_names(machine_path("/sys/bus/pci/devices"), &names) < 0)
		return complain(
			"this machine has no PCI bus: no /sys/bus/pci/devices");
	devices = calloc((size_t)names.n + 1, sizeof(devices[0]));
	for (int i = 0; devices != NULL && i < names.n; i++) {
		const char *const bdf =
			is_info ? options->bdfs[0] : names.list[i]->d_name;

		/* A listed device may have gone meanwhile. */
		if (device_read(bdf, &devices[n], &error) == 0 &&
		    (is_info || options->given & HAS_ALL || devices[n].is_nic))
			n++;
		else
			device_free(&devices[n]);
	}
	if (options->given & HAS_JSON)
		how = SHOW_JSON;
	if (is_info && n == 0)
		status = complain(error.text);
	else if (devices == NULL || !show_devices(how, devices, n))
		status = complain("cannot write");
	for (uint32_t i = 0; i < n; i++)
		device_free(&devices[i]);
	free(devices);
	if (!is_info)
		names_free(&names);
	return status;
}

static int bind_them(const struct options *options)
{
	struct mr_reason error;

	return bind_devices(options->bdfs, options->n_bdfs, &options->bind,
			    &error) < 0 ?
		       complain(error.text) :
		       0;
}

/* Return as many as possible, whatever happens to the others. */
static int unbind(const struct options *options)
{
	const bool is_all = options->given & HAS_ALL;
	uint32_t n = options->n_bdfs;
	struct names names = { 0 };
	struct mr_reason error;
	int status = 0;

	if (is_all) {
		if (notes_names(&names) < 0)
			return complain("cannot read /run/millrace/devices");
		n = (uint32_t)names.n;
		if (n == 0)
			printf("mr-devices has bound no devices\n");
	}
	for (uint32_t i = 0; i < n; i++)
		if (bind_give_back(is_all ? names.list[i]->d_name :
					    options->bdfs[i],
				   &error) < 0)
			status = complain(error.text);
	names_free(&names);
	return status;
}

static const struct command commands[] = {
	{ "list", show, HAS_ALL | HAS_JSON, 0, 0 },
	{ "info", show, HAS_JSON, 1, 1 },
	{ "bind", bind_them, HAS_FORCE | HAS_OWNER, 1, MAX_BDFS },
	{ "unbind", unbind, HAS_ALL, 1, MAX_BDFS },
};

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *error)
{
	struct options *o = options;

	switch (row->id) {
	case ID_ALL:
		o->given |= HAS_ALL;
		return PARSE_RUN;
	case 'j':
		o->given |= HAS_JSON;
		return PARSE_RUN;
	case ID_FORCE:
		o->given |= HAS_FORCE;
		o->bind.is_forced = true;
		return PARSE_RUN;
	case ID_OWNER:
		o->given |= HAS_OWNER;
		o->bind.has_owner = true;
		return owner_parse(arg, &o->bind.owner, error) < 0 ?
			       PARSE_WRONG :
			       PARSE_RUN;
	default:
		if (strlen(arg) >= MAX_ROOT_BYTES)
			return parse_wrong(error,
					   "--root: more than %d characters",
					   MAX_ROOT_BYTES - 1);
		machine.root = arg;
		return PARSE_RUN;
	}
}

static const struct option_table table = {
	.program = "mr-devices",
	.usage = usage,
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take,
};

static enum parse_result check(const struct options *o, struct mr_reason *error)
{
	static const char *const names[] = { "all", "json", "force", "owner" };
	const struct command *command = o->command;
	const bool is_all = command->run == unbind && o->given & HAS_ALL;
	const uint32_t wrong = o->given & ~command->takes;

	if (wrong != 0)
		return parse_wrong(error, "%s has no option --%s",
				   command->word, names[__builtin_ctz(wrong)]);
	if (is_all && o->n_bdfs > 0)
		return parse_wrong(error,
				   "unbind takes either addresses or --all");
	if (!is_all && o->n_bdfs < command->n_least)
		return parse_wrong(error,
				   "%s requires an address, such as "
				   "0000:03:00.0; see 'mr-devices list'",
				   command->word);
	if (o->n_bdfs > command->n_most)
		return parse_wrong(error, "%s takes at most %u addresses",
				   command->word, command->n_most);
	return PARSE_RUN;
}

static enum parse_result parse(int argc, char **argv, struct options *options,
			       struct mr_reason *error)
{
	const uint32_t n = sizeof(commands) / sizeof(commands[0]);
	enum parse_result result;
	uint32_t i = 0;
	int first;

	result = option_table_parse(&table, argc, argv, options, &first, error);
	if (result != PARSE_RUN)
		return result;
	if (first < argc) {
		while (i < n && strcmp(argv[first], commands[i].word) != 0)
			i++;
		if (i == n)
			return parse_wrong(error,
					   "unknown command '%s'; valid: list "
					   "info bind unbind",
					   argv[first]);
		options->bdfs = argv + first + 1;
		options->n_bdfs = (uint32_t)(argc - first - 1);
	}
	options->command = &commands[i];
	return check(options, error);
}

/* Commands that change something run exclusively. */
static int run(const struct options *options)
{
	const bool changes = options->command->n_most == MAX_BDFS;
	const int fd = changes ? notes_lock() : -1;
	int status;

	if (changes && fd == -EWOULDBLOCK)
		return complain("another mr-devices is running; wait for it");
	if (changes && fd < 0) {
		print_error("mr-devices: cannot write %s/run/millrace/devices: "
			    "%s%s",
			    machine.root, strerror(-fd),
			    fd == -EACCES ? ": run as root" : "");
		return 1;
	}
	status = options->command->run(options);
	if (changes)
		close(fd);
	return fflush(stdout) == 0 ? status : complain("cannot write");
}

int main(int argc, char **argv)
{
	struct mr_ctx_config config = { .size = sizeof(config) };
	struct options options = { 0 };
	struct mr_reason error;
	struct path sysfs;
	int status;

	machine.root = "";
	switch (parse(argc, argv, &options, &error)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : complain("cannot write");
	case PARSE_WRONG:
		complain(error.text);
		return 2;
	default:
		break;
	}
	sysfs = machine_path("/sys");
	config.sysfs = sysfs.text;
	if (mr_ctx_create(&config, &machine.ctx, &error) < 0)
		return complain(error.text);
	status = run(&options);
	mr_ctx_destroy(machine.ctx);
	return status;
}

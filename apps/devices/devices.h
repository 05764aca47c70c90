/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-devices: declarations, file by file. */
#ifndef DEVICES_H
#define DEVICES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <millrace/millrace.h>

/*
 * machine.c: the one machine that the program works on; tests choose a root
 * directory.
 */

enum { PATH_BYTES = 512, NAME_BYTES = 64 };

struct machine {
	const char *root; /* prefix of /sys, /proc, /dev and /run; "" */
	struct mr_ctx *ctx;
};
extern struct machine machine;

/* A path on the machine, from "/sys/..." and so on. */
struct path {
	char text[PATH_BYTES];
};
struct path machine_path(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* The first line of a file, without its end; "" if there is no file. */
void machine_read(struct path path, char *line, size_t n_bytes);
/* One write(), as sysfs requires. 0 or -errno. */
int machine_write(struct path path, const char *text);
/* The target of a link; "" if there is no link. */
void machine_link(struct path path, char target[PATH_BYTES]);
bool machine_exists(struct path path);

/* A directory's entries, sorted. */
struct names {
	int n;
	struct dirent **list;
};
/* 0 or -errno; names_free() in either case. */
int machine_names(struct path path, struct names *ret);
void names_free(struct names *names);

/* Set the message; returns err. */
int fail(struct mr_reason *reason, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* For loops that wait: nap sleeps, and returns false after the deadline. */
uint64_t machine_after_ms(uint32_t ms);
bool machine_nap(uint64_t until_ms);

/* device.c: information about a device, from the library and sysfs. */

struct device {
	struct mr_pci_info pci;
	const char *driver;    /* our vfio driver for it; NULL: none */
	struct names siblings; /* its IOMMU group, including itself */
	bool is_nic;
	bool is_vfio;  /* bound to vfio-pci or a driver of its kind */
	bool has_link; /* the interface reports its link */
	bool is_up;
	int mbps;               /* 0: unknown */
	char default_route[16]; /* its interface with that route; "": none */
	/* Its state before it was bound to vfio-pci. */
	bool is_remembered;
	char former_driver[32]; /* "": none */
	char former_interface[16];
};

/* device_free() in either case. 0 or -errno. */
int device_read(const char *bdf, struct device *ret,
		struct mr_reason *ret_error);
void device_free(struct device *device);

/* Only what the library knows. False: it was unplugged meanwhile. */
bool device_look(const char *bdf, struct mr_pci_info *ret);

/* Whether a user space program may own a group that contains this function, and
 * its kernel driver; "": none. */
bool device_leaves_group_viable(const char *bdf, char driver[32]);

/* The nodes through which a program opens a device, without root; "": none. */
struct nodes {
	struct path group, device;
};
struct nodes device_nodes(const struct mr_pci_info *pci);

/*
 * The process that has the device, or its group, open: its pid and name. False:
 * none visible. Taking a device from its user blocks in the kernel until the
 * user releases it, and cannot be interrupted.
 */
bool device_holder(const struct device *device, char pid[NAME_BYTES],
		   char name[NAME_BYTES]);

/*
 * notes.c: /run/millrace/devices has a file per device bound to vfio-pci, with
 * its previous kernel driver and interface. A reboot removes it, like the
 * binding.
 */

/* An fd that only one mr-devices can have open, or -errno. */
int notes_lock(void);
/* 0 or -errno. */
int notes_remember(const struct mr_pci_info *pci);
/* Fill in the former driver and interface. False: no note. */
bool notes_recall(const char *bdf, struct device *device);
void notes_forget(const char *bdf);
/* BDFs of all noted devices. 0 or -errno; none is not an error. */
int notes_names(struct names *ret);

/* owner.c: devices for users other than root. */

struct owner {
	char user[NAME_BYTES];
	uid_t uid;
	gid_t gid;
};

/* USER[:GROUP], by name or number; no group: the user's own, if any. */
int owner_parse(const char *text, struct owner *ret,
		struct mr_reason *ret_error);

/*
 * Give the nodes of a device that is bound to vfio-pci, and has an IOMMU, to
 * the owner. 0 or -errno with a reason.
 */
int owner_give(const char *bdf, const struct owner *owner,
	       struct mr_reason *ret_error);
/* Print the owner on stdout, and how much memory that user may lock. */
void owner_say(const char *bdf, const struct owner *owner);

/*
 * switch.c: move a function to another kernel driver, through sysfs: to
 * "vfio-pci"; to "", which is none; to the named driver; or, NULL, to any that
 * accepts it. 0 or -errno with a reason, after a while.
 */
int switch_to(const char *bdf, const char *driver, struct mr_reason *ret_error);

/* bind.c: devices handed to vfio-pci, and given back. */

struct bind_options {
	bool is_forced; /* also devices in use by this machine */
	bool has_owner; /* else their nodes keep their owner */
	struct owner owner;
};

/*
 * Bind n functions to vfio-pci: all or none. Prints what was done. 0 or -errno
 * with a reason.
 */
int bind_devices(char *const *bdfs, uint32_t n,
		 const struct bind_options *options,
		 struct mr_reason *ret_error);

/* Return a device to its former kernel driver. 0 or -errno with a reason. */
int bind_give_back(const char *bdf, struct mr_reason *ret_error);

/* show.c: output for people and programs. */

enum show { SHOW_LIST, SHOW_INFO, SHOW_JSON };

/*
 * Print a table, one device in full, or JSON, version 1:
 * mr-devices.schema.json. False: writing to stdout failed.
 */
bool show_devices(enum show how, const struct device *devices, uint32_t n);

#endif

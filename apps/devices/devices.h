/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-devices: what its files have in common, file by file. */
#ifndef DEVICES_H
#define DEVICES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <millrace/millrace.h>

/*
 * machine.c: the machine that the program works on, whose files are below a
 * folder that tests choose. There is one.
 */

enum { PATH_BYTES = 512, NAME_BYTES = 64 };

struct machine {
	const char *root; /* in front of /sys, /proc, /dev and /run; "" */
	struct mr_ctx *ctx;
};
extern struct machine machine;

/* A path on the machine, from "/sys/..." and so on. */
struct path {
	char text[PATH_BYTES];
};
struct path machine_path(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* The first line of a file, without its end; "" if there is none. */
void machine_read(struct path path, char *line, size_t n_bytes);
/* One write(), as sysfs wants it. 0 or -errno. */
int machine_write(struct path path, const char *text);
/* What a link points to; "" if there is no link. */
void machine_link(struct path path, char target[PATH_BYTES]);
bool machine_exists(struct path path);

/* A folder's entries, sorted. */
struct names {
	int n;
	struct dirent **list;
};
/* 0 or -errno; names_free() in either case. */
int machine_names(struct path path, struct names *ret);
void names_free(struct names *names);

/* Sets the line that says why; returns err. */
int fail(struct mr_reason *reason, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* For loops that wait: nap sleeps, and returns false when it is too late. */
uint64_t machine_after_ms(uint32_t ms);
bool machine_nap(uint64_t until_ms);

/*
 * device.c: what is known of a device, from the library and from sysfs beside
 * it.
 */

struct device {
	struct mr_pci_info pci;
	const char *driver;    /* ours that drives it by vfio; NULL: none */
	struct names siblings; /* its IOMMU group, itself included */
	bool is_nic;
	bool is_vfio;  /* bound to vfio-pci or a driver of its kind */
	bool has_link; /* the interface says whether it is up */
	bool is_up;
	int mbps;               /* 0: unknown */
	char default_route[16]; /* its interface that has it; "": none */
	/* As it was before it was bound to vfio-pci. */
	bool is_remembered;
	char former_driver[32]; /* "": none */
	char former_interface[16];
};

/* device_free() in either case. 0 or -errno. */
int device_read(const char *bdf, struct device *ret,
		struct mr_reason *ret_error);
void device_free(struct device *device);

/* Only what the library knows of it. False: it was unplugged meanwhile. */
bool device_look(const char *bdf, struct mr_pci_info *ret);

/* Whether a user space program may own a group with a function of this one, and
 * the kernel driver that it has; "": none. */
bool device_leaves_group_viable(const char *bdf, char driver[32]);

/* The nodes by which a program opens a device, without the root; "": none. */
struct nodes {
	struct path group, device;
};
struct nodes device_nodes(const struct mr_pci_info *pci);

/*
 * The process that has the device, or its group, open: its pid and name. False:
 * none that we may see. Taking a device away from its user blocks in the kernel
 * until the user lets go, and cannot be called off.
 */
bool device_holder(const struct device *device, char pid[NAME_BYTES],
		   char name[NAME_BYTES]);

/*
 * notes.c: /run/millrace/devices has a file per device that was bound to
 * vfio-pci, with the kernel driver and the interface that it had. Gone with a
 * reboot, as the binding is.
 */

/* An fd that no other mr-devices has while it is open, or -errno. */
int notes_lock(void);
/* 0 or -errno. */
int notes_remember(const struct mr_pci_info *pci);
/* Fill the former driver and interface. False: nothing is remembered. */
bool notes_recall(const char *bdf, struct device *device);
void notes_forget(const char *bdf);
/* BDFs of all that are remembered. 0 or -errno; none is no error. */
int notes_names(struct names *ret);

/* owner.c: devices for a user who is not root. */

struct owner {
	char user[NAME_BYTES];
	uid_t uid;
	gid_t gid;
};

/* USER[:GROUP], by name or number; no group: the user's own, if it has one. */
int owner_parse(const char *text, struct owner *ret,
		struct mr_reason *ret_error);

/*
 * Make the nodes of a device that is bound to vfio-pci, and has an IOMMU, the
 * owner's. 0 or -errno with a reason.
 */
int owner_give(const char *bdf, const struct owner *owner,
	       struct mr_reason *ret_error);
/* Say whose it is on stdout, and how much memory that user may lock. */
void owner_say(const char *bdf, const struct owner *owner);

/*
 * switch.c: one function from one kernel driver to another, by sysfs: to
 * "vfio-pci"; to "", which is none; to the kernel driver of this name; or,
 * NULL, to whichever takes it. 0 or -errno with a reason, after a while.
 */
int switch_to(const char *bdf, const char *driver, struct mr_reason *ret_error);

/* bind.c: devices handed to vfio-pci, and given back. */

/* How they are bound. */
struct bind_options {
	bool is_forced; /* also those that this machine uses */
	bool has_owner; /* else their nodes stay as they are */
	struct owner owner;
};

/*
 * Bind n functions to vfio-pci: all or none. Says on stdout what was done. 0 or
 * -errno with a reason.
 */
int bind_devices(char *const *bdfs, uint32_t n,
		 const struct bind_options *options,
		 struct mr_reason *ret_error);

/* Give one back to the kernel driver that it had. 0 or -errno with a reason. */
int bind_give_back(const char *bdf, struct mr_reason *ret_error);

/* show.c: devices for people, and for programs. */

enum show { SHOW_LIST, SHOW_INFO, SHOW_JSON };

/*
 * Print a table, all of one device, or JSON, version 1: mr-devices.schema.json.
 * False: stdout is full.
 */
bool show_devices(enum show how, const struct device *devices, uint32_t n);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of the plug-ins that a process loads, which use the library. */
#ifndef PLUGIN_H
#define PLUGIN_H

/* Found in the loaded file as `plugin`. Its functions return 0 or -errno. */
struct plugin {
	int (*open)(const char *spec); /* null:, and a port that it sends to */
	int (*start)(void); /* a thread that forwards from one to the other */
	int (*pass)(void);  /* wait until it has forwarded more */
	int (*end)(void);   /* the thread, if there is one */
	int (*close)(void); /* the rest; -EBUSY if pages are missing */
	int (*abandon)(void); /* attach a thread to a worker, end the thread */
	int (*leave)(int status); /* the process, from another thread */
	int (*guard)(int fd); /* until release(): a child does not get it */
	int (*release)(int fd); /* close it */
	const void *(*library)(void); /* the address of a function there */
};

#endif

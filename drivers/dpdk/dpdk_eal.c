/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EAL: DPDK's environment, which can be started only once per process: its
 * clean-up leaves threads behind, and it refuses a second start. So this file
 * has Millrace's only global state.
 *
 * It is started on a temporary thread: EAL pins the thread that starts it to a
 * core, which all its child threads would inherit. All signals are blocked in
 * it, so that EAL's interrupt thread does not receive the program's.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_version.h>

#include "dpdk.h"

enum {
	MAX_WORDS = 64,
	MAX_TEXT = 1024,
	/* Enough for a device's rings; buffers and headers are ours. */
	NO_HUGE_MIB = 128,
	MIN_HUGE_PAGES = 16,
};

enum state { NOT_STARTED, STARTED, PROGRAMS_OWN, FAILED };

/* One thread at a time calls DPDK's control functions; guards all here. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static enum state state;
static char options_used[MAX_TEXT];
/* Of the last start. EAL keeps a pointer to the first word, always the same. */
static char words_text[4 * MAX_TEXT];
static size_t n_text_used;
static bool has_no_room; /* too many words */
static char *words[MAX_WORDS + 1];
static int n_words;
static char why_failed[250];
static FILE *stream, *programs_stream; /* for DPDK's log */

/* DPDK's log messages go to the context of the call in progress ... */
struct listener {
	struct mr_ctx *ctx;
	bool is_deaf; /* errors are expected */
	char first_error[200];
	char last_line[200];
};

static struct listener listener;
static __thread struct listener *my_listener;

/* ... or, from DPDK's own threads, to that of a port. */
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dpdk_port *ports;

static enum mr_log_level level_of(int level)
{
	if (level <= (int)RTE_LOG_ERR)
		return MR_LOG_ERROR;
	if (level == (int)RTE_LOG_WARNING)
		return MR_LOG_WARNING;
	return level == (int)RTE_LOG_NOTICE ? MR_LOG_INFO : MR_LOG_DEBUG;
}

static void log_line(const char *line)
{
	const enum mr_log_level level = level_of(rte_log_cur_msg_loglevel());

	if (my_listener != NULL) {
		struct listener *l = my_listener;

		if (level == MR_LOG_ERROR && l->first_error[0] == '\0')
			snprintf(l->first_error, sizeof(l->first_error), "%s",
				 line);
		snprintf(l->last_line, sizeof(l->last_line), "%s", line);
		/* The call's own reason includes it if the call fails. */
		mr_log(l->ctx, l->is_deaf ? MR_LOG_DEBUG : MR_LOG_INFO,
		       "dpdk: %s", line);
		return;
	}
	pthread_mutex_lock(&ports_lock);
	if (ports != NULL)
		mr_log(ports->base->ctx, level, "dpdk: %s", line);
	pthread_mutex_unlock(&ports_lock);
}

/* Write function of DPDK's log stream: mostly one line at a time. */
static ssize_t write_log(void *cookie, const char *bytes, size_t n_bytes)
{
	char line[256];
	size_t n = 0;

	(void)cookie;
	for (size_t i = 0; i < n_bytes; i++) {
		if (bytes[i] != '\n' && n + 1 < sizeof(line)) {
			line[n++] = bytes[i];
			continue;
		}
		line[n] = '\0';
		if (n > 0)
			log_line(line);
		n = 0;
	}
	line[n] = '\0';
	if (n > 0)
		log_line(line);
	return (ssize_t)n_bytes;
}

void mri_dpdk_enter(struct mr_ctx *ctx)
{
	pthread_mutex_lock(&lock);
	listener = (struct listener){ .ctx = ctx };
	my_listener = &listener;
}

void mri_dpdk_leave(void)
{
	my_listener = NULL;
	pthread_mutex_unlock(&lock);
}

void mri_dpdk_ask(bool is_deaf)
{
	listener.is_deaf = is_deaf;
	listener.first_error[0] = '\0';
	listener.last_line[0] = '\0';
}

const char *mri_dpdk_why(int err)
{
	if (my_listener == NULL)
		return rte_strerror(err);
	if (listener.first_error[0] != '\0')
		return listener.first_error;
	return listener.last_line[0] != '\0' ? listener.last_line :
					       rte_strerror(err);
}

void mri_dpdk_add_port(struct dpdk_port *port)
{
	pthread_mutex_lock(&ports_lock);
	port->next = ports;
	ports = port;
	pthread_mutex_unlock(&ports_lock);
}

void mri_dpdk_remove_port(struct dpdk_port *port)
{
	struct dpdk_port **at = &ports;

	pthread_mutex_lock(&ports_lock);
	while (*at != NULL && *at != port)
		at = &(*at)->next;
	if (*at == port)
		*at = port->next;
	pthread_mutex_unlock(&ports_lock);
}

struct dpdk_port *mri_dpdk_port_on(const struct rte_device *device)
{
	struct dpdk_port *port;

	pthread_mutex_lock(&ports_lock);
	for (port = ports; port != NULL && port->device != device;)
		port = port->next;
	pthread_mutex_unlock(&ports_lock);
	return port;
}

/* Whether one of the program's options begins with this word. */
static bool has_word(const char *options, const char *word)
{
	const size_t n = strlen(word);

	while (options != NULL) {
		options += strspn(options, " ");
		if (strncmp(options, word, n) == 0)
			return true;
		options = strchr(options, ' ');
	}
	return false;
}

/* If there is no room, the start is refused. */
static void add_word(const char *word)
{
	const size_t n = strlen(word) + 1;

	if (n_words == MAX_WORDS || n_text_used + n > sizeof(words_text)) {
		has_no_room = true;
		return;
	}
	words[n_words++] = memcpy(words_text + n_text_used, word, n);
	n_text_used += n;
}

static void add_words(const char *options)
{
	char text[MAX_TEXT], *rest = text, *word;

	snprintf(text, sizeof(text), "%s", options != NULL ? options : "");
	while ((word = strsep(&rest, " ")) != NULL)
		if (word[0] != '\0')
			add_word(word);
}

/* A single lcore, without a thread, on all the cores that we may use. */
static void add_lcore(void)
{
	char text[MAX_TEXT] = "--lcores=0@(";
	size_t n = strlen(text);
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return;
	for (int i = 0; i < CPU_SETSIZE && n + 8 < sizeof(text); i++)
		if (CPU_ISSET(i, &cpus))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%d,",
					      i);
	text[n - 1] = ')';
	add_word(text);
}

static bool has_huge_pages(void)
{
	const char folder[] = "/sys/kernel/mm/hugepages";
	struct dirent *entry;
	DIR *dir = opendir(folder);
	bool has = false;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		unsigned long n = 0;
		char path[400];
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s/free_hugepages", folder,
			 entry->d_name);
		file = fopen(path, "re");
		if (file == NULL)
			continue;
		if (fscanf(file, "%lu", &n) == 1 &&
		    n >= (strstr(path, "-1048576kB") != NULL ? 1 :
							       MIN_HUGE_PAGES))
			has = true;
		fclose(file);
	}
	if (dir != NULL)
		closedir(dir);
	return has;
}

/* Our own options, unless the program's options override them; then those. */
static void make_words(const char *options)
{
	const bool is_small =
		has_word(options, "--no-huge") ||
		(!has_word(options, "-m") &&
		 !has_word(options, "--socket-mem") && !has_huge_pages());
	char text[32];

	n_words = 0;
	n_text_used = 0;
	has_no_room = false;
	add_word("millrace");
	/* Nothing in /run, nothing shared: EAL has two options for this. */
	if (!has_word(options, "--file-prefix") &&
	    !has_word(options, "--proc-type"))
		add_word(is_small ? "--no-shconf" : "--in-memory");
	add_word("--no-telemetry");
	/*
	 * A device that no machine has: without a device list, EAL takes every
	 * device it can drive.
	 */
	if (!has_word(options, "-a") && !has_word(options, "--allow") &&
	    !has_word(options, "-b") && !has_word(options, "--block") &&
	    !has_word(options, "--no-pci"))
		add_word("--allow=ffff:ff:1f.7");
	/* The lcores parsed by a failed start remain, and are ours. */
	if (state == NOT_STARTED && !has_word(options, "-l") &&
	    !has_word(options, "-c") && !has_word(options, "--lcores"))
		add_lcore();
	if (is_small && !has_word(options, "--no-huge")) {
		add_word("--no-huge");
		snprintf(text, sizeof(text), "-m%d", NO_HUGE_MIB);
		add_word(text);
	}
	add_words(options);
}

static void *start_eal(void *opaque)
{
	int *ret_err = opaque;
	char *argv[MAX_WORDS + 1];

	my_listener = &listener;
	memcpy(argv, words, sizeof(argv)); /* EAL reorders it */
	argv[n_words] = NULL;
	if (rte_eal_init(n_words, argv) < 0)
		*ret_err = rte_errno != 0 ? rte_errno : EIO;
	my_listener = NULL;
	return NULL;
}

/* On a temporary thread. 0, or EAL's errno value. */
static int start_in_thread(void)
{
	sigset_t all, before;
	pthread_t thread;
	int err = 0;

	sigfillset(&all);
	/* style: pthread_sigmask: for the thread that EAL leaves behind */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* style: pthread_create: it ends below */
	if (pthread_create(&thread, NULL, start_eal, &err) != 0)
		err = EAGAIN;
	else
		pthread_join(thread, NULL);
	/* style: pthread_sigmask: as it was */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int open_log(void)
{
	const cookie_io_functions_t functions = { .write = write_log };

	programs_stream = rte_log_get_stream();
	stream = fopencookie(NULL, "w", functions);
	return stream == NULL || rte_openlog_stream(stream) != 0 ? -ENOMEM : 0;
}

/* EAL turned out to be the program's, and so is its log. */
static void give_log_back(void)
{
	(void)rte_openlog_stream(programs_stream);
	fclose(stream);
	stream = NULL;
}

/*
 * EAL can be started again after some failures, such as an unknown option.
 * After others it claims to be running already, which it is not.
 */
static int try_start(struct mr_ctx *ctx, const char *options,
		     struct mr_reason *reason)
{
	int err;

	if (stream == NULL && open_log() < 0)
		return mr_fail(reason, -ENOMEM, "dpdk: no memory for a log");
	make_words(options);
	if (has_no_room)
		return mr_fail(reason, -EINVAL,
			       "dpdk: option eal: too many words");
	err = start_in_thread();
	if (err == 0 || (err == EALREADY && state == NOT_STARTED)) {
		state = err == 0 ? STARTED : PROGRAMS_OWN;
		if (state == PROGRAMS_OWN)
			give_log_back();
		mri_dpdk_ask(false); /* its log reported no failure */
		snprintf(options_used, sizeof(options_used), "%s",
			 options != NULL ? options : "");
		mr_log(ctx, MR_LOG_INFO, "dpdk: %s, %s, IOVA as %s",
		       err == 0 ? "EAL started" : "EAL started by the program",
		       rte_version(),
		       rte_eal_iova_mode() == RTE_IOVA_VA ? "VA" : "PA");
		return 0;
	}
	if (err != EALREADY)
		snprintf(why_failed, sizeof(why_failed), "%s (%s)",
			 mri_dpdk_why(err), rte_strerror(err));
	state = FAILED;
	return mr_fail(
		reason, -EIO, "dpdk: EAL does not start: %s%s", why_failed,
		err == EALREADY ?
			" (first attempt); only a new process can try again" :
			"");
}

int mri_dpdk_eal_start(struct mr_ctx *ctx, const char *options,
		       struct mr_reason *reason)
{
	int err;

	if (options != NULL && strlen(options) >= MAX_TEXT)
		return mr_fail(reason, -EINVAL,
			       "dpdk: option eal: longer than %d characters",
			       MAX_TEXT - 1);
	if (state == NOT_STARTED || state == FAILED) {
		err = try_start(ctx, options, reason);
		if (err < 0 || state == STARTED)
			return err;
	}
	if (options != NULL &&
	    (state == PROGRAMS_OWN || strcmp(options, options_used) != 0))
		return mr_fail(
			reason, -EALREADY,
			"dpdk: EAL is already running, %s%s%s; it starts once "
			"per process, with the options of the first port",
			state == PROGRAMS_OWN ? "started by the program" :
						"with the options '",
			state == PROGRAMS_OWN ? "" : options_used,
			state == PROGRAMS_OWN ? "" : "'");
	return 0;
}

bool mri_dpdk_eal_is_ours(void)
{
	return state == STARTED;
}

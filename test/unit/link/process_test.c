/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library in a process that loads and unloads it at run time, forks, exits
 * with open ports and running threads, and has two versions at once. This
 * program is not linked with it. Its ports are null:, or those that the
 * environment names.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin.h"
#include "support/unit.h"

enum { N_TIMES = 5, WAIT_MS = 20000, STATUS = 7 };

static const char *spec(const char *name)
{
	return getenv(name) ? getenv(name) : "null:";
}

struct loaded {
	void *handle;
	const struct plugin *plugin;
};

/* Load the plug-in in file `name`, and with it the library. */
static struct loaded load_plugin(const char *name, int flags)
{
	struct loaded it = { .handle = dlopen(name, RTLD_NOW | flags) };

	if (it.handle == NULL)
		fail_msg("%s", dlerror());
	it.plugin = dlsym(it.handle, "plugin");
	assert_non_null(it.plugin);
	return it;
}

static void unload(struct loaded it, const char *name)
{
	assert_int_equal(dlclose(it.handle), 0);
	assert_null(dlopen(name, RTLD_NOW | RTLD_NOLOAD)); /* it is gone */
}

static uint32_t n_in(const char *path)
{
	DIR *folder = opendir(path);
	uint32_t n = 0;

	assert_non_null(folder);
	while (readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

/* How many mappings there are of the library, its plug-ins and its memory. */
static uint32_t n_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];
	uint32_t n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "millrace") || strstr(line, "memfd:") ||
		     strstr(line, "plugin");
	fclose(file);
	return n;
}

static void pause_1ms(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	nanosleep(&pause, NULL);
}

/* /proc shows a thread for a moment after it was joined. */
static bool has_one_thread(void)
{
	for (uint32_t ms = 0; ms < test_limit_ms(WAIT_MS); ms++) {
		if (n_in("/proc/self/task") == 3) /* with . and .. */
			return true;
		pause_1ms();
	}
	return false;
}

/* A child's exit status; from 128: a signal, or it did not end. */
static int status_of(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	for (uint32_t ms = 0; ms < test_limit_ms(WAIT_MS); ms++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) :
						   128 + WTERMSIG(status);
		pause_1ms();
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 128;
}

static int use(const struct plugin *plugin, const char *port)
{
	int err = plugin->open(port);

	if (err == 0)
		err = plugin->start();
	if (err == 0)
		err = plugin->pass();
	if (err == 0)
		err = plugin->end();
	return err < 0 ? err : plugin->close();
}

static void ended(int err)
{
	exit(err == 0 ? STATUS : 1);
}

TEST(unloaded_library_leaves_nothing)
{
	const uint32_t n_fds = n_in("/proc/self/fd");

	for (int i = 0; i < N_TIMES; i++) {
		struct loaded it = load_plugin(PLUGIN_ONE, RTLD_LOCAL);

		assert_true(n_mappings() > 0);
		assert_int_equal(use(it.plugin, spec("PORT_ONE")), 0);
		assert_int_equal(use(it.plugin, spec("PORT_ONE")), 0);
		unload(it, LIBRARY_ONE);
		assert_int_equal(n_in("/proc/self/fd"), n_fds);
		assert_true(has_one_thread());
		assert_int_equal(n_mappings(), 0);
	}
}

/* Its fork handlers are gone, too; otherwise fork() would call unmapped code.
 */
TEST(fork_after_unload)
{
	for (int i = 0; i < N_TIMES; i++) {
		struct loaded it = load_plugin(PLUGIN_ONE, RTLD_LOCAL);
		const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		pid_t pid;

		assert_int_equal(it.plugin->guard(fd), 0);
		pid = fork();
		if (pid == 0)
			_exit(fcntl(fd, F_GETFD) < 0 ? STATUS : 1);
		assert_int_equal(status_of(pid), STATUS);
		it.plugin->release(fd);
		unload(it, LIBRARY_ONE);
		pid = fork();
		if (pid == 0)
			_exit(STATUS);
		assert_int_equal(status_of(pid), STATUS);
	}
}

/*
 * The parent keeps forwarding. Its thread has started before the fork: a new
 * thread allocates in ASan, whose lock a child would inherit.
 */
TEST(forked_child_uses_the_library_itself)
{
	struct loaded it = load_plugin(PLUGIN_ONE, RTLD_LOCAL);
	const struct plugin *plugin = it.plugin;

	assert_int_equal(plugin->open(spec("PORT_ONE")), 0);
	assert_int_equal(plugin->start(), 0);
	assert_int_equal(plugin->pass(), 0);
	for (int i = 0; i < N_TIMES; i++) {
		const pid_t pid = fork();

		if (pid == 0)
			ended(use(plugin, spec("PORT_OTHER")));
		assert_int_equal(plugin->pass(), 0);
		assert_int_equal(status_of(pid), STATUS);
	}
	assert_int_equal(plugin->end(), 0);
	assert_int_equal(plugin->close(), 0);
	unload(it, LIBRARY_ONE);
}

/* While ports are open and a thread in the library forwards. */
TEST(process_exits)
{
	struct loaded it = load_plugin(PLUGIN_ONE, RTLD_LOCAL);

	for (int how = 0; how < 4 * 3; how++) {
		const pid_t pid = fork();

		if (pid == 0) {
			if (it.plugin->open(spec("PORT_ONE")) < 0 ||
			    it.plugin->start() < 0 || it.plugin->pass() < 0)
				_exit(1);
			if (how % 4 == 0)
				exit(STATUS);
			if (how % 4 == 1)
				_exit(STATUS);
			if (how % 4 == 2)
				quick_exit(STATUS);
			_exit(it.plugin->leave(STATUS));
		}
		assert_int_equal(status_of(pid), STATUS);
	}
	unload(it, LIBRARY_ONE);
}

/* The worker stays unusable, but leaks nothing. */
TEST(thread_ends_attached)
{
	struct loaded it = load_plugin(PLUGIN_ONE, RTLD_LOCAL);

	assert_int_equal(it.plugin->open(spec("PORT_ONE")), 0);
	assert_int_equal(it.plugin->abandon(), 0);
	assert_int_equal(it.plugin->close(), 0);
	unload(it, LIBRARY_ONE);
	assert_int_equal(n_mappings(), 0);
}

static void is_in(const void *address, const char *library)
{
	Dl_info info;

	assert_true(dladdr(address, &info) != 0);
	assert_non_null(strstr(info.dli_fname, library));
}

/* Even if each sees the other's symbols: symbol versions keep them apart. */
TEST(two_versions_in_a_process)
{
	const int flags[] = { RTLD_LOCAL, RTLD_GLOBAL };

	for (int i = 0; i < 4; i++) {
		struct loaded one = load_plugin(PLUGIN_ONE, flags[i % 2]);
		struct loaded other = load_plugin(PLUGIN_OTHER, flags[i / 2]);
		pid_t pid;

		is_in(one.plugin->library(), "libmillrace.so");
		is_in(other.plugin->library(), "libmillrace-other.so");
		assert_int_equal(one.plugin->open(spec("PORT_ONE")), 0);
		assert_int_equal(one.plugin->start(), 0);
		assert_int_equal(use(other.plugin, spec("PORT_OTHER")), 0);
		assert_int_equal(other.plugin->open(spec("PORT_OTHER")), 0);
		assert_int_equal(other.plugin->start(), 0);
		assert_int_equal(one.plugin->pass(), 0);
		assert_int_equal(other.plugin->pass(), 0);
		pid = fork();
		if (pid == 0)
			ended(use(one.plugin, "null:") |
			      use(other.plugin, "null:"));
		assert_int_equal(status_of(pid), STATUS);
		assert_int_equal(one.plugin->end(), 0);
		assert_int_equal(one.plugin->close(), 0);
		unload(one, LIBRARY_ONE);
		assert_int_equal(other.plugin->pass(), 0);
		assert_int_equal(other.plugin->end(), 0);
		assert_int_equal(other.plugin->close(), 0);
		unload(other, LIBRARY_OTHER);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a series is done. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/journal.h"
#include "result/file.h"

static const char schema[] = "mr-bench-plan";

enum { PATH_CHARS = PLAN_PATH_CHARS + 4 * PLAN_NAME_CHARS + 16 };

static int fail(struct mr_reason *why, int err, const char *path,
		const char *text)
{
	snprintf(why->text, sizeof(why->text), "%.300s: %s", path, text);
	return err;
}

/* A folder, and those that it lies in. */
static int make_folders(const char *path)
{
	char part[PLAN_PATH_CHARS];
	struct stat found;

	snprintf(part, sizeof(part), "%s", path);
	for (char *at = part + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	if (mkdir(part, 0777) < 0 && errno != EEXIST)
		return -errno;
	if (stat(part, &found) < 0)
		return -errno;
	return S_ISDIR(found.st_mode) ? 0 : -ENOTDIR;
}

void journal_path(const struct journal *journal, const char *name,
		  const char *end, char *ret, size_t n_bytes)
{
	snprintf(ret, n_bytes, "%s/%s%s", journal->folder, name, end);
}

static json_t *steps_of(const struct journal *journal)
{
	return json_object_get(journal->root, "steps");
}

static bool is_ours(const json_t *root)
{
	const char *name = json_string_value(json_object_get(root, "schema"));

	return name != NULL && strcmp(name, schema) == 0 &&
	       json_integer_value(json_object_get(root, "v")) == 1 &&
	       json_is_object(json_object_get(root, "steps"));
}

/* Two series in one folder would measure each other. */
static int claim(const char *folder, int *ret_fd, struct mr_reason *why)
{
	int err = make_folders(folder);

	if (err < 0)
		return fail(why, err, folder, strerror(-err));
	*ret_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd >= 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	err = -errno;
	if (*ret_fd >= 0)
		close(*ret_fd);
	return fail(why, err, folder,
		    err == -EWOULDBLOCK ? "another mr-bench plan is at work "
					  "there; give another --folder" :
					  strerror(-err));
}

static int read_root(struct journal *journal, struct mr_reason *why)
{
	char path[PATH_CHARS];
	json_error_t error;

	journal_path(journal, "plan", ".journal", path, sizeof(path));
	if (access(path, F_OK) != 0) {
		journal->root = json_pack("{s:s, s:i, s:{}}", "schema", schema,
					  "v", 1, "steps");
		return journal->root != NULL ?
			       0 :
			       fail(why, -ENOMEM, path, "no memory");
	}
	journal->root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (is_ours(journal->root))
		return 0;
	return fail(why, -EBADMSG, path,
		    "no journal of a plan; choose another folder, or remove "
		    "it");
}

int journal_open(const char *folder, bool is_to_write, struct journal *ret,
		 struct mr_reason *why)
{
	int err;

	*ret = (struct journal){ .lock_fd = -1 };
	snprintf(ret->folder, sizeof(ret->folder), "%s", folder);
	if (is_to_write) {
		err = claim(folder, &ret->lock_fd, why);
		if (err < 0)
			return err;
	}
	err = read_root(ret, why);
	if (err < 0)
		journal_close(ret);
	return err;
}

void journal_close(struct journal *journal)
{
	json_decref(journal->root);
	journal->root = NULL;
	if (journal->lock_fd >= 0)
		close(journal->lock_fd);
	journal->lock_fd = -1;
}

static bool has_text(const json_t *step, const char *member, const char *wanted)
{
	const char *text = json_string_value(json_object_get(step, member));

	return text != NULL && strcmp(text, wanted) == 0;
}

bool journal_has(const struct journal *journal, const char *name,
		 const struct journal_key *key)
{
	const json_t *step = json_object_get(steps_of(journal), name);
	char path[PATH_CHARS];

	journal_path(journal, name, ".json", path, sizeof(path));
	return has_text(step, "run", key->run) &&
	       has_text(step, "setup", key->setup) &&
	       has_text(step, "program", key->program) &&
	       json_integer_value(json_object_get(step, "status")) == 0 &&
	       access(path, F_OK) == 0;
}

static bool has_step(const struct step *steps, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(steps[i].name, name) == 0)
			return true;
	return false;
}

uint32_t journal_count_others(const struct journal *journal,
			      const struct step *steps, uint32_t n)
{
	char path[PATH_CHARS];
	uint32_t n_others = 0;
	const char *name;
	json_t *step;

	json_object_foreach(steps_of(journal), name, step)
	{
		journal_path(journal, name, ".json", path, sizeof(path));
		n_others +=
			!has_step(steps, n, name) && access(path, F_OK) == 0;
	}
	return n_others;
}

static bool print_root(const void *opaque, FILE *to)
{
	const struct journal *journal = opaque;

	return json_dumpf(journal->root, to, JSON_INDENT(1)) == 0 &&
	       fputc('\n', to) != EOF;
}

int journal_note(struct journal *journal, const char *name,
		 const struct journal_key *key, double seconds, int status,
		 struct mr_reason *why)
{
	json_t *step = json_pack("{s:s, s:s, s:s, s:i, s:f}", "run", key->run,
				 "setup", key->setup, "program", key->program,
				 "status", status, "seconds", seconds);
	char path[PATH_CHARS];

	journal_path(journal, "plan", ".journal", path, sizeof(path));
	if (step == NULL ||
	    json_object_set_new(steps_of(journal), name, step) < 0)
		return fail(why, -ENOMEM, path, "no memory");
	return file_write(path, print_root, journal, why);
}

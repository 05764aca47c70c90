/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without a fuzzer, on randomly mutated seeds. Takes some of
 * libFuzzer's flags and ignores the others:
 *
 *     fuzz-spec [-runs=N] [-max_total_time=S] [-seed=N] [-artifact_prefix=P]
 *     fuzz-spec FILE...
 *
 * The current input is kept in a file, so that it survives a crash; the file's
 * name is printed first. The same seed gives the same inputs.
 */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "support/random.h"

enum { MAX_BYTES = 4096, MAX_CHANGES = 8 };

/* What is tried now. */
struct trial {
	size_t n_bytes;
	uint8_t bytes[MAX_BYTES];
};

struct options {
	uint64_t n_runs, seed;
	double seconds;
	const char *prefix; /* of the file that has the input */
};


static size_t below(uint64_t *state, size_t n)
{
	return n == 0 ? 0 : test_random_u64(state) % n;
}

static void change(struct trial *trial, uint64_t *state)
{
	static const uint8_t edges[] = { 0, 1, 0x7f, 0x80, 0xff, ',', '=', ':',
					 '\\', '0', '9' };
	const size_t n = trial->n_bytes;
	const size_t at = below(state, n);

	switch (below(state, 6)) {
	case 0: /* another bit */
		if (n > 0)
			trial->bytes[at] ^= (uint8_t)(1u << below(state, 8));
		break;
	case 1: /* another byte */
		if (n > 0)
			trial->bytes[at] = (uint8_t)test_random_u64(state);
		break;
	case 2: /* a byte that means something */
		if (n > 0)
			trial->bytes[at] = edges[below(state, sizeof(edges))];
		break;
	case 3: /* cut off */
		trial->n_bytes = at;
		break;
	case 4: /* a byte more */
		if (n == MAX_BYTES)
			break;
		memmove(&trial->bytes[at + 1], &trial->bytes[at], n - at);
		trial->bytes[at] = edges[below(state, sizeof(edges))];
		trial->n_bytes++;
		break;
	default: { /* a part of it again */
		const size_t n_more = below(state, n - at + 1);

		if (n + n_more > MAX_BYTES)
			break;
		memcpy(&trial->bytes[n], &trial->bytes[at], n_more);
		trial->n_bytes += n_more;
	}
	}
}

static void run_trial(const struct trial *trial, int kept_fd)
{
	const size_t n = trial->n_bytes;
	/* A copy of its very size, so that ASan sees a read behind it. */
	uint8_t *bytes = malloc(n + 1);

	if (bytes == NULL)
		err(1, "no memory");
	if (pwrite(kept_fd, trial->bytes, n, 0) != (ssize_t)n ||
	    ftruncate(kept_fd, (off_t)n) < 0)
		err(1, "the input cannot be kept");
	memcpy(bytes, trial->bytes, n);
	LLVMFuzzerTestOneInput(bytes, n);
	free(bytes);
}

static void run_file(const char *path, int kept_fd)
{
	struct trial trial;
	FILE *file = fopen(path, "rbe");

	if (file == NULL)
		err(1, "%s", path);
	trial.n_bytes = fread(trial.bytes, 1, MAX_BYTES, file);
	fclose(file);
	run_trial(&trial, kept_fd);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t run_random(const struct options *o, int kept_fd)
{
	const double end_s = now_s() + o->seconds;
	uint64_t state = o->seed * 2 + 1, n; /* never 0 */
	struct trial trial;
	size_t n_seeds = 0;

	while (fuzz_seeds[n_seeds].bytes != NULL)
		n_seeds++;
	for (n = 0; n < o->n_runs && now_s() < end_s; n++) {
		const struct fuzz_seed *from = &fuzz_seeds[n % n_seeds];

		trial.n_bytes = from->n_bytes;
		memcpy(trial.bytes, from->bytes, from->n_bytes);
		/* The first round is the seeds as they are. */
		for (size_t i = n < n_seeds ? 0 : 1 + below(&state, MAX_CHANGES);
		     i > 0; i--)
			change(&trial, &state);
		run_trial(&trial, kept_fd);
	}
	return n;
}

/* The value of a flag, or NULL if the argument is another. */
static const char *value_of(const char *argument, const char *flag)
{
	const size_t n = strlen(flag);

	return strncmp(argument, flag, n) == 0 ? argument + n : NULL;
}

/* Whether it is a flag, which need not be one of ours. */
static bool read_flag(struct options *o, const char *argument)
{
	const char *value;

	if ((value = value_of(argument, "-runs=")) != NULL)
		o->n_runs = strtoull(value, NULL, 10);
	else if ((value = value_of(argument, "-max_total_time=")) != NULL)
		o->seconds = strtod(value, NULL);
	else if ((value = value_of(argument, "-seed=")) != NULL)
		o->seed = strtoull(value, NULL, 10);
	else if ((value = value_of(argument, "-artifact_prefix=")) != NULL)
		o->prefix = value;
	return argument[0] == '-';
}

int main(int argc, char **argv)
{
	struct options o = { .n_runs = UINT64_MAX,
			     .seed = 1,
			     .seconds = 1e9,
			     .prefix = "/tmp/mr-fuzz-" };
	int n_files = 0, kept_fd;
	char *path;

	for (int i = 1; i < argc; i++) {
		if (!read_flag(&o, argv[i]))
			argv[n_files++] = argv[i];
	}
	if (asprintf(&path, "%sXXXXXX", o.prefix) < 0)
		err(1, "no memory");
	kept_fd = mkostemp(path, O_CLOEXEC);
	if (kept_fd < 0)
		err(1, "%s", path);
	printf("the input that is tried is in %s\n", path);
	fflush(stdout);
	for (int i = 0; i < n_files; i++)
		run_file(argv[i], kept_fd);
	if (n_files == 0)
		printf("%" PRIu64 " inputs\n", run_random(&o, kept_fd));
	unlink(path);
	free(path);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a running instance, from the command line. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>

#include "control.h"
#include "support/text.h"

static int complain(const char *what, const char *why)
{
	print_error("mr-nat: %s%s%s", what, why[0] != '\0' ? ": " : "", why);
	return 1;
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static long long number_of(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void print_session(json_t *o)
{
	char left[16] = "static";

	if (json_object_get(o, "left_s") != NULL)
		snprintf(left, sizeof(left), "%lld s", number_of(o, "left_s"));
	if (json_is_string(json_object_get(o, "proto")))
		printf("%-5s", text_of(o, "proto"));
	else
		printf("%-5lld", number_of(o, "proto"));
	printf(" %-21s %-21s %-21s %-8s %8s %10lld %10lld\n",
	       text_of(o, "inside"), text_of(o, "outside"),
	       text_of(o, "remote"), text_of(o, "state"), left,
	       number_of(o, "out"), number_of(o, "in"));
}

/* A line per number, such as "xdp:eth0 queues 0 rx received 7". */
static void print_counters(json_t *value, const char *name)
{
	char within[128];
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_integer(value))
		printf("%s %lld\n", name, (long long)json_integer_value(value));
	json_object_foreach(value, key, item)
	{
		snprintf(within, sizeof(within), "%s%s%s", name,
			 name[0] != '\0' ? " " : "", key);
		print_counters(item, within);
	}
	json_array_foreach(value, i, item)
	{
		key = text_of(item, "port");
		if (key[0] != '\0')
			snprintf(within, sizeof(within), "%s", key);
		else
			snprintf(within, sizeof(within), "%s %zu", name, i);
		print_counters(item, within);
	}
}

/* One line of the answer; 1 if it is the last, -1 if it is an error. */
static int take_line(const struct options *options, const char *line,
		     bool *is_first)
{
	json_t *object = json_loads(line, 0, NULL);
	const char *error = text_of(object, "error");
	int result = 0;

	if (object == NULL || error[0] != '\0') {
		complain(error[0] != '\0' ? error : "the answer is not JSON",
			 "");
		result = -1;
	} else if (json_object_get(object, "end") != NULL) {
		result = 1;
		if (options->command == NAT_CLEAR)
			printf("%lld ended\n", number_of(object, "cleared"));
		if (json_is_false(json_object_get(object, "saved")))
			complain("the state file could not be written",
				 "after a crash these sessions may return");
	} else if (options->run.output == OUTPUT_JSON) {
		fputs(line, stdout);
	} else if (options->command == NAT_STATS) {
		print_counters(object, "");
	} else {
		if (*is_first)
			printf("%-5s %-21s %-21s %-21s %-8s %8s %10s %10s\n",
			       "proto", "inside", "outside", "remote", "state",
			       "left", "out", "in");
		*is_first = false;
		print_session(object);
	}
	json_decref(object);
	return result;
}

static int read_answer(const struct options *options, FILE *from)
{
	char *line = NULL;
	size_t n_max = 0;
	bool is_first = true;
	int result = 0;

	while (result == 0 && getline(&line, &n_max, from) > 0)
		result = take_line(options, line, &is_first);
	free(line);
	if (result == 0)
		return complain("the answer is incomplete", "");
	if (fflush(stdout) != 0)
		return complain("cannot write to stdout", "");
	return result == 1 ? 0 : 1;
}

/* Only root looks at the path of root's sockets. */
static const char *why_none(int err)
{
	if (err != ENOENT && err != ECONNREFUSED)
		return strerror(err);
	return geteuid() == 0 ?
		       "no instance of this name is running; choose another "
		       "with --instance NAME" :
		       "no instance of this name is running for this user; use "
		       "sudo for root's, or --instance NAME for another";
}

int nat_client_ask(const struct options *options)
{
	static const char *const questions[] = { [NAT_SESSIONS] = "sessions",
						 [NAT_CLEAR] = "clear",
						 [NAT_STATS] = "stats" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char question[512];
	FILE *stream;
	int fd, n, status;

	if (!nat_control_path(options->instance, addr.sun_path,
			      sizeof(addr.sun_path)))
		return complain(options->instance, "the name is too long");
	n = snprintf(question, sizeof(question), "%s%s%s%s\n",
		     questions[options->command],
		     options->is_now ? " --now" : "",
		     options->filter != NULL ? " " : "",
		     options->filter != NULL ? options->filter : "");
	if ((size_t)n >= sizeof(question))
		return complain("the filter is too long", "");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return complain("socket", strerror(errno));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		status = complain(addr.sun_path, why_none(errno));
		close(fd);
		return status;
	}
	stream = fdopen(fd, "r");
	if (stream == NULL) {
		close(fd);
		return complain("fdopen", strerror(errno));
	}
	/* EPIPE: it has already answered, with the reason. */
	if (send(fd, question, (size_t)n, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		status = complain(addr.sun_path, strerror(errno));
	else
		status = read_answer(options, stream);
	fclose(stream);
	return status;
}

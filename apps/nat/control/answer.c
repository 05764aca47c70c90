/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of JSON for a client. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "support/json_text.h"

#include "app.h"
#include "control.h"
#include "mapping/tcp.h"
#include "support/report.h"

struct end {
	char text[INET_ADDRSTRLEN + 6];
};

void nat_answer_free(struct nat_answer *answer)
{
	free(answer->bytes);
	*answer = (struct nat_answer){ 0 };
}

static int add_bytes(const char *bytes, size_t n, void *opaque)
{
	struct nat_answer *answer = opaque;

	if (answer->n + n > answer->n_max) {
		const size_t n_max = 2 * (answer->n + n);
		char *longer = realloc(answer->bytes, n_max);

		if (longer == NULL) {
			answer->is_broken = true;
			return -1;
		}
		answer->bytes = longer;
		answer->n_max = n_max;
	}
	memcpy(answer->bytes + answer->n, bytes, n);
	answer->n += n;
	return 0;
}

/* Takes the object. */
static void add_line(struct nat_answer *answer, json_t *object)
{
	if (object == NULL ||
	    json_dump_callback(object, add_bytes, answer, JSON_COMPACT) < 0 ||
	    add_bytes("\n", 1, answer) < 0)
		answer->is_broken = true;
	json_decref(object);
}

static struct end show_end(uint32_t addr, uint16_t port)
{
	struct end end;
	size_t n;

	inet_ntop(AF_INET, &addr, end.text, sizeof(end.text));
	n = strlen(end.text);
	if (port != 0)
		snprintf(end.text + n, sizeof(end.text) - n, ":%u",
			 ntohs(port));
	return end;
}

static void set_proto(json_t *object, uint8_t proto)
{
	const char *name = proto == IPPROTO_UDP  ? "udp" :
			   proto == IPPROTO_TCP  ? "tcp" :
			   proto == IPPROTO_ICMP ? "icmp" :
						   NULL;

	json_object_set_new(object, "proto",
			    name != NULL ? json_string(name) :
					   json_integer(proto));
}

void nat_answer_session(struct nat_answer *answer, const struct nat_session *s)
{
	json_t *object = json_object();

	set_proto(object, s->inside.proto);
	json_object_set_new(
		object, "inside",
		json_string(show_end(s->inside.addr, s->inside.port).text));
	json_object_set_new(
		object, "outside",
		json_string(show_end(s->outside.addr, s->outside.port).text));
	if (s->remote.addr != 0)
		json_object_set_new(
			object, "remote",
			json_string(
				show_end(s->remote.addr, s->remote.port).text));
	if (s->inside.proto == IPPROTO_TCP &&
	    nat_tcp_name(s->tcp_state) != NULL)
		json_object_set_new(object, "state",
				    json_string(nat_tcp_name(s->tcp_state)));
	if (s->flags & NAT_MAP_STATIC)
		json_object_set_new(object, "static", json_true());
	else
		json_object_set_new(object, "left_s", json_integer(s->left_s));
	json_object_set_new(object, "age_s", json_integer(s->age_s));
	json_object_set_new(object, "out", json_integer(s->n_out));
	json_object_set_new(object, "in", json_integer(s->n_in));
	add_line(answer, object);
}

void nat_answer_error(struct nat_answer *answer, const char *text)
{
	add_line(answer, json_pack("{s:o}", "error", json_text(text)));
}

void nat_answer_end(struct nat_answer *answer, const char *what, uint64_t n,
		    bool is_saved)
{
	json_t *end = json_pack("{s:b, s:I}", "end", 1, what, (json_int_t)n);

	if (!is_saved)
		json_object_set_new(end, "saved", json_false());
	add_line(answer, end);
}

/* The fields of a line of --json, and sums over the workers. */
void nat_answer_stats(struct nat_answer *answer, struct app *app)
{
	const struct app_counters *counters = app_counters(app);
	struct snapshot *now = snapshot_create(&app->plane, counters);
	json_t *object, *drops = json_object();

	if (now == NULL) {
		json_decref(drops);
		nat_answer_error(answer, "no memory");
		return;
	}
	snapshot_take(now, &app->plane, 0, app);
	object = report_json_object(now);
	for (uint32_t i = 0; i < counters->n_worker_rows; i++) {
		uint64_t sum = 0;

		for (uint32_t w = 0; w < now->n_workers; w++)
			sum += now->workers[w].counts[i];
		json_object_set_new(object, counters->worker_rows[i].name,
				    json_integer((json_int_t)sum));
	}
	for (uint32_t d = 0; d < counters->n_drops; d++) {
		uint64_t sum = 0;

		for (uint32_t w = 0; w < now->n_workers; w++)
			sum += now->workers[w].drops[d];
		json_object_set_new(drops, counters->drop_names[d],
				    json_integer((json_int_t)sum));
	}
	json_object_set_new(object, "drops", drops);
	/* These belong to lines of --json. */
	json_object_del(object, "t");
	json_object_del(object, "skipped");
	snapshot_destroy(now);
	add_line(answer, object);
	add_line(answer, json_pack("{s:b}", "end", 1));
}

int nat_answer_send(struct nat_answer *answer, int fd)
{
	ssize_t n;

	if (answer->is_broken)
		return -1;
	if (answer->n == 0)
		return 0;
	n = send(fd, answer->bytes, answer->n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	answer->n -= (size_t)n;
	memmove(answer->bytes, answer->bytes + n, answer->n);
	return 0;
}

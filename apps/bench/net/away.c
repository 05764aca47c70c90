/* SPDX-License-Identifier: BSD-3-Clause */
/* When threads did not poll, and which late frames that explains. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/away.h"

static uint64_t length_of(const struct span *span)
{
	return span->end_ns - span->start_ns;
}

static uint32_t n_as_long(const struct spans *spans, uint64_t ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < spans->n; i++)
		n += length_of(&spans->all[i]) >= ns;
	return n;
}

/* Drop spans that are too short, or else those that are too old. */
static void make_room(struct spans *spans)
{
	uint32_t n = 0, first = spans->n;
	uint64_t ns = spans->least_ns;

	/* A sender that was behind has added shorter spans. */
	if (n_as_long(spans, ns) > MAX_SPANS / 8 * 7) {
		ns = 2 * ns + 1;
		if (n_as_long(spans, ns) >= MAX_SPANS / 2) {
			spans->least_ns = ns;
		} else {
			first = MAX_SPANS / 2;
			spans->since_ns = spans->all[first].start_ns;
		}
	}
	for (uint32_t i = 0; i < spans->n; i++)
		if (i >= first || length_of(&spans->all[i]) >= ns)
			spans->all[n++] = spans->all[i];
	spans->n = n;
}

void spans_add(struct spans *spans, const struct span *span)
{
	while (spans->n == MAX_SPANS)
		make_room(spans);
	if (length_of(span) >= spans->least_ns)
		spans->all[spans->n++] = *span;
}

/* Source: Documentation/scheduler/sched-stats.rst: time on the core, time that
 * the thread waited for it, both in ns. */
static uint64_t read_waited(const struct away *away)
{
	unsigned long long waited = 0;
	char text[96];
	ssize_t n;

	if (away->schedstat_fd < 0)
		return 0;
	n = pread(away->schedstat_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%*u %llu", &waited) == 1 ? waited : 0;
}

/* What was waited since the last call. */
static uint64_t take_waited(struct away *away, uint64_t now_ns)
{
	const uint64_t before = away->waited_read_ns;

	away->waited_read_ns = read_waited(away);
	away->read_due_ns = now_ns + AWAY_READ_NS;
	return away->waited_read_ns - before;
}

void away_begin(struct away *away, uint64_t start_ns, uint64_t now_ns)
{
	away->spans.n = 0;
	away->spans.least_ns = AWAY_NS;
	away->spans.since_ns = 0;
	away->longest_ns = away->waited_ns = away->still_ns = 0;
	away->schedstat_fd =
		open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	away->waited_read_ns = 0;
	away->read_due_ns = now_ns + AWAY_READ_NS;
	if (now_ns > start_ns)
		away_round(away, start_ns, now_ns, false, false);
}

void away_end(struct away *away)
{
	away->waited_ns = read_waited(away);
	if (away->schedstat_fd >= 0)
		close(away->schedstat_fd);
	away->schedstat_fd = -1;
}

/* The last span, if it lasts until then: the thread did not catch up. */
static struct span *last_until(struct away *away, uint64_t then_ns)
{
	struct spans *spans = &away->spans;

	if (spans->n == 0 || spans->all[spans->n - 1].end_ns != then_ns)
		return NULL;
	return &spans->all[spans->n - 1];
}

void away_note(struct away *away, uint64_t then_ns, uint64_t now_ns,
	       bool is_moving, bool is_behind)
{
	const uint64_t ns = now_ns - then_ns;
	struct span span = { .start_ns = then_ns,
			     .end_ns = now_ns,
			     .is_moving = is_moving };
	struct span *last;

	if (ns > away->longest_ns)
		away->longest_ns = ns;
	if (ns < (is_moving ? AWAY_MOVING_NS : AWAY_NS)) {
		last = is_behind ? last_until(away, then_ns) : NULL;
		if (last != NULL && last->is_moving)
			last->end_ns = now_ns;
		else if (last != NULL && away->spans.n < MAX_SPANS)
			away->spans.all[away->spans.n++] = span;
		if (now_ns >= away->read_due_ns)
			take_waited(away, now_ns);
		return;
	}
	span.waited_ns = take_waited(away, now_ns);
	if (span.waited_ns > ns)
		span.waited_ns = ns;
	if (!is_moving)
		away->still_ns += ns - span.waited_ns;
	spans_add(&away->spans, &span);
}

/* The first span that ends after a time. */
static uint32_t first_after(const struct spans *spans, uint64_t ns)
{
	uint32_t low = 0, high = spans->n;

	while (low < high) {
		const uint32_t mid = (low + high) / 2;

		if (spans->all[mid].end_ns > ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void add_part(struct trial_tail *tail, const struct span *span,
		     uint64_t ns)
{
	const uint64_t waited =
		(uint64_t)((double)ns * (double)span->waited_ns /
			   (double)length_of(span));

	tail->waited_ns += waited;
	if (span->is_moving)
		tail->called_ns += ns - waited;
	else
		tail->still_ns += ns - waited;
}

void tail_add(struct trial_tail *tail, const struct span *late,
	      const struct away *sender, const struct away *receiver)
{
	static const struct spans none;
	const struct spans *a = sender != NULL ? &sender->spans : &none;
	const struct spans *b = receiver != NULL && receiver != sender ?
					&receiver->spans :
					&none;
	uint32_t i = first_after(a, late->start_ns);
	uint32_t k = first_after(b, late->start_ns);
	uint64_t at = late->start_ns;

	if (at < a->since_ns || at < b->since_ns)
		return;
	tail->late_ns += length_of(late);
	while (at < late->end_ns && (i < a->n || k < b->n)) {
		const bool is_a =
			k == b->n ||
			(i < a->n && a->all[i].start_ns <= b->all[k].start_ns);
		const struct span *span = is_a ? &a->all[i++] : &b->all[k++];
		const uint64_t from = span->start_ns > at ? span->start_ns : at;
		const uint64_t to = span->end_ns < late->end_ns ? span->end_ns :
								  late->end_ns;

		if (from >= to)
			continue;
		add_part(tail, span, to - from);
		at = to;
	}
}

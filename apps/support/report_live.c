/* SPDX-License-Identifier: BSD-3-Clause */
/* The live display on a terminal, which it restores at the end. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <curses.h>

#include "report.h"

/* ncurses has one screen per program, hence a static. */
static SCREEN *screen;

static bool live_begin(void)
{
	screen = newterm(NULL, stdout, stdin);
	if (screen == NULL)
		return false;
	cbreak();
	noecho();
	curs_set(0);
	return true;
}

/* Not through ncurses, which the writer may be in. Other keys begin with
 * ESC. */
static bool live_is_quit(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char keys[16];

	return poll(&in, 1, 0) == 1 && (in.revents & POLLIN) != 0 &&
	       read(STDIN_FILENO, keys, sizeof(keys)) > 0 &&
	       (keys[0] == 'q' || keys[0] == 'Q');
}

/* ncurses does this only for programs that read keys through it. */
static void follow_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	    is_term_resized(size.ws_row, size.ws_col))
		resizeterm(size.ws_row, size.ws_col);
}

static void print_rates(const char *name, const struct rates *rates)
{
	char row[REPORT_MAX_COLUMNS + 1];

	report_rates_row(name, rates, getmaxx(stdscr) - 1, row, sizeof(row));
	printw("%s\n", row);
}

/* Continue what does not fit on the next line. */
static void print_wrapped(const char *text)
{
	const int n_columns = getmaxx(stdscr);
	const size_t width = n_columns > 20 ? (size_t)n_columns - 1 : 20;
	size_t indent = 0;

	while (*text != '\0') {
		const size_t n = report_fitting(text, width - indent);

		printw("%*s%.*s\n", (int)indent, "", (int)n, text);
		text += n + strspn(text + n, " ");
		indent = 2;
	}
}

static const char *link_of(const struct port_snapshot *port)
{
	if (!port->has_link)
		return "";
	if (port->link.is_gone)
		return "  GONE";
	if (port->link.is_detached)
		return "  DETACHED";
	return port->link.is_up ? "" : "  link down";
}

/* One queue of a port, as if it were the only one. */
static struct totals queue_totals(const struct port_snapshot *port, uint32_t q)
{
	const struct port_snapshot alone = { .n_queues = 1,
					     .queues = &port->queues[q] };

	return snapshot_port_totals(&alone);
}

static void print_by_rules(const struct rates *rates)
{
	char rx[16], tx[16];

	printw("  by rules, in addition: rx %s frames/s, tx %s frames/s\n",
	       report_scaled(rates->rx_offloaded, rx, sizeof(rx)),
	       report_scaled(rates->tx_offloaded, tx, sizeof(tx)));
}

static void show_port(const struct port_snapshot *now,
		      const struct port_snapshot *before, double seconds)
{
	const struct totals none = { 0 };
	char text[400];
	struct totals t = snapshot_port_totals(now);
	struct totals b = before != NULL ? snapshot_port_totals(before) : none;
	struct rates rates = report_rates(&t, &b, seconds);

	attron(A_BOLD);
	print_rates(now->info.name, &rates);
	attroff(A_BOLD);
	snprintf(text, sizeof(text), "  %s%s%s%s", now->info.mode,
		 now->info.why[0] != '\0' ? ": " : "", now->info.why,
		 link_of(now));
	print_wrapped(text);
	if (now->has_rules)
		print_by_rules(&rates);
	for (uint32_t q = 0; now->n_queues > 1 && q < now->n_queues; q++) {
		char name[24];

		t = queue_totals(now, q);
		b = before != NULL && q < before->n_queues ?
			    queue_totals(before, q) :
			    none;
		rates = report_rates(&t, &b, seconds);
		snprintf(name, sizeof(name), "  queue %" PRIu32, q);
		print_rates(name, &rates);
	}
}

static void show_workers(const struct snapshot *now,
			 const struct snapshot *before)
{
	for (uint32_t w = 0; w < now->n_workers; w++) {
		const struct worker_snapshot *b =
			before != NULL ? &before->workers[w] : NULL;

		printw("worker %-3" PRIu32 "core %-3" PRIu32
		       " idle %3.0f %%  awake %3.0f %%  burst %5.1f  "
		       "sleeps %" PRIu64 "\n",
		       w, now->workers[w].core,
		       report_idle_percent(&now->workers[w], b),
		       report_awake_percent(&now->workers[w], b),
		       report_mean_burst(&now->workers[w], b),
		       now->workers[w].stats.sleeps -
			       (b != NULL ? b->stats.sleeps : 0));
	}
}

static void show_pool(const struct mr_pool_stats *now,
		      const struct mr_pool_stats *before)
{
	const struct page_sources from = snapshot_page_sources(now, before);
	const uint64_t n = from.cache + from.depot + from.allocator;
	const double all = n > 0 ? (double)n : 1;
	char text[240];

	snprintf(text, sizeof(text),
		 "pool: %" PRIu64 " pages, %" PRIu64 " free, %" PRIu64
		 " in flight; from caches %.0f %%, depot %.0f %%, allocator "
		 "%.0f %%; none left %" PRIu64,
		 now->n_pages, now->n_free, now->n_in_flight,
		 n > 0 ? 100 * from.cache / all : 100, 100 * from.depot / all,
		 100 * from.allocator / all,
		 now->alloc_empty);
	print_wrapped(text);
}

static void show_groups(const struct snapshot *now,
			const struct snapshot *before)
{
	for (uint32_t i = 0; i < now->app->n_groups; i++) {
		char text[400];

		if (report_group(now, before, i, true, text, sizeof(text)))
			print_wrapped(text);
	}
}

static void show_drop(void *opaque, const char *where, const char *name,
		      uint64_t n_frames)
{
	(void)opaque;
	printw("  %-24.24s %-20s %" PRIu64 "\n", where, name, n_frames);
}

static bool live_show(const struct snapshot *now, const struct snapshot *before)
{
	const double seconds = now->t_s - (before != NULL ? before->t_s : 0);

	follow_size();
	erase();
	printw("%s, %.0f s; q ends\n\n", now->app->program, now->t_s);
	attron(A_UNDERLINE);
	print_rates("port", NULL);
	attroff(A_UNDERLINE);
	for (uint32_t p = 0; p < now->n_ports; p++)
		show_port(&now->ports[p],
			  before != NULL ? &before->ports[p] : NULL, seconds);
	printw("\n");
	show_workers(now, before);
	show_pool(&now->pool, before != NULL ? &before->pool : NULL);
	show_groups(now, before);
	printw("\ndropped since the start, now %.0f/s:\n",
	       report_drop_rate(now, before));
	report_each_drop(now, show_drop, NULL);
	redrawwin(stdscr); /* log lines may have overwritten it */
	return refresh() != ERR;
}

static bool live_end(const struct snapshot *final)
{
	endwin();
	delscreen(screen);
	screen = NULL;
	return report_summary(final);
}

const struct report report_live = {
	.begin = live_begin,
	.show = live_show,
	.end = live_end,
	.is_quit = live_is_quit,
};

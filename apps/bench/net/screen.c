/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The live view: rates, losses, and the latencies of the last second as
 * percentiles and as bars, one for each power of two.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>

#include "net/screen.h"
#include "net/view.h"

enum { TEXT = 32, N_BARS = 41, BAR_CHARS = 48, REDRAW_MS = 500 };

#define MS 1000000ull

struct screen {
	SCREEN *curses;
	struct tester *tester;
	const char *title;
	double mean_bytes;
	uint64_t duration_ns;
	uint64_t then_ns;
	struct trial_result *then; /* counters only */
	struct hist *before;       /* by receiver */
	struct hist *latency;      /* of the last interval */
};

static void free_screen(struct screen *screen)
{
	free(screen->then);
	free(screen->before);
	free(screen->latency);
	free(screen);
}

/* Else the shell would stop us as soon as the terminal is touched. One that is
 * not ours has no jobs. */
static bool is_in_front(void)
{
	const pid_t front = tcgetpgrp(STDIN_FILENO);

	return front < 0 || front == getpgrp();
}

struct screen *screen_open(const char *title, struct tester *tester,
			   const struct trial_config *trial, double mean_bytes)
{
	struct screen *screen = calloc(1, sizeof(*screen));

	if (screen == NULL)
		return NULL;
	screen->title = title;
	screen->tester = tester;
	screen->mean_bytes = mean_bytes;
	screen->duration_ns = trial->duration_ns;
	screen->then = calloc(1, sizeof(*screen->then));
	screen->before =
		calloc(tester_n_receivers(tester) + 1, sizeof(*screen->before));
	screen->latency = calloc(1, sizeof(*screen->latency));
	if (screen->then != NULL && screen->before != NULL &&
	    screen->latency != NULL && isatty(STDOUT_FILENO) && is_in_front())
		screen->curses = newterm(NULL, stdout, stdin);
	if (screen->curses == NULL) {
		free_screen(screen);
		return NULL;
	}
	cbreak();
	noecho();
	curs_set(0);
	nodelay(stdscr, TRUE);
	return screen;
}

static void print_rate(const char *name, uint64_t n, double seconds,
		       double mean_bytes, uint64_t all)
{
	const double pps = (double)n / seconds;
	char rate[TEXT], bits[TEXT];

	printw("%-10s %12spps %12sbit/s  %20" PRIu64 "\n", name,
	       view_scaled(pps, rate, TEXT),
	       view_scaled(rate_l1_bps(pps, mean_bytes), bits, TEXT), all);
}

static void print_count(const char *name, uint64_t now, uint64_t then,
			double seconds)
{
	printw("%-10s %12.0f/s  %12s       %20" PRIu64 "\n", name,
	       (double)(now - then) / seconds, "", now);
}

static void print_bars(const struct hist *hist)
{
	uint64_t bars[N_BARS] = { 0 }, most = 1;
	uint32_t first = N_BARS, last = 0;
	char low[TEXT];

	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		const uint64_t at = hist_low(i);
		const uint32_t bar =
			at == 0 ? 0 : 63 - (uint32_t)__builtin_clzll(at);

		bars[bar] += hist->counts[i];
	}
	for (uint32_t b = 0; b < N_BARS; b++) {
		if (bars[b] == 0)
			continue;
		first = b < first ? b : first;
		last = b;
		most = bars[b] > most ? bars[b] : most;
	}
	for (uint32_t b = first; b <= last && first < N_BARS; b++) {
		const int n =
			(int)ceil((double)bars[b] * BAR_CHARS / (double)most);

		printw("%12s %-*.*s %" PRIu64 "\n",
		       view_time((double)(1ull << b), low, TEXT), BAR_CHARS, n,
		       "################################################",
		       bars[b]);
	}
}

static void print_latency(const struct hist *hist)
{
	static const double points[] = { 50, 90, 99, 99.9, 99.99 };
	char text[TEXT];

	if (hist->n == 0)
		return;
	printw("\nlatency in this interval:");
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		printw("  p%g %s", points[i],
		       view_time((double)hist_at(hist, points[i]), text, TEXT));
	printw("  max %s\n", view_time((double)hist->max, text, TEXT));
	print_bars(hist);
}

static void print_head(const struct screen *screen, uint64_t now_ns)
{
	char left[TEXT] = "";

	if (screen->duration_ns > now_ns)
		snprintf(left, sizeof(left), ", %.0f s left",
			 (double)(screen->duration_ns - now_ns) / 1e9);
	printw("mr-bench %s, %.0f s%s; q ends\n\n", screen->title,
	       (double)now_ns / 1e9, left);
}

static void draw(struct screen *screen, const struct trial_result *r)
{
	const struct trial_result *then = screen->then;
	const double seconds = (double)(r->whole_ns - screen->then_ns) / 1e9;

	erase();
	print_head(screen, r->whole_ns);
	print_rate("sent", r->sent - then->sent, seconds, screen->mean_bytes,
		   r->sent);
	print_count("unsent", r->unsent, then->unsent, seconds);
	if (tester_n_receivers(screen->tester) > 0) {
		print_rate("received", r->unique - then->unique, seconds,
			   screen->mean_bytes, r->unique);
		print_count("twice", r->duplicates, then->duplicates, seconds);
		print_count("disordered", r->reordered, then->reordered,
			    seconds);
		print_count("foreign", r->foreign, then->foreign, seconds);
		memset(screen->latency, 0, sizeof(*screen->latency));
		tester_latency_since(screen->tester, screen->before,
				     screen->latency);
		print_latency(screen->latency);
	}
	redrawwin(stdscr); /* a line of log may have gone over it */
	refresh();
}

void screen_progress(void *opaque, const struct trial_result *r)
{
	struct screen *screen = opaque;
	const int key = getch();

	if (key == 'q' || key == 'Q')
		tester_end(screen->tester);
	if (r->whole_ns < screen->then_ns + REDRAW_MS * MS)
		return;
	draw(screen, r);
	screen->then_ns = r->whole_ns;
	screen->then->sent = r->sent;
	screen->then->unsent = r->unsent;
	screen->then->unique = r->unique;
	screen->then->duplicates = r->duplicates;
	screen->then->reordered = r->reordered;
	screen->then->foreign = r->foreign;
}

void screen_close(struct screen *screen)
{
	if (screen == NULL)
		return;
	endwin();
	delscreen(screen->curses);
	free_screen(screen);
}

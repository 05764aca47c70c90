/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page of mr-bench report: one HTML file that needs nothing else, no
 * script, no network. Each chart is an inline SVG with its figures in a table
 * below it; a browser prints it as it is, and shows it light or dark.
 */
#ifndef RESULT_PAGE_H
#define RESULT_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "plot.h"
#include "result/read.h"

enum { PAGE_MAX_DOCUMENTS = 1024, PAGE_MAX_LINES = 24 };

struct page {
	FILE *to;
	const char *title;
	const struct read_document *documents;
	uint32_t n_documents;
	char names[PAGE_MAX_DOCUMENTS][80];   /* unlike each other */
	uint32_t colours[PAGE_MAX_DOCUMENTS]; /* rounds of a step have one */
	uint32_t n_charts;
	/* Room for the chart that is being made. */
	struct plot_series series[PLOT_MAX_SERIES];
	char series_names[PLOT_MAX_SERIES][160];
	double low[PLOT_MAX_SERIES][PLOT_MAX_POINTS];
	double high[PLOT_MAX_SERIES][PLOT_MAX_POINTS];
	uint32_t n_series;
};

/* The whole. documents: PAGE_MAX_DOCUMENTS at most, SCHEMA_NET all. */
bool page_write(const struct read_document *documents, uint32_t n,
		const char *title, FILE *to);

/* page.c: what the others write with. Texts are escaped. */
void page_text(struct page *page, const char *text);
void page_section(struct page *page, const char *id, const char *title,
		  const char *what);
void page_table(struct page *page, const char *caption);
void page_row(struct page *page);
__attribute__((format(printf, 2, 3))) void page_head(struct page *page,
						     const char *format, ...);
__attribute__((format(printf, 2, 3))) void page_cell(struct page *page,
						     const char *format, ...);
void page_value(struct page *page, double value, const char *unit);
void page_table_end(struct page *page);

/* A chart of page->series. what: for those who do not see it. */
struct page_chart {
	const char *title, *what, *x_name, *y_name, *x_unit, *y_unit;
	enum plot_scale x_scale, y_scale;
	bool is_bars;
};

/* Begin a chart; a line of it, NULL if it has no more room; and draw it. */
void page_chart_begin(struct page *page);
__attribute__((format(printf, 3, 4))) struct plot_series *
page_line(struct page *page, uint32_t colour, const char *format, ...);
struct plot_series *page_limit(struct page *page, const char *name);
/* Say so, if a chart has not all of so many lines. */
void page_cut(struct page *page, uint32_t n_lines);
void page_point(struct plot_series *series, double x, double y);
void page_chart(struct page *page, const struct page_chart *chart);

extern const char page_style[];

/* Sections; each is silent if no document has anything for it. */
void page_rates(struct page *page);
void page_other_rows(struct page *page);
void page_latency(struct page *page);
void page_loss(struct page *page);
void page_pacing(struct page *page);
void page_series(struct page *page);
void page_machines(struct page *page);

#endif

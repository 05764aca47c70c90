/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "result/file.h"
#include "result/page.h"
#include "result/report.h"
#include "support/options.h"
#include "support/text.h"

struct report {
	struct read_document documents[PAGE_MAX_DOCUMENTS];
	uint32_t n;
	const char *out, *title;
};

static const struct option_row rows[] = {
	{ "out", 'o', "FILE", "where to write it (standard output)" },
	{ "title", 't', "TEXT", "of the page" },
	{ "help", OPTION_HELP, NULL, "print this" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

static const char usage[] =
	"usage: mr-bench report [options] FILE...\n"
	"Make one page, with charts, of what commands of mr-bench that send "
	"and\n"
	"receive wrote with --json. It needs no other file and no network.\n";

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *opaque, struct mr_reason *error)
{
	struct report *report = opaque;

	(void)error;
	if (row->id == 'o')
		report->out = arg;
	else
		report->title = arg;
	return PARSE_RUN;
}

static int complain(const char *text, int status)
{
	print_error("mr-bench report: %s", text);
	return status;
}

static bool write_page(const void *opaque, FILE *to)
{
	const struct report *report = opaque;

	return page_write(report->documents, report->n, report->title, to);
}

static int run(struct report *report, int n_words, char **words)
{
	struct mr_reason why = { .text = "" };

	if (n_words < 1 || n_words > PAGE_MAX_DOCUMENTS) {
		snprintf(why.text, sizeof(why.text),
			 "%d files given; it takes 1 to %d", n_words,
			 PAGE_MAX_DOCUMENTS);
		return complain(why.text, 2);
	}
	for (int i = 0; i < n_words; i++) {
		struct read_document *document = &report->documents[i];

		if (document_read(words[i], document, &why) < 0)
			return complain(why.text, 2);
		report->n++;
		if (document->schema != SCHEMA_NET) {
			snprintf(why.text, sizeof(why.text),
				 "%.160s is of mr-bench mem or flow, which "
				 "draw with --out DIR",
				 words[i]);
			return complain(why.text, 2);
		}
	}
	if (file_write(report->out, write_page, report, &why) < 0)
		return complain(why.text, 1);
	return 0;
}

int report_main(int argc, char **argv)
{
	static const struct option_table table = {
		.program = "mr-bench",
		.usage = usage,
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(*rows),
		.take = take,
	};
	struct report report = { .out = "-",
				 .title = "Measured with mr-bench" };
	struct mr_reason why = { .text = "" };
	int first = 0, status = 0;

	switch (option_table_parse(&table, argc - 1, argv + 1, &report, &first,
				   &why)) {
	case PARSE_DONE:
		break;
	case PARSE_WRONG:
		status = complain(why.text, 2);
		break;
	case PARSE_RUN:
		status = run(&report, argc - 1 - first, argv + 1 + first);
		break;
	}
	for (uint32_t i = 0; i < report.n; i++)
		read_document_free(&report.documents[i]);
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: one table defines the parser and the help. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "values.h"
#include "version.h"

static uint32_t count_rows(const struct option_table *table)
{
	return table->n_rows + table->n_shared_rows;
}

static const struct option_row *row_at(const struct option_table *table,
				       uint32_t i)
{
	return i < table->n_rows ? &table->rows[i] :
				   &table->shared_rows[i - table->n_rows];
}

void option_table_print_help(const struct option_table *table, FILE *to)
{
	fprintf(to, "%s\n", table->usage);
	for (uint32_t i = 0; i < count_rows(table); i++) {
		const struct option_row *row = row_at(table, i);
		char letter[5] = "    ", left[40];

		if (row->id < OPTION_LONG)
			snprintf(letter, sizeof(letter), "-%c, ", row->id);
		snprintf(left, sizeof(left), "--%s%s%s", row->name,
			 row->arg != NULL ? " " : "",
			 row->arg != NULL ? row->arg : "");
		if (strlen(left) > 18) /* its help is on the next line */
			fprintf(to, "  %s%s\n%25s%s\n", letter, left, "",
				row->help);
		else
			fprintf(to, "  %s%-18s %s\n", letter, left, row->help);
	}
	fprintf(to, "\nExit status: 0; 1 on failure; 2 on a usage error.\n");
}

enum parse_result parse_u64(const char *name, const char *text, uint64_t min,
			    uint64_t max, uint64_t *ret,
			    struct mr_reason *ret_error)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0')
		return parse_wrong(ret_error,
				   "--%s: '%s' is not a whole number", name,
				   text);
	if (errno != 0 || value < min || value > max)
		return parse_wrong(ret_error,
				   "--%s: %s is out of range, %llu to %llu",
				   name, text, (unsigned long long)min,
				   (unsigned long long)max);
	*ret = value;
	return PARSE_RUN;
}

enum parse_result parse_u32(const char *name, const char *text, uint32_t min,
			    uint32_t max, uint32_t *ret,
			    struct mr_reason *ret_error)
{
	uint64_t value = 0;
	const enum parse_result result =
		parse_u64(name, text, min, max, &value, ret_error);

	if (result == PARSE_RUN)
		*ret = (uint32_t)value;
	return result;
}

enum parse_result parse_seconds(const char *name, const char *text,
				uint64_t *ret_ms, struct mr_reason *ret_error)
{
	char *end;
	const double s = strtod(text, &end);

	/* Written so that a NaN is wrong, too. */
	if (end == text || *end != '\0' || !(s >= 0.001 && s <= 1e9))
		return parse_wrong(ret_error,
				   "--%s: '%s' is not a number of seconds, "
				   "0.001 to 1e9",
				   name, text);
	*ret_ms = (uint64_t)(s * 1000 + 0.5);
	return PARSE_RUN;
}

enum parse_result parse_word(const char *name, const char *text,
			     const char *const *words, uint32_t *ret,
			     struct mr_reason *ret_error)
{
	struct mr_reason why;

	return value_word(text, words, ret, &why) ?
		       PARSE_RUN :
		       parse_wrong(ret_error, "--%s: %s", name, why.text);
}

enum mr_log_level option_log_level(uint32_t n_verbose, bool is_quiet)
{
	if (n_verbose == 0)
		return is_quiet ? MR_LOG_ERROR : MR_LOG_WARNING;
	return n_verbose == 1 ? MR_LOG_INFO : MR_LOG_DEBUG;
}

/* Convert the table for getopt_long(). */
static void describe_options(const struct option_table *table,
			     struct option *ret_long, char *ret_letters)
{
	*ret_letters++ = ':'; /* report a missing value differently */
	for (uint32_t i = 0; i < count_rows(table); i++) {
		const struct option_row *row = row_at(table, i);

		ret_long[i] = (struct option){ .name = row->name,
					       .has_arg = row->arg != NULL,
					       .val = row->id };
		if (row->id >= OPTION_LONG)
			continue;
		*ret_letters++ = (char)row->id;
		if (row->arg != NULL)
			*ret_letters++ = ':';
	}
}

static enum parse_result take_option(const struct option_table *table, int id,
				     void *options,
				     struct mr_reason *ret_error)
{
	if (id == OPTION_HELP) {
		option_table_print_help(table, stdout);
		return PARSE_DONE;
	}
	if (id == OPTION_VERSION) {
		printf("%s %s\n", table->program, program_version);
		return PARSE_DONE;
	}
	for (uint32_t i = 0; i < count_rows(table); i++)
		if (row_at(table, i)->id == id)
			return table->take(row_at(table, i), optarg, options,
					   ret_error);
	return PARSE_RUN; /* getopt_long() returned an id of the table */
}

/* Count and name the options that begin with a long word. */
static uint32_t find_by_prefix(const struct option_table *table,
			       const char *word, char *ret_names,
			       size_t n_bytes)
{
	const size_t n = strcspn(word, "=");
	uint32_t n_meant = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < count_rows(table); i++) {
		const char *name = row_at(table, i)->name;

		if (strncmp(name, word, n) != 0)
			continue;
		n_meant++;
		if (at < n_bytes)
			at += (size_t)snprintf(ret_names + at, n_bytes - at,
					       " --%s", name);
	}
	return n_meant;
}

/* Say why getopt_long() refused a word. */
static enum parse_result refuse_word(const struct option_table *table,
				     const char *word,
				     struct mr_reason *ret_error)
{
	char names[sizeof(ret_error->text)];

	for (uint32_t i = 0; i < count_rows(table); i++)
		if (row_at(table, i)->id == optopt)
			return parse_wrong(ret_error,
					   "option '--%s' takes no value",
					   row_at(table, i)->name);
	if (optopt != 0)
		return parse_wrong(ret_error,
				   "unknown option '-%c'; see %s --help",
				   optopt, table->program);
	if (find_by_prefix(table, word + 2, names, sizeof(names)) > 1)
		return parse_wrong(ret_error,
				   "option '%.40s' is ambiguous; it may be:%s",
				   word, names);
	return parse_wrong(ret_error, "unknown option '%s'; see %s --help",
			   word, table->program);
}

enum parse_result option_table_parse(const struct option_table *table, int argc,
				     char **argv, void *options, int *ret_first,
				     struct mr_reason *ret_error)
{
	struct option long_options[MAX_OPTIONS + 1] = { 0 };
	char letters[2 * MAX_OPTIONS + 2] = "";
	int id;

	describe_options(table, long_options, letters);
	optind = 0; /* GNU: restart, for tests that parse twice */
	opterr = 0;
	while ((id = getopt_long(argc, argv, letters, long_options, NULL)) !=
	       -1) {
		enum parse_result result;

		if (id == '?')
			return refuse_word(table, argv[optind - 1], ret_error);
		if (id == ':')
			return parse_wrong(ret_error,
					   "option '%s' needs a value",
					   argv[optind - 1]);
		result = take_option(table, id, options, ret_error);
		if (result != PARSE_RUN)
			return result;
	}
	*ret_first = optind;
	return PARSE_RUN;
}

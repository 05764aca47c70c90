/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: one table defines the parser and the help. */
#include <getopt.h>
#include <string.h>

#include "options.h"
#include "version.h"

struct option_one {
	char name[24];
	int id;
	const char *arg, *help;
	const struct yaml_key *key; /* NULL: handled here */
	const struct option_keys *set;
};

struct option_list {
	uint32_t n;
	struct option_one list[MAX_OPTIONS];
};

static void add_option(struct option_list *all, const char *name,
		       struct option_one one)
{
	if (one.id == 0)
		one.id = OPTION_LONG + (int)all->n;
	snprintf(one.name, sizeof(one.name), "%s", name);
	for (char *c = one.name; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
	all->list[all->n++] = one;
}

static bool is_option_of(const struct option_keys *set,
			 const struct yaml_key *key)
{
	return key->help != NULL &&
	       (key->group == 0 || (key->group & set->groups) != 0);
}

/* All options, in the order of the help. */
static struct option_list list_options(const struct option_table *table)
{
	struct option_list all = { 0 };

	for (uint32_t s = 0; s < table->n_sets; s++)
		for (const struct yaml_key *key = table->sets[s].keys;
		     key->name != NULL; key++)
			if (is_option_of(&table->sets[s], key))
				add_option(&all, key->name,
					   (struct option_one){
						   .id = key->letter,
						   .arg = key->arg,
						   .help = key->help,
						   .key = key,
						   .set = &table->sets[s] });
	add_option(&all, "help",
		   (struct option_one){ .id = OPTION_HELP,
					.help = "print this help" });
	add_option(&all, "version",
		   (struct option_one){ .id = OPTION_VERSION,
					.help = "print the version" });
	return all;
}

void option_table_print_help(const struct option_table *table, FILE *to)
{
	const struct option_list all = list_options(table);

	fprintf(to, "%s\n", table->usage);
	for (uint32_t i = 0; i < all.n; i++) {
		const struct option_one *one = &all.list[i];
		char letter[5] = "    ", left[40];

		if (one->id < OPTION_LONG)
			snprintf(letter, sizeof(letter), "-%c, ", one->id);
		snprintf(left, sizeof(left), "--%s%s%s", one->name,
			 one->arg != NULL ? " " : "",
			 one->arg != NULL ? one->arg : "");
		if (strlen(left) > 18) /* its help is on the next line */
			fprintf(to, "  %s%s\n%25s%s\n", letter, left, "",
				one->help);
		else
			fprintf(to, "  %s%-18s %s\n", letter, left, one->help);
	}
	fprintf(to, "\nExit status: 0; 1 on failure; 2 on a usage error.\n");
}

int option_take_string(struct yaml_reader *reader, const struct yaml_key *key,
		       yaml_node_t *node, void *to)
{
	const char *text = (const char *)node->data.scalar.value;

	(void)reader;
	memcpy((char *)to + key->offset, &text, sizeof(text));
	return 0;
}

int option_take_count(struct yaml_reader *reader, const struct yaml_key *key,
		      yaml_node_t *node, void *to)
{
	(void)reader;
	(void)node;
	++*(uint32_t *)((char *)to + key->offset);
	return 0;
}

enum mr_log_level option_log_level(uint32_t n_verbose, bool is_quiet)
{
	if (n_verbose == 0)
		return is_quiet ? MR_LOG_ERROR : MR_LOG_WARNING;
	return n_verbose == 1 ? MR_LOG_INFO : MR_LOG_DEBUG;
}

/* Convert the list for getopt_long(). */
static void describe_options(const struct option_list *all,
			     struct option *ret_long, char *ret_letters)
{
	*ret_letters++ = ':'; /* report a missing value differently */
	for (uint32_t i = 0; i < all->n; i++) {
		const struct option_one *one = &all->list[i];

		ret_long[i] = (struct option){ .name = one->name,
					       .has_arg = one->arg != NULL,
					       .val = one->id };
		if (one->id >= OPTION_LONG)
			continue;
		*ret_letters++ = (char)one->id;
		if (one->arg != NULL)
			*ret_letters++ = ':';
	}
}

static void note_given(struct option_given *given, const char *name,
		       const char *value)
{
	uint32_t i = 0;

	while (i < given->n && strcmp(given->list[i].name, name) != 0)
		i++;
	given->list[i].name = name;
	given->list[i].value = value;
	given->n += i == given->n;
}

static enum parse_result take_key(const struct option_one *one, void *options,
				  struct option_given *given,
				  struct mr_reason *ret_error)
{
	const struct option_keys *set = one->set;
	const char *value = one->arg != NULL ? optarg : "yes";

	if (yaml_take_option(one->key, one->name, value,
			     (char *)options + set->offset, ret_error) < 0)
		return PARSE_WRONG;
	if (given != NULL && set->is_noted)
		note_given(given, one->key->name, value);
	return PARSE_RUN;
}

static enum parse_result take_option(const struct option_table *table,
				     const struct option_one *one,
				     void *options, struct option_given *given,
				     struct mr_reason *ret_error)
{
	switch (one->id) {
	case OPTION_HELP:
		option_table_print_help(table, stdout);
		return PARSE_DONE;
	case OPTION_VERSION:
		printf("%s %s\n", table->program, program_version);
		return PARSE_DONE;
	default:
		return take_key(one, options, given, ret_error);
	}
}

/* Count and name the options that begin with a long word. */
static uint32_t find_by_prefix(const struct option_list *all, const char *word,
			       char *ret_names, size_t n_bytes)
{
	const size_t n = strcspn(word, "=");
	uint32_t n_meant = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < all->n; i++) {
		const char *name = all->list[i].name;

		if (strncmp(name, word, n) != 0)
			continue;
		n_meant++;
		if (at < n_bytes)
			at += (size_t)snprintf(ret_names + at, n_bytes - at,
					       " --%s", name);
	}
	return n_meant;
}

static const struct option_one *find_by_id(const struct option_list *all,
					   int id)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->list[i].id == id)
			return &all->list[i];
	return NULL;
}

/* Say why getopt_long() refused a word. */
static enum parse_result refuse_word(const struct option_table *table,
				     const struct option_list *all,
				     const char *word,
				     struct mr_reason *ret_error)
{
	const struct option_one *one = find_by_id(all, optopt);
	char names[sizeof(ret_error->text)];

	if (one != NULL)
		return parse_wrong(ret_error, "option '--%s' takes no value",
				   one->name);
	if (optopt != 0)
		return parse_wrong(ret_error,
				   "unknown option '-%c'; see %s --help",
				   optopt, table->program);
	if (find_by_prefix(all, word + 2, names, sizeof(names)) > 1)
		return parse_wrong(ret_error,
				   "option '%.40s' is ambiguous; it may be:%s",
				   word, names);
	return parse_wrong(ret_error, "unknown option '%s'; see %s --help",
			   word, table->program);
}

enum parse_result option_table_parse(const struct option_table *table, int argc,
				     char **argv, void *options, int *ret_first,
				     struct option_given *ret_given,
				     struct mr_reason *ret_error)
{
	const struct option_list all = list_options(table);
	struct option long_options[MAX_OPTIONS + 1] = { 0 };
	char letters[2 * MAX_OPTIONS + 2] = "";
	int id;

	describe_options(&all, long_options, letters);
	optind = 0; /* GNU: restart, for tests that parse twice */
	opterr = 0;
	while ((id = getopt_long(argc, argv, letters, long_options, NULL)) !=
	       -1) {
		enum parse_result result;

		if (id == '?')
			return refuse_word(table, &all, argv[optind - 1],
					   ret_error);
		if (id == ':')
			return parse_wrong(ret_error,
					   "option '%s' needs a value",
					   argv[optind - 1]);
		result = take_option(table, find_by_id(&all, id), options,
				     ret_given, ret_error);
		if (result != PARSE_RUN)
			return result;
	}
	*ret_first = optind;
	return PARSE_RUN;
}

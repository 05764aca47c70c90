/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules, from YAML. The first rule that matches the user (or one of its groups)
 * and the interface applies; if none matches, the request is denied.
 */
#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/values.h"
#include "support/yaml_keys.h"

#include "rules.h"

enum { MAX_QUEUE = UINT16_MAX };

/* A number, or a name that the system knows. */
static bool read_id(const char *text, bool is_known, uint32_t known, void *to,
		    const char *what, struct mr_reason *ret_why)
{
	uint32_t id = known;

	if (!is_known && !(text[0] >= '0' && text[0] <= '9'))
		return value_wrong(ret_why, "no %s '%.40s' on this machine",
				   what, text);
	if (!is_known && !value_number(text, 0, UINT32_MAX - 1, &id, ret_why))
		return false;
	memcpy(to, &id, sizeof(id));
	return true;
}

static bool read_user(const char *text, void *to, struct mr_reason *ret_why)
{
	const struct passwd *user = getpwnam(text);

	return read_id(text, user != NULL, user != NULL ? user->pw_uid : 0, to,
		       "user", ret_why);
}

static bool read_group(const char *text, void *to, struct mr_reason *ret_why)
{
	const struct group *group = getgrnam(text);

	return read_id(text, group != NULL, group != NULL ? group->gr_gid : 0,
		       to, "group", ret_why);
}

static bool read_interface(const char *text, void *to,
			   struct mr_reason *ret_why)
{
	if (text[0] == '\0' || strlen(text) >= IFNAMSIZ ||
	    strchr(text, '/') != NULL)
		return value_wrong(
			ret_why,
			"'%.40s' is not an interface name of at most %d "
			"characters; * and ? are allowed",
			text, IFNAMSIZ - 1);
	memcpy(to, text, strlen(text) + 1);
	return true;
}

/* N, or N-M. */
static bool read_queues(const char *text, void *to, struct mr_reason *ret_why)
{
	const char *last = strchr(text, '-');
	uint32_t *queues = to;
	char first[16];

	snprintf(first, sizeof(first), "%.*s",
		 last != NULL ? (int)(last - text) : 15, text);
	if (!value_number(first, 0, MAX_QUEUE, &queues[0], ret_why) ||
	    !value_number(last != NULL ? last + 1 : first, 0, MAX_QUEUE,
			  &queues[1], ret_why))
		return false;
	return queues[0] <= queues[1] ||
	       value_wrong(ret_why, "%u is more than %u", queues[0], queues[1]);
}

/* Bytes, with K, M or G. */
static bool read_bytes(const char *text, void *to, struct mr_reason *ret_why)
{
	static const char units[] = "KMG";
	const size_t n = strlen(text);
	const char *unit = n > 0 ? strchr(units, text[n - 1]) : NULL;
	uint64_t bytes;
	char number[16];
	uint32_t value;

	if (unit != NULL && *unit == '\0')
		unit = NULL;
	snprintf(number, sizeof(number), "%.*s",
		 (int)(unit != NULL ? n - 1 : n), text);
	if (n >= sizeof(number) ||
	    !value_number(number, 1, UINT32_MAX, &value, ret_why))
		return value_wrong(
			ret_why,
			"'%.40s' is not a size such as 64M; units are "
			"K, M and G",
			text);
	bytes = (uint64_t)value << (unit != NULL ? 10 * (unit - units + 1) : 0);
	memcpy(to, &bytes, sizeof(bytes));
	return true;
}

static int take_rule(struct yaml_reader *reader, const struct yaml_key *key,
		     yaml_node_t *node, void *to)
{
	struct rule *rule = to;
	int err;

	rule->queues[1] = MAX_QUEUE;
	err = yaml_take_mapping(reader, key, node, to);
	if (err == 0 && rule->n_users + rule->n_groups == 0)
		return yaml_wrong(reader, node,
				  "the rule names no user: add 'user' or "
				  "'group'");
	return err;
}

static const struct yaml_key rule_keys[] = {
	YAML_LIST("user", rule, users, RULE_NAMES_MAX, .read = read_user),
	YAML_LIST("group", rule, groups, RULE_NAMES_MAX, .read = read_group),
	YAML_LIST("interface", rule, interfaces, RULE_NAMES_MAX,
		  .read = read_interface, .is_needed = true),
	YAML_VALUE("memory", rule, max_bytes, read_bytes, NULL,
		   .is_needed = true),
	YAML_VALUE("queues", rule, queues, read_queues, NULL),
	YAML_BOOL("transmit", rule, may_transmit),
	YAML_BOOL("settings", rule, may_set),
	YAML_BOOL("rss", rule, may_rss),
	YAML_BOOL("steering", rule, may_steer),
	YAML_BOOL("force", rule, may_force),
	YAML_TEXT("filter", rule, filter),
	YAML_END,
};

static const struct yaml_key top_keys[] = {
	YAML_LIST("rules", rules, rules, RULES_MAX, .take_item = take_rule,
		  .keys = rule_keys, .is_needed = true),
	YAML_END,
};

static int compile_filters(struct yaml_reader *reader, void *to)
{
	struct rules *rules = to;
	yaml_node_t *list = yaml_find(reader, yaml_root(reader), "rules");
	struct mr_reason why;

	for (uint32_t i = 0; i < rules->n_rules; i++) {
		struct rule *rule = &rules->rules[i];

		if (rule->filter[0] != '\0' &&
		    mri_xdp_filter_compile(rules->ctx, "rule", rule->filter,
					   &rule->compiled, &why) < 0)
			return yaml_wrong(reader,
					  yaml_find(reader,
						    yaml_item(reader, list, i),
						    "filter"),
					  "%s", why.text);
	}
	return 0;
}

int rules_parse(struct mr_ctx *ctx, const char *name, const char *bytes,
		size_t n_bytes, struct rules *ret_rules,
		struct mr_reason *ret_why)
{
	struct rules rules = { .ctx = ctx };
	struct yaml_errors errors;
	const int err =
		yaml_read(name, bytes, n_bytes, top_keys,
			  "1: 'rules' is missing: no user could open a port",
			  compile_filters, &rules, &errors);

	if (err == 0) {
		*ret_rules = rules;
		return 0;
	}
	*ret_why = errors.list[0];
	rules_free(&rules);
	return err;
}

/* Whoever can write the rules can get any interface. */
static int check_owner(const char *path, struct mr_reason *ret_why)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return 0; /* yaml_open() says why */
	if ((status.st_uid == 0 || status.st_uid == geteuid()) &&
	    !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return mr_fail(ret_why, -EPERM,
		       "%.120s: others than root can write it: 'chown root' "
		       "and 'chmod go-w' it",
		       path);
}

int rules_read(struct mr_ctx *ctx, const char *path, struct rules *ret_rules,
	       struct mr_reason *ret_why)
{
	const int err = check_owner(path, ret_why);

	return err < 0 ? err :
			 rules_parse(ctx, path, NULL, 0, ret_rules, ret_why);
}

void rules_free(struct rules *rules)
{
	for (uint32_t i = 0; rules->rules != NULL && i < rules->n_rules; i++) {
		struct rule *rule = &rules->rules[i];

		mr_free(rules->ctx, rule->compiled.insns);
		free(rule->users);
		free(rule->groups);
		free(rule->interfaces);
	}
	free(rules->rules);
	rules->rules = NULL;
	rules->n_rules = 0;
}

static bool is_for(const struct rule *rule, const struct peer *peer)
{
	for (uint32_t i = 0; i < rule->n_users; i++)
		if (rule->users[i] == peer->uid)
			return true;
	for (uint32_t i = 0; i < rule->n_groups; i++)
		for (uint32_t k = 0; k < peer->n_groups; k++)
			if (rule->groups[i] == peer->groups[k])
				return true;
	return false;
}

int rules_check_user(const struct rules *rules, const struct peer *peer,
		     struct mr_reason *ret_why)
{
	for (uint32_t i = 0; i < rules->n_rules; i++)
		if (is_for(&rules->rules[i], peer))
			return 0;
	return mr_fail(ret_why, -EPERM,
		       "xdp: no rule of the broker allows user %u an interface",
		       peer->uid);
}

const struct rule *rules_find(const struct rules *rules,
			      const struct peer *peer, const char *interface,
			      struct mr_reason *ret_why)
{
	for (uint32_t i = 0; i < rules->n_rules; i++) {
		const struct rule *rule = &rules->rules[i];

		for (uint32_t k = 0;
		     is_for(rule, peer) && k < rule->n_interfaces; k++)
			if (fnmatch(rule->interfaces[k], interface, 0) == 0)
				return rule;
	}
	mr_fail(ret_why, -EPERM,
		"xdp:%s: no rule of the broker allows user %u this "
		"interface",
		interface, peer->uid);
	return NULL;
}

struct xdp_grant rule_grant(const struct rule *rule, uint64_t n_bytes)
{
	return (struct xdp_grant){
		.first_queue = rule->queues[0],
		.n_queues = rule->queues[1] - rule->queues[0] + 1,
		.max_bytes = rule->max_bytes,
		.n_bytes_left = rule->max_bytes > n_bytes ?
					rule->max_bytes - n_bytes :
					0,
		.may_transmit = rule->may_transmit,
		.may_force = rule->may_force,
		.may_set = rule->may_set,
		.may_rss = rule->may_rss,
		.may_steer = rule->may_steer,
		.filter = rule->compiled.n > 0 ? &rule->compiled : NULL,
	};
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-nat's configuration file from anywhere: settings that make sense, or one
 * line with the file's name. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/keys.h"
#include "fuzz.h"
#include "support/objections.h"
#include "support/yaml_show.h"

#define SIDES                                                                  \
	"inside: {port: a, addresses: 10.0.0.1/24}\n"                          \
	"outside: {port: b, addresses: 192.0.2.1/24}\n"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(SIDES),
	SEED(SIDES
	     "forwards: [{outside: '192.0.2.1:80-89', inside: 10.0.0.5}]\n"
	     "filtering: {tcp: address}\nmss: mtu\n"),
	SEED(SIDES "pool: [198.51.100.1-198.51.100.9]\nports: {block: 512}\n"
		   "timeouts: {udp: 2h4m}\nlimits: {mappings: 1000}\n"),
	SEED(SIDES "one_to_one: [{outside: 192.0.2.9, inside: 10.0.0.9}]\n"
		   "exclude: [{to: 172.16.0.0/12, protocol: tcp}]\n"),
	SEED(SIDES "ports: {deterministic: yes, block: 128}\n"
		   "subscribers: [10.0.0.0/25]\nlog: {path: /x}\n"),
	SEED("&a [*a, {? [x] : y}]\n"),
	{ NULL, 0 },
};

static void check_good(const struct nat_config *config, uint32_t n_workers)
{
	struct objections objections;

	FUZZ_CHECK(nat_config_check(config, n_workers, &objections) == 0);
	FUZZ_CHECK(config->n_pool > 0 && config->n_pool <= NAT_MAX_ITEMS);
	FUZZ_CHECK(config->n_subscribers > 0);
	FUZZ_CHECK(config->sides[NAT_INSIDE].spec[0] != '\0');
	FUZZ_CHECK(config->sides[NAT_OUTSIDE].n_addrs <= NAT_MAX_ADDRS);
	FUZZ_CHECK(config->ports.first > 0 &&
		   config->ports.first <= config->ports.last);
	for (uint32_t i = 0; i < config->n_subscribers; i++)
		FUZZ_CHECK((config->subscribers[i].addr &
			    ~config->subscribers[i].mask) == 0);
}

/* What is written is read as the same. */
static void check_dump(const struct nat_config *config, uint32_t n_workers)
{
	json_t *shown = yaml_show(nat_keys, config), *again;
	char *text = json_dumps(shown, JSON_INDENT(1));
	struct yaml_errors errors;
	struct nat_config read;

	FUZZ_CHECK(nat_settings_parse("dump", text, strlen(text), n_workers,
				      &read, &errors) == 0);
	again = yaml_show(nat_keys, &read);
	FUZZ_CHECK(json_equal(shown, again));
	json_decref(shown);
	json_decref(again);
	free(text);
	nat_config_free(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	const uint32_t n_workers = n_bytes % 2 + 1;
	struct yaml_errors errors;
	struct nat_config config;

	if (nat_settings_parse("file", (const char *)bytes, n_bytes, n_workers,
			       &config, &errors) == 0) {
		check_good(&config, n_workers);
		check_dump(&config, n_workers);
		nat_config_free(&config);
		return 0;
	}
	FUZZ_CHECK(errors.n > 0 && errors.n <= YAML_MAX_ERRORS);
	for (uint32_t i = 0; i < errors.n; i++) {
		const char *text = errors.list[i].text;

		FUZZ_CHECK(memchr(text, '\0', sizeof(errors.list[i].text)) !=
			   NULL);
		FUZZ_CHECK(strncmp(text, "file:", 5) == 0);
		for (const char *c = text; *c != '\0'; c++)
			FUZZ_CHECK((unsigned char)*c >= ' ');
	}
	return 0;
}

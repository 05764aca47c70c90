/* SPDX-License-Identifier: BSD-3-Clause */
/* "machine", the same in every document; both schemas describe it. */
#include <string.h>

#include "support/json_text.h"

#include "machine.h"

static void set(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, json_text(text));
}

static void set_number(json_t *object, const char *key, uint64_t n)
{
	json_object_set_new(object, key, json_integer((json_int_t)n));
}

/* Lines, as an array. */
static json_t *lines(const char *text)
{
	json_t *array = json_array();

	while (text[0] != '\0') {
		const size_t n = strcspn(text, "\n");

		json_array_append_new(array, json_stringn(text, n));
		text += n + (text[n] != '\0');
	}
	return array;
}

json_t *machine_json(const struct machine *machine)
{
	json_t *object = json_object();

	set(object, "cpu", machine->cpu);
	set_number(object, "cores", machine->n_cores);
	set(object, "microcode", machine->microcode);
	set(object, "governor", machine->governor);
	json_object_set_new(object, "smt", json_boolean(machine->has_smt));
	set_number(object, "numa_nodes", machine->n_numa_nodes);
	set(object, "isolated", machine->isolated);
	set(object, "nohz_full", machine->nohz_full);
	json_object_set_new(object, "vulnerabilities",
			    lines(machine->vulnerabilities));
	set(object, "guest", machine->guest);
	set(object, "kernel", machine->kernel);
	set(object, "kernel_words", machine->kernel_words);
	set(object, "clock_source", machine->clock_source);
	set(object, "thp", machine->thp);
	set_number(object, "huge_pages", machine->n_huge_pages);
	set_number(object, "huge_pages_free", machine->n_huge_free);
	set(object, "load", machine->load);
	set(object, "compiler", machine->compiler);
	set(object, "flags", machine->flags);
	set(object, "millrace", machine->millrace);
	set(object, "dpdk", machine->dpdk);
	set(object, "command", machine->command);
	set(object, "date", machine->date);
	return object;
}

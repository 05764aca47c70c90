/* SPDX-License-Identifier: BSD-3-Clause */
/* Port specs from anywhere: a parse, or one line that says what is wrong. */
#include <string.h>

#include <millrace/driver.h>

#include "fuzz.h"
#include "port/spec.h"

enum { MAX_TEXT = 4096 };

const struct fuzz_seed fuzz_seeds[] = {
	SEED("xdp:eth0,queues=4,mode=zc,force"),
	SEED("eth0"),
	SEED("0000:03:00.0"),
	SEED("pcap:rx=a\\,b.pcap,tx=out.pcap"),
	SEED("null:queues=64,len=0x40"),
	SEED("pair:x,ring=4k"),
	{ NULL, 0 },
};

static void check_reason(const struct mr_reason *why)
{
	FUZZ_CHECK(memchr(why->text, '\0', sizeof(why->text)) != NULL);
	FUZZ_CHECK(why->text[0] != '\0');
	FUZZ_CHECK(strchr(why->text, '\n') == NULL);
}

static void check_parsed(const struct mr_spec *spec)
{
	static const char *const words[] = { "auto", "on", "off", NULL };
	const char *end = spec->text + sizeof(spec->text);

	FUZZ_CHECK(spec->driver >= spec->text && spec->driver < end);
	FUZZ_CHECK(spec->driver[0] != '\0');
	FUZZ_CHECK(mr_spec_device(spec) != NULL);
	FUZZ_CHECK(spec->n_options <= MRI_SPEC_MAX_OPTIONS);
	for (uint32_t i = 0; i < spec->n_options; i++) {
		const char *key = spec->options[i].key;
		struct mr_reason why = { .text = "" };
		uint32_t n = 7;

		FUZZ_CHECK(key[0] != '\0');
		/* Each key is there once, so asking for it gives this value. */
		FUZZ_CHECK(mr_spec_get(spec, key) == spec->options[i].value);
		if (mr_spec_get_u32(spec, key, 3, 2, 1000, &n, &why) == 0) {
			FUZZ_CHECK(n >= 2 && n <= 1000);
		} else {
			FUZZ_CHECK(n == 7);
			check_reason(&why);
		}
		if (mr_spec_get_word(spec, key, words, &n, &why) == 0)
			FUZZ_CHECK(strcmp(words[n], spec->options[i].value) ==
				   0);
	}
}

static size_t put_piece(char *text, size_t n, const char *piece)
{
	for (; *piece != '\0' && n + 2 < MAX_TEXT; piece++) {
		if (strchr("\\,=", *piece) != NULL)
			text[n++] = '\\';
		text[n++] = *piece;
	}
	return n;
}

/* What parsed means the same when it is written anew. */
static void check_written_anew(const struct mr_spec *spec)
{
	static struct mr_spec again;
	char text[MAX_TEXT];
	size_t n;

	/* Other names may be read as an interface, or as a PCI address. */
	if (strspn(spec->driver, "abcdefghijklmnopqrstuvwxyz") !=
	    strlen(spec->driver) ||
	    strspn(spec->driver, "abcdef") == strlen(spec->driver))
		return;
	n = put_piece(text, 0, spec->driver);
	text[n++] = ':';
	n = put_piece(text, n, spec->device);
	for (uint32_t i = 0; i < spec->n_options; i++) {
		text[n++] = ',';
		n = put_piece(text, n, spec->options[i].key);
		text[n++] = '=';
		n = put_piece(text, n, spec->options[i].value);
	}
	text[n] = '\0';
	if (n >= MRI_SPEC_MAX_BYTES)
		return;
	FUZZ_CHECK(mri_spec_parse(&again, text, NULL) == 0);
	FUZZ_CHECK(strcmp(again.driver, spec->driver) == 0);
	FUZZ_CHECK(strcmp(again.device, spec->device) == 0);
	FUZZ_CHECK(again.n_options == spec->n_options);
	for (uint32_t i = 0; i < spec->n_options; i++) {
		FUZZ_CHECK(strcmp(again.options[i].key,
				  spec->options[i].key) == 0);
		FUZZ_CHECK(strcmp(again.options[i].value,
				  spec->options[i].value) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static const char *const keys[] = { "queues", "mode", NULL };
	static struct mr_spec spec;
	struct mr_reason why = { .text = "" };
	char text[5000];

	if (n_bytes >= sizeof(text))
		return 0;
	memcpy(text, bytes, n_bytes);
	text[n_bytes] = '\0';
	if (mri_spec_parse(&spec, text, &why) < 0) {
		check_reason(&why);
		return 0;
	}
	check_parsed(&spec);
	check_written_anew(&spec);
	if (mri_spec_check_keys(&spec, keys, &why) < 0)
		check_reason(&why);
	return 0;
}

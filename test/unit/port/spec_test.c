/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/spec.c: the grammar of port specs, case by case. */
#include "support/unit.h"

#include <millrace/driver.h>

#include "port/spec.h"

/* What a text means; options as "key=value;key=;". */
static const struct {
	const char *text, *driver, *device, *options;
} good[] = {
	{ "eth0", "xdp", "eth0", "" },
	{ "eth0,queues=2", "xdp", "eth0", "queues=2;" },
	{ "xdp:eth0", "xdp", "eth0", "" },
	{ "xdp:eth0,queues=2,mode=zc", "xdp", "eth0", "queues=2;mode=zc;" },
	{ "xdp:eth0,force", "xdp", "eth0", "force=;" },
	{ "xdp:eth0,force=", "xdp", "eth0", "force=;" },
	{ "null:", "null", "", "" },
	{ "null:queues=2", "null", "", "queues=2;" },
	{ "null:,queues=2", "null", "", "queues=2;" },
	{ "pcap:rx=a.pcap,tx=b.pcap", "pcap", "", "rx=a.pcap;tx=b.pcap;" },
	{ "pcap:rx=a=b", "pcap", "", "rx=a=b;" },
	{ "pcap:rx=c:/x", "pcap", "", "rx=c:/x;" },
	{ "pcap:rx=with\\,comma,tx=b", "pcap", "", "rx=with,comma;tx=b;" },
	{ "pcap:rx=back\\\\slash", "pcap", "", "rx=back\\slash;" },
	{ "pcap:rx=end\\", "pcap", "", "rx=end\\;" },
	{ "tap:a\\,b,c=1", "tap", "a,b", "c=1;" },
	{ "tap:a\\=b", "tap", "a=b", "" },
	/* Quoted before its first '=': a device, with arguments of its own. */
	{ "dpdk:net_pcap0\\,rx_pcap=a.pcap", "dpdk", "net_pcap0,rx_pcap=a.pcap",
	  "" },
	{ "dpdk:net_pcap0\\,rx_pcap=a\\,tx_pcap=b,queues=1,promisc", "dpdk",
	  "net_pcap0,rx_pcap=a,tx_pcap=b", "queues=1;promisc=;" },
	{ "dpdk:0000:03:00.0,queues=2", "dpdk", "0000:03:00.0", "queues=2;" },
	{ "03:00.0", "vfio", "03:00.0", "" },
	{ "0000:03:00.0", "vfio", "0000:03:00.0", "" },
	{ "0000:af:1f.7,queues=4", "vfio", "0000:af:1f.7", "queues=4;" },
	{ "03:00.8", "03", "00.8", "" }, /* a function is 0 to 7 */
	{ "0000:03:00", "0000", "03:00", "" },
	{ "dpdk:0000:03:00.0,a=1", "dpdk", "0000:03:00.0", "a=1;" },
	{ "eth0,name=a:b", "xdp", "eth0", "name=a:b;" },
	{ "xdp:eth0:1", "xdp", "eth0:1", "" },
};

static const struct {
	const char *text, *words;
} bad[] = {
	{ "", "it is empty" },
	{ ":eth0", "no driver before ':'" },
	{ ":", "no driver before ':'" },
	{ "null:,", "an option without a name" },
	{ "xdp:eth0,", "an option without a name" },
	{ "xdp:eth0,,force", "an option without a name" },
	{ "xdp:eth0,=3", "an option without a name" },
	{ "null:=3", "an option without a name" },
	{ "xdp:eth0,a=1,b=2,a=3", "option 'a' is there twice" },
	{ "xdp:eth0,a,a", "option 'a' is there twice" },
};

TEST(specs_are_read_as_the_grammar_says)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct mr_spec spec;
		struct mr_reason why = { "" };
		char options[256] = "";

		if (mri_spec_parse(&spec, good[i].text, &why) != 0)
			fail_msg("%s: %s", good[i].text, why.text);
		assert_string_equal(spec.driver, good[i].driver);
		assert_string_equal(mr_spec_device(&spec), good[i].device);
		for (uint32_t o = 0; o < spec.n_options; o++) {
			const size_t n = strlen(options);

			snprintf(options + n, sizeof(options) - n, "%s=%s;",
				 spec.options[o].key, spec.options[o].value);
		}
		assert_string_equal(options, good[i].options);
	}
}

TEST(broken_specs_are_refused_with_a_reason)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mr_spec spec;
		struct mr_reason why = { "" };

		assert_int_equal(mri_spec_parse(&spec, bad[i].text, &why),
				 -EINVAL);
		assert_reason_has(&why, bad[i].words);
	}
}

TEST(length_and_number_of_options_are_limited)
{
	struct mr_spec spec;
	struct mr_reason why = { "" };
	char text[2000];
	size_t n;

	/* "xdp:" goes before a bare name and counts. */
	memset(text, 'e', sizeof(text));
	text[MRI_SPEC_MAX_BYTES - 1 - 4] = '\0';
	assert_int_equal(mri_spec_parse(&spec, text, NULL), 0);
	assert_int_equal(strlen(spec.device), MRI_SPEC_MAX_BYTES - 5);
	text[MRI_SPEC_MAX_BYTES - 1 - 4] = 'e';
	text[MRI_SPEC_MAX_BYTES - 4] = '\0';
	assert_int_equal(mri_spec_parse(&spec, text, &why), -EINVAL);
	assert_reason_has(&why, "longer than 1023");

	n = (size_t)snprintf(text, sizeof(text), "null:");
	for (int i = 0; i < MRI_SPEC_MAX_OPTIONS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",o%d", i);
	assert_int_equal(mri_spec_parse(&spec, text, NULL), 0);
	assert_int_equal(spec.n_options, MRI_SPEC_MAX_OPTIONS);
	snprintf(text + n, sizeof(text) - n, ",more");
	assert_int_equal(mri_spec_parse(&spec, text, &why), -EINVAL);
	assert_reason_has(&why, "more than 32 options");
}

TEST(options_are_found_by_their_whole_name)
{
	struct mr_spec spec;

	mri_spec_parse(&spec, "null:queues=2,force", NULL);
	assert_string_equal(mr_spec_get(&spec, "queues"), "2");
	assert_string_equal(mr_spec_get(&spec, "force"), "");
	assert_null(mr_spec_get(&spec, "queue"));
	assert_null(mr_spec_get(&spec, "queuess"));
	assert_null(mr_spec_get(&spec, ""));
}

TEST(unknown_options_are_named_with_those_there_are)
{
	static const char *const keys[] = { "queues", "mode", NULL };
	struct mr_reason why = { "" };
	struct mr_spec spec;

	mri_spec_parse(&spec, "xdp:eth0,mode=zc,queues=1", NULL);
	assert_int_equal(mri_spec_check_keys(&spec, keys, NULL), 0);
	mri_spec_parse(&spec, "xdp:eth0,mode=zc,quest=1", NULL);
	assert_int_equal(mri_spec_check_keys(&spec, keys, &why), -EINVAL);
	assert_reason_has(&why, "xdp: has no option 'quest'; it has: queues "
				"mode");
	assert_int_equal(mri_spec_check_keys(&spec, NULL, &why), -EINVAL);
	assert_reason_has(&why, "it has: none");
	mri_spec_parse(&spec, "xdp:eth0", NULL);
	assert_int_equal(mri_spec_check_keys(&spec, NULL, NULL), 0);
}

TEST(a_list_without_room_ends_after_a_whole_word)
{
	const char *keys[100] = { NULL };
	struct mr_reason why;
	struct mr_spec spec;

	for (uint32_t i = 0; i < 99; i++)
		keys[i] = "abcdef";
	mri_spec_parse(&spec, "xdp:eth0,quest=1", NULL);
	assert_int_equal(mri_spec_check_keys(&spec, keys, &why), -EINVAL);
	assert_reason_has(&why, " abcdef …");
	assert_string_equal(strstr(why.text, "…"), "…");
	/* A text of one word is cut between two characters. */
	memset(why.text, 0, sizeof(why.text));
	assert_int_equal(mr_fail(&why, -EINVAL, "%0500d", 0), -EINVAL);
	assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
	assert_string_equal(strstr(why.text, "…"), "…");
}

TEST(numbers_are_read_and_their_range_is_checked)
{
	static const struct {
		const char *value;
		int err;
		uint32_t number;
		const char *words;
	} cases[] = {
		{ "0", 0, 0, "" },
		{ "1", 0, 1, "" },
		{ "010", 0, 10, "" }, /* not 8 */
		{ "0x10", 0, 16, "" },
		{ "4k", 0, 4096, "" },
		{ "2m", 0, 2u << 20, "" },
		{ "3g", 0, 3u << 30, "" },
		{ "0x1k", 0, 1024, "" },
		{ "4294967295", 0, UINT32_MAX, "" },
		{ "4294967296", -EINVAL, 0, "out of range" },
		{ "4g", -EINVAL, 0, "out of range" },
		{ "4194304k", -EINVAL, 0, "out of range" },
		{ "17179869185g", -EINVAL, 0, "out of range" }, /* 2^34+1 */
		{ "18446744073709551616", -EINVAL, 0, "out of range" },
		{ "99999999999999999999k", -EINVAL, 0, "out of range" },
		{ "", -EINVAL, 0, "'' is not a number" },
		{ "-1", -EINVAL, 0, "not a number" },
		{ "+1", -EINVAL, 0, "not a number" },
		{ " 1", -EINVAL, 0, "not a number" },
		{ "1 ", -EINVAL, 0, "not a number" },
		{ "1kk", -EINVAL, 0, "not a number" },
		{ "1K", -EINVAL, 0, "not a number" },
		{ "1t", -EINVAL, 0, "not a number" },
		{ "k", -EINVAL, 0, "not a number" },
		{ "0x", -EINVAL, 0, "not a number" },
		{ "0x0x5", -EINVAL, 0, "not a number" },
		{ "1.5", -EINVAL, 0, "not a number" },
		{ "ten", -EINVAL, 0, "not a number" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason why = { "" };
		struct mr_spec spec;
		char text[64];
		uint32_t number = 77;

		snprintf(text, sizeof(text), "null:n=%s", cases[i].value);
		assert_int_equal(mri_spec_parse(&spec, text, NULL), 0);
		if (mr_spec_get_u32(&spec, "n", 5, 0, UINT32_MAX, &number,
				    &why) != cases[i].err)
			fail_msg("%s: %s", cases[i].value, why.text);
		assert_int_equal(number,
				 cases[i].err == 0 ? cases[i].number : 77);
		if (cases[i].err < 0)
			assert_reason_has(&why, cases[i].words);
	}
}

TEST(range_includes_its_ends_and_absence_is_the_default)
{
	struct mr_reason why = { "" };
	struct mr_spec spec;
	uint32_t n = 0;

	mri_spec_parse(&spec, "null:a=3,b=2,c=6,d=7", NULL);
	assert_int_equal(mr_spec_get_u32(&spec, "a", 0, 3, 6, &n, NULL), 0);
	assert_int_equal(mr_spec_get_u32(&spec, "b", 0, 3, 6, &n, &why),
			 -EINVAL);
	assert_reason_has(&why, "null: option b: 2 is out of range, 3 to 6");
	assert_int_equal(mr_spec_get_u32(&spec, "c", 0, 3, 6, &n, NULL), 0);
	assert_int_equal(n, 6);
	assert_int_equal(mr_spec_get_u32(&spec, "d", 0, 3, 6, &n, NULL),
			 -EINVAL);
	assert_int_equal(mr_spec_get_u32(&spec, "e", 4, 3, 6, &n, NULL), 0);
	assert_int_equal(n, 4);
}

TEST(words_are_matched_whole)
{
	static const char *const words[] = { "auto", "zc", "copy", NULL };
	struct mr_reason why = { "" };
	struct mr_spec spec;
	uint32_t i = 77;

	mri_spec_parse(&spec, "xdp:e,mode=copy,m2=cop,m3", NULL);
	assert_int_equal(mr_spec_get_word(&spec, "mode", words, &i, NULL), 0);
	assert_int_equal(i, 2);
	assert_int_equal(mr_spec_get_word(&spec, "none", words, &i, NULL), 0);
	assert_int_equal(i, 0);
	assert_int_equal(mr_spec_get_word(&spec, "m2", words, &i, &why),
			 -EINVAL);
	assert_reason_has(&why, "xdp: option m2: no such value 'cop'; there "
				"are: auto zc copy");
	assert_int_equal(mr_spec_get_word(&spec, "m3", words, &i, NULL),
			 -EINVAL);
	assert_int_equal(i, 0);
}

TEST(only_powers_of_two_are_accepted)
{
	struct mr_reason why = { "" };
	struct mr_spec spec;
	uint32_t n = 77;

	mri_spec_parse(&spec, "null:a=64,b=96,c=0,d=128", NULL);
	assert_int_equal(mr_spec_get_pow2(&spec, "a", 0, 64, 64, &n, NULL), 0);
	assert_int_equal(n, 64);
	assert_int_equal(mr_spec_get_pow2(&spec, "b", 0, 64, 128, &n, &why),
			 -EINVAL);
	assert_reason_has(&why, "null: option b: 96 is not a power of two");
	assert_int_equal(mr_spec_get_pow2(&spec, "c", 0, 1, 128, &n, NULL),
			 -EINVAL);
	assert_int_equal(mr_spec_get_pow2(&spec, "d", 0, 1, 127, &n, &why),
			 -EINVAL);
	assert_reason_has(&why, "out of range");
	assert_int_equal(n, 64);
	assert_int_equal(mr_spec_get_pow2(&spec, "e", 100, 1, 8, &n, NULL), 0);
	assert_int_equal(n, 100);
}

TEST(on_and_off_have_several_spellings)
{
	static const char *const names[2][5] = {
		{ "=off", "=no", "=false", "=0", NULL },
		{ "=on", "=yes", "=true", "=1", "" },
	};
	struct mr_reason why = { "" };
	struct mr_spec spec;
	char text[32];
	bool is_on;

	for (int on = 0; on < 2; on++)
		for (int i = 0; i < 5 && names[on][i] != NULL; i++) {
			snprintf(text, sizeof(text), "null:,a%s", names[on][i]);
			assert_int_equal(mri_spec_parse(&spec, text, NULL), 0);
			is_on = !on;
			assert_int_equal(
				mr_spec_get_bool(&spec, "a", &is_on, NULL), 0);
			assert_int_equal(is_on, on);
		}
	is_on = true;
	assert_int_equal(mr_spec_get_bool(&spec, "b", &is_on, NULL), 0);
	assert_false(is_on);
	mri_spec_parse(&spec, "null:,a=2", NULL);
	assert_int_equal(mr_spec_get_bool(&spec, "a", &is_on, &why), -EINVAL);
	assert_reason_has(&why, "null: option a: no such value '2'");
}

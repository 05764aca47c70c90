/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/ports/random.c, external.c, drop.c and bits.h. */
#include "fixture.h"

TEST(a_set_and_a_scan_find_the_same_number)
{
	enum { N = 700 };
	uint64_t memory[16] = { 0 };
	struct nat_bits bits = nat_bits_at(memory, N);
	bool has[N] = { false };
	struct nat_random random;

	assert_in_range(nat_bits_memory(N), 12, 16);
	nat_random_init(&random, 1);
	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t i = nat_random_below(&random, N), n_free = 0;
		uint32_t from = nat_random_below(&random, N), first = N;
		uint32_t to = nat_random_below(&random, N + 1);

		/* Fuller and fuller, then in between. */
		has[i] = step < 8000 || nat_random_below(&random, 20) > 0;
		if (has[i])
			nat_bits_add(&bits, i);
		else
			nat_bits_remove(&bits, i);
		assert_int_equal(nat_bits_has(&bits, i), has[i]);
		for (uint32_t k = from; k < to; k++) {
			if (!has[k] && first == N)
				first = k;
			n_free += !has[k];
		}
		assert_int_equal(nat_bits_find(&bits, from, to),
				 first == N ? NAT_BITS_NONE : first);
		assert_int_equal(nat_bits_count_free(&bits, from, to), n_free);
	}
}

TEST(a_full_set_has_no_free_number)
{
	static uint64_t memory[2048];
	struct nat_bits bits = nat_bits_at(memory, 32768);

	for (uint32_t i = 0; i < 32768; i++)
		nat_bits_add(&bits, i);
	assert_int_equal(nat_bits_find(&bits, 0, 32768), NAT_BITS_NONE);
	nat_bits_remove(&bits, 32767);
	assert_int_equal(nat_bits_find(&bits, 0, 32768), 32767);
	assert_int_equal(nat_bits_find(&bits, 0, 32767), NAT_BITS_NONE);
	assert_int_equal(nat_bits_find(&bits, 5, 5), NAT_BITS_NONE);
}

/* SipHash-2-4 of its paper's appendix A is of 15 bytes; this one, of 8 bytes
 * 00 to 07 under the key 00 to 0f, is in the reference's vectors. */
TEST(numbers_are_those_of_siphash)
{
	struct nat_random random = {
		.keys = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 },
		.counter = 0x0706050403020100,
	};

	assert_int_equal(nat_random_u64(&random), 0x93f5f5799a932462);
}

TEST(numbers_are_even_and_of_a_seed)
{
	struct nat_random a, b, c;
	uint32_t counts[10] = { 0 }, n_same = 0;

	assert_int_equal(nat_random_init(&a, 7), 0);
	assert_int_equal(nat_random_init(&b, 7), 0);
	assert_int_equal(nat_random_init(&c, 0), 0);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t x = nat_random_below(&a, 10);

		assert_int_equal(x, nat_random_below(&b, 10));
		n_same += x == nat_random_below(&c, 10);
		counts[x]++;
	}
	for (uint32_t i = 0; i < 10; i++)
		assert_in_range(counts[i], 9500, 10500);
	assert_in_range(n_same, 9000, 11000);
	/* Drawn ones differ. */
	assert_int_equal(nat_random_init(&b, 0), 0);
	assert_int_not_equal(nat_random_u64(&b), nat_random_u64(&c));
	assert_int_equal(nat_random_below(&a, 1), 0);
}

TEST(externals_have_indexes_without_gaps)
{
	struct nat_range pool[] = {
		{ 500, 509 }, { 100, 119 }, { 120, 129 }, { 900, 900 }
	};
	const struct nat_config config = { .pool = pool, .n_pool = 4 };
	struct nat_externals externals, again;
	uint32_t n = 0;

	assert_int_equal(nat_externals_init(&externals, &config), 0);
	for (uint32_t addr = 0; addr < 1000; addr++) {
		bool is_in = (addr >= 100 && addr <= 129) ||
			     (addr >= 500 && addr <= 509) || addr == 900;

		if (!is_in) {
			assert_int_equal(nat_external_index(&externals, addr),
					 NAT_EXTERNAL_NONE);
			continue;
		}
		assert_int_equal(nat_external_index(&externals, addr), n);
		assert_int_equal(nat_external_addr(&externals, n), addr);
		n++;
	}
	assert_int_equal(externals.n_addrs, n);
	assert_int_equal(nat_externals_init(&again, &config), 0);
	assert_true(nat_externals_equal(&externals, &again));
	nat_externals_fini(&again);
	pool[3].last = 901;
	assert_int_equal(nat_externals_init(&again, &config), 0);
	assert_false(nat_externals_equal(&externals, &again));
	nat_externals_fini(&again);
	nat_externals_fini(&externals);
}

TEST(subscribers_are_numbered_over_their_networks)
{
	struct nat_prefix nets[] = { { 0x0a000000, 0xffffff00 },
				     { 0xc0a80000, 0xfffffffc } };
	const struct nat_config config = { .subscribers = nets,
					   .n_subscribers = 2 };
	struct nat_externals ordinals;

	assert_int_equal(nat_ordinals_init(&ordinals, &config), 0);
	assert_int_equal(nat_subscriber_ordinal(&ordinals, htonl(0x0a000000)),
			 0);
	assert_int_equal(nat_subscriber_ordinal(&ordinals, htonl(0x0a0000ff)),
			 255);
	assert_int_equal(nat_subscriber_ordinal(&ordinals, htonl(0xc0a80001)),
			 257);
	assert_int_equal(nat_subscriber_ordinal(&ordinals, htonl(0xc0a80004)),
			 NAT_NO_ORDINAL);
	assert_int_equal(nat_subscriber_ordinal(&ordinals, htonl(0x09ffffff)),
			 NAT_NO_ORDINAL);
	assert_int_equal(nat_config_n_subscribers(&config), 260);
	nat_externals_fini(&ordinals);
}

TEST(reasons_have_names_of_their_own)
{
	for (uint32_t i = 0; i < NAT_DROPS; i++) {
		assert_non_null(nat_drop_name(i));
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(nat_drop_name(i),
						nat_drop_name(k));
	}
	assert_string_equal(nat_drop_name(NAT_DROP_TTL), "ttl");
	assert_string_equal(nat_drop_name(NAT_DROP_ARP), "arp");
	assert_string_equal(nat_drop_name(NAT_TAKEN), "taken");
	assert_null(nat_drop_name(NAT_DROPS));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of small numbers that quickly finds one not in it: 64 numbers per word,
 * and a bit for each full word. Finding one of 32768 reads at most two words
 * and eight summaries, even if the set is nearly full.
 */
#ifndef NAT_BITS_H
#define NAT_BITS_H

#include <stdbool.h>
#include <stdint.h>

enum { NAT_BITS_NONE = UINT32_MAX };

/* The caller provides memory; all zero is the empty set. */
struct nat_bits {
	uint64_t *words; /* bit set: the number is in the set */
	uint64_t *full;  /* bit set: the word has no 0 bit */
	uint32_t n_words;
};

static inline uint32_t nat_bits_words(uint32_t n_numbers)
{
	return (n_numbers + 63) / 64;
}

/* Words of memory for a set of numbers below n_numbers. */
static inline uint32_t nat_bits_memory(uint32_t n_numbers)
{
	uint32_t n_words = nat_bits_words(n_numbers);

	return n_words + nat_bits_words(n_words);
}

static inline struct nat_bits nat_bits_at(uint64_t *memory, uint32_t n_numbers)
{
	uint32_t n_words = nat_bits_words(n_numbers);

	return (struct nat_bits){ memory, memory + n_words, n_words };
}

static inline bool nat_bits_has(const struct nat_bits *bits, uint32_t i)
{
	return bits->words[i / 64] >> i % 64 & 1;
}

static inline void nat_bits_add(struct nat_bits *bits, uint32_t i)
{
	uint32_t w = i / 64;

	bits->words[w] |= 1ull << i % 64;
	if (bits->words[w] == UINT64_MAX)
		bits->full[w / 64] |= 1ull << w % 64;
}

static inline void nat_bits_remove(struct nat_bits *bits, uint32_t i)
{
	uint32_t w = i / 64;

	bits->words[w] &= ~(1ull << i % 64);
	bits->full[w / 64] &= ~(1ull << w % 64);
}

/* The smallest number of from..to-1 not in the set, or NAT_BITS_NONE. */
static inline uint32_t nat_bits_find(const struct nat_bits *bits, uint32_t from,
				     uint32_t to)
{
	uint32_t w = from / 64, i;
	uint64_t open;

	if (from >= to)
		return NAT_BITS_NONE;
	open = ~bits->words[w] & UINT64_MAX << from % 64;
	if (open == 0) {
		uint32_t f = ++w / 64;
		uint64_t not_full;

		if (w >= bits->n_words)
			return NAT_BITS_NONE;
		not_full = ~bits->full[f] & UINT64_MAX << w % 64;
		while (not_full == 0 && ++f * 64 < bits->n_words)
			not_full = ~bits->full[f];
		if (not_full == 0)
			return NAT_BITS_NONE;
		w = f * 64 + (uint32_t)__builtin_ctzll(not_full);
		if (w >= bits->n_words)
			return NAT_BITS_NONE;
		open = ~bits->words[w];
	}
	i = w * 64 + (uint32_t)__builtin_ctzll(open);
	return i < to ? i : NAT_BITS_NONE;
}

/* How many of from..to-1 are not in the set. */
static inline uint32_t nat_bits_count_free(const struct nat_bits *bits,
					   uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	for (uint32_t i = from; i < to;) {
		uint32_t n_here = 64 - i % 64 < to - i ? 64 - i % 64 : to - i;
		uint64_t mask = UINT64_MAX >> (64 - n_here) << i % 64;

		n += (uint32_t)__builtin_popcountll(~bits->words[i / 64] &
						    mask);
		i += n_here;
	}
	return n;
}

#endif

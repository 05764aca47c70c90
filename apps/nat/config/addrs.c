/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of addresses: addrs.h. Sources: RFC 1122 3.2.1.3, RFC 6890. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "addrs.h"

enum { N_ROOT = 1 << 16, N_SPLIT = 256 };

static int init_classes(struct nat_classes *classes)
{
	*classes = (struct nat_classes){ .n = N_ROOT, .n_max = N_ROOT };
	classes->slots = calloc(N_ROOT, sizeof(*classes->slots));
	return classes->slots == NULL ? -ENOMEM : 0;
}

/* Give this slot its own slots, with its bits. */
static int split_slot(struct nat_classes *classes, uint32_t at)
{
	const uint32_t bits = classes->slots[at];

	if (classes->n == classes->n_max) {
		const uint32_t n_max = 2 * classes->n_max;
		uint32_t *slots = realloc(classes->slots,
					  n_max * sizeof(*classes->slots));

		if (slots == NULL)
			return -ENOMEM;
		classes->slots = slots;
		classes->n_max = n_max;
	}
	for (uint32_t i = 0; i < N_SPLIT; i++)
		classes->slots[classes->n + i] = bits;
	classes->slots[at] = NAT_CLASSES_SPLIT | classes->n;
	classes->n += N_SPLIT;
	return 0;
}

/* The part of first..last that is in a slot of 2^shift addresses from begin. */
static int add_at(struct nat_classes *classes, uint32_t at, uint32_t begin,
		  uint32_t shift, uint32_t first, uint32_t last, uint32_t bits)
{
	const uint32_t end = begin + ((1u << shift) - 1);
	int err = 0;

	first = first > begin ? first : begin;
	last = last < end ? last : end;
	if ((classes->slots[at] & NAT_CLASSES_SPLIT) == 0) {
		if (first == begin && last == end) {
			classes->slots[at] |= bits;
			return 0;
		}
		err = split_slot(classes, at);
	}
	at = classes->slots[at] & ~NAT_CLASSES_SPLIT;
	shift -= 8;
	for (uint32_t i = (first - begin) >> shift;
	     err == 0 && i <= (last - begin) >> shift; i++)
		err = add_at(classes, at + i, begin + (i << shift), shift,
			     first, last, bits);
	return err;
}

/* Give addresses first to last (host order) a class. */
static int add_range(struct nat_addrs *addrs, uint32_t first, uint32_t last,
		     uint32_t class)
{
	int err = 0;

	for (uint32_t octet = first >> 24; octet <= last >> 24; octet++)
		addrs->octets[octet] = 1;
	for (uint32_t i = first >> 16; err == 0 && i <= last >> 16; i++)
		err = add_at(&addrs->classes, i, i << 16, 16, first, last,
			     class);
	return err;
}

static int add_prefix(struct nat_addrs *addrs, const struct nat_prefix *prefix,
		      uint32_t class)
{
	return add_range(addrs, prefix->addr, prefix->addr | ~prefix->mask,
			 class);
}

/* Addresses that are valid on no link, as source or destination. */
static int add_martians(struct nat_addrs *addrs)
{
	static const struct {
		uint32_t first, last, class;
	} rows[] = {
		{ 0, 0x00ffffff, NAT_ADDR_MARTIAN },
		{ 0x7f000000, 0x7fffffff, NAT_ADDR_MARTIAN },
		{ INADDR_UNSPEC_GROUP, INADDR_BROADCAST, NAT_ADDR_MARTIAN },
		{ 0xa9fe0000, 0xa9feffff, NAT_ADDR_LINK_LOCAL },
	};
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < sizeof(rows) / sizeof(*rows); i++)
		err = add_range(addrs, rows[i].first, rows[i].last,
				rows[i].class);
	return err;
}

static int add_external(struct nat_addrs *addrs,
			const struct nat_config *config)
{
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < config->n_pool; i++)
		err = add_range(addrs, config->pool[i].first,
				config->pool[i].last,
				NAT_ADDR_EXTERNAL | NAT_ADDR_GIVEN);
	for (uint32_t i = 0; err == 0 && i < config->n_forwards; i++)
		err = add_range(addrs, config->forwards[i].outside_addr,
				config->forwards[i].outside_addr,
				NAT_ADDR_EXTERNAL | NAT_ADDR_GIVEN |
					NAT_ADDR_FIXED);
	for (uint32_t i = 0; err == 0 && i < config->n_one_to_ones; i++)
		err = add_range(addrs, config->one_to_ones[i].outside_addr,
				config->one_to_ones[i].outside_addr,
				NAT_ADDR_EXTERNAL | NAT_ADDR_GIVEN |
					NAT_ADDR_FIXED);
	return err;
}

static int add_side(struct nat_addrs *addrs, const struct nat_side_config *c,
		    enum nat_side side)
{
	const uint32_t here =
		side == NAT_INSIDE ? NAT_ADDR_INSIDE : NAT_ADDR_EXTERNAL;
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < c->n_addrs; i++) {
		const uint32_t first = c->nets[i].addr,
			       last = first | ~c->nets[i].mask;

		err = add_range(
			addrs, first, last,
			NAT_ADDR_LINK << side |
				(side == NAT_INSIDE ? NAT_ADDR_INSIDE : 0));
		if (err == 0)
			err = add_range(addrs, c->addrs[i], c->addrs[i],
					NAT_ADDR_OWN << side | here);
		/* A link of two or one has no broadcast: RFC 3021. */
		if (err == 0 && last - first > 1)
			err = add_range(addrs, first, first,
					NAT_ADDR_BROADCAST << side);
		if (err == 0 && last - first > 1)
			err = add_range(addrs, last, last,
					NAT_ADDR_BROADCAST << side);
	}
	return err;
}

/* The sort key of excludes with the same mask. */
static uint64_t key_of(uint32_t net, uint8_t proto, uint16_t port)
{
	return (uint64_t)net << 32 | (uint32_t)proto << 16 | port;
}

static int compare_excludes(const void *a, const void *b)
{
	const struct nat_exclude *e = a, *f = b;
	const uint64_t at_e = key_of(e->to.addr, e->proto, e->first_port);
	const uint64_t at_f = key_of(f->to.addr, f->proto, f->first_port);

	if (e->to.mask != f->to.mask)
		return e->to.mask < f->to.mask ? -1 : 1;
	return at_e < at_f ? -1 : at_e > at_f;
}

/* Merge overlapping port ranges of the same network and protocol. */
static void merge_excludes(struct nat_addrs *addrs)
{
	struct nat_exclude *to = addrs->excludes;

	for (uint32_t i = 1; i < addrs->n_excludes; i++) {
		const struct nat_exclude *e = &addrs->excludes[i];

		if (e->to.addr != to->to.addr || e->to.mask != to->to.mask ||
		    e->proto != to->proto || e->first_port > to->last_port)
			*++to = *e;
		else if (e->last_port > to->last_port)
			to->last_port = e->last_port;
	}
	if (addrs->n_excludes > 0)
		addrs->n_excludes = (uint32_t)(to - addrs->excludes) + 1;
}

static int add_excludes(struct nat_addrs *addrs,
			const struct nat_config *config)
{
	int err = 0;

	addrs->excludes =
		calloc(config->n_excludes + 1u, sizeof(*addrs->excludes));
	if (addrs->excludes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; err == 0 && i < config->n_excludes; i++) {
		const struct nat_exclude *e = &config->excludes[i];
		const bool is_whole = e->proto == 0 && e->first_port == 0 &&
				      e->last_port == UINT16_MAX;

		err = add_prefix(addrs, &e->to,
				 is_whole ? NAT_ADDR_EXCLUDED :
					    NAT_ADDR_EXCLUDED_PORTS);
		if (is_whole)
			continue;
		addrs->excludes[addrs->n_excludes++] = *e;
		addrs->masks |= UINT64_C(1) << __builtin_popcount(e->to.mask);
	}
	qsort(addrs->excludes, addrs->n_excludes, sizeof(*addrs->excludes),
	      compare_excludes);
	merge_excludes(addrs);
	return err;
}

static int fill_classes(struct nat_addrs *addrs,
			const struct nat_config *config)
{
	int err = init_classes(&addrs->classes);

	if (err == 0)
		err = add_martians(addrs);
	if (err == 0)
		err = add_external(addrs, config);
	for (uint32_t side = 0; err == 0 && side < NAT_SIDES; side++)
		err = add_side(addrs, &config->sides[side],
			       (enum nat_side)side);
	for (uint32_t i = 0; err == 0 && i < config->n_subscribers; i++)
		err = add_prefix(addrs, &config->subscribers[i],
				 config->subscribers[i].mask != 0 ?
					 NAT_ADDR_SUBSCRIBER | NAT_ADDR_INSIDE :
					 NAT_ADDR_SUBSCRIBER);
	return err < 0 ? err : add_excludes(addrs, config);
}

int nat_addrs_create(struct nat_config *config)
{
	struct nat_addrs *addrs = calloc(1, sizeof(*addrs));

	if (addrs == NULL || fill_classes(addrs, config) < 0) {
		nat_addrs_destroy(addrs);
		return -ENOMEM;
	}
	config->addrs = addrs;
	return 0;
}

void nat_addrs_destroy(struct nat_addrs *addrs)
{
	if (addrs == NULL)
		return;
	free(addrs->classes.slots);
	free(addrs->excludes);
	free(addrs);
}

/* Whether the last range that begins at or before the port contains it. */
static bool has_port(const struct nat_addrs *addrs,
		     const struct nat_exclude *what)
{
	const struct nat_exclude *e = addrs->excludes;

	for (uint32_t n = addrs->n_excludes; n > 1;) {
		const uint32_t half = n / 2;

		e += compare_excludes(&e[half], what) <= 0 ? half : 0;
		n -= half;
	}
	return e->to.addr == what->to.addr && e->to.mask == what->to.mask &&
	       e->proto == what->proto && e->first_port <= what->first_port &&
	       what->first_port <= e->last_port;
}

bool nat_addrs_is_excluded(const struct nat_addrs *addrs, uint32_t addr,
			   uint8_t proto, uint16_t port)
{
	const uint32_t is = nat_addrs_of(addrs, addr);

	if (is & NAT_ADDR_EXCLUDED)
		return true;
	if ((is & NAT_ADDR_EXCLUDED_PORTS) == 0)
		return false;
	for (uint64_t left = addrs->masks; left != 0; left &= left - 1) {
		const uint32_t n_bits = (uint32_t)__builtin_ctzll(left);
		const uint32_t mask =
			n_bits == 0 ? 0 : UINT32_MAX << (32 - n_bits);
		struct nat_exclude what = { .to = { ntohl(addr) & mask, mask },
					    .proto = proto,
					    .first_port = ntohs(port) };

		if (has_port(addrs, &what))
			return true;
		what.proto = 0;
		if (has_port(addrs, &what))
			return true;
	}
	return false;
}

bool nat_config_has_port(const struct nat_config *config, uint32_t addr,
			 uint16_t port)
{
	if (port >= config->ports.first && port <= config->ports.last)
		return true;
	for (uint32_t i = 0; i < config->n_forwards; i++) {
		const struct nat_port_forward *f = &config->forwards[i];

		if (f->outside_addr == addr && port >= f->outside_first &&
		    port <= f->outside_last)
			return true;
	}
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		if (config->one_to_ones[i].outside_addr == addr)
			return true;
	return false;
}

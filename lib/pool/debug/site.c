/* SPDX-License-Identifier: BSD-3-Clause */
/* Call sites that allocate and free pages, and what they hold. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "pool/debug/safety.h"

enum { MAX_PROBES = 16 };

/*
 * One compare for a known site. A slot is taken for good, so the loser of a
 * race for it reads what the winner wrote.
 */
uint32_t mri_site_find(struct mri_safety *safety, const void *site)
{
	const uint64_t addr = (uintptr_t)site;
	/* D. E. Knuth's multiplicative hashing. */
	const uint64_t hash = addr * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t place = (uint32_t)(hash >> (64 - MRI_SITE_BITS));

	if (addr == 0)
		return 0;
	for (uint32_t i = 0; i < MAX_PROBES; i++) {
		uint64_t *slot = &safety->sites[place].addr;
		uint64_t seen = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if (seen == addr)
			return place;
		if (seen == 0 && place != 0 &&
		    (__atomic_compare_exchange_n(slot, &seen, addr, false,
						 __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED) ||
		     seen == addr))
			return place;
		place = (place + 1) % MRI_SITES;
	}
	return 0;
}

bool mri_site_tell(struct mri_safety *safety, uint32_t place, uint32_t matter)
{
	return (__atomic_fetch_or(&safety->sites[place].told, matter,
				  __ATOMIC_RELAXED) &
		matter) == 0;
}

static const void *address_of(const struct mri_safety *safety, uint32_t place)
{
	return (const void *)(uintptr_t)__atomic_load_n(
		&safety->sites[place].addr, __ATOMIC_RELAXED);
}

void mri_site_say(const struct mri_safety *safety, uint32_t place,
		  char text[MRI_SITE_TEXT])
{
	const void *site = address_of(safety, place);
	const char *name;
	uint64_t offset;
	Dl_info info;

	if (site == NULL) {
		snprintf(text, MRI_SITE_TEXT, "an unknown place");
		return;
	}
	if (dladdr(site, &info) == 0 || info.dli_fname == NULL) {
		snprintf(text, MRI_SITE_TEXT, "%p", site);
		return;
	}
	name = strrchr(info.dli_fname, '/');
	name = name == NULL ? info.dli_fname : name + 1;
	/* Of the call, not of what follows it, which may be another line. */
	offset = (uint64_t)((const char *)site - (const char *)info.dli_fbase);
	if (info.dli_sname != NULL)
		snprintf(text, MRI_SITE_TEXT, "%s() in %.60s+0x%llx",
			 info.dli_sname, name, (unsigned long long)offset - 1);
	else
		snprintf(text, MRI_SITE_TEXT, "%.60s+0x%llx", name,
			 (unsigned long long)offset - 1);
}

/* Pages held by one site. */
struct tally {
	uint32_t n_pages;
	uint32_t oldest; /* page */
	uint64_t oldest_us;
};

/*
 * The words are read one by one while others change them: what is held for long
 * is certainly seen.
 */
static void count_pages(const struct mr_pool *pool, struct tally *tallies)
{
	for (uint32_t page = 0; page < pool->n_pages; page++) {
		const uint64_t state = __atomic_load_n(
			&pool->safety->states[page], __ATOMIC_RELAXED);
		struct tally *tally = &tallies[mri_state_site(state)];
		const uint64_t us = state >> MRI_TIME_SHIFT;

		if ((state & MRI_STATE_OUT) == 0)
			continue;
		if (tally->n_pages++ == 0 || us < tally->oldest_us) {
			tally->oldest_us = us;
			tally->oldest = page;
		}
	}
}

/* The site with the most pages, removed from tallies; MRI_SITES: none. */
static uint32_t take_largest(struct tally *tallies, struct tally *ret)
{
	uint32_t largest = 0;

	for (uint32_t i = 1; i < MRI_SITES; i++)
		if (tallies[i].n_pages > tallies[largest].n_pages)
			largest = i;
	*ret = tallies[largest];
	tallies[largest].n_pages = 0;
	return ret->n_pages == 0 ? MRI_SITES : largest;
}

uint32_t mr_pool_leaks(const struct mr_pool *pool, struct mr_leak *leaks,
		       uint32_t n)
{
	struct tally tallies[MRI_SITES] = { 0 };
	struct tally tally;
	uint32_t n_places = 0, place;
	uint64_t now_ns;

	if (pool->safety == NULL)
		return 0;
	count_pages(pool, tallies);
	now_ns = mr_ctx_now_ns(pool->ctx);
	while ((place = take_largest(tallies, &tally)) != MRI_SITES) {
		const uint64_t taken_ns = tally.oldest_us * 1000;

		if (n_places++ >= n)
			continue;
		leaks[n_places - 1] = (struct mr_leak){
			.site = address_of(pool->safety, place),
			.n_pages = tally.n_pages,
			.oldest_ns = now_ns > taken_ns ? now_ns - taken_ns : 0,
			.addr = mri_page_addr(pool, tally.oldest),
		};
	}
	return n_places;
}

void mri_site_say_leaks(const struct mr_pool *pool, char *text, size_t n)
{
	struct tally tallies[MRI_SITES] = { 0 };
	struct tally tally;
	char where[MRI_SITE_TEXT];
	size_t n_text = 0;
	uint32_t place;

	text[0] = '\0';
	if (pool->safety == NULL)
		return;
	count_pages(pool, tallies);
	for (uint32_t i = 0; i < 3; i++) {
		place = take_largest(tallies, &tally);
		if (place == MRI_SITES || n_text >= n)
			break;
		mri_site_say(pool->safety, place, where);
		n_text += (size_t)snprintf(
			text + n_text, n - n_text, "%s %u taken by %s",
			i == 0 ? ":" : ",", tally.n_pages, where);
	}
}

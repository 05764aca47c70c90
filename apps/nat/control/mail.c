/* SPDX-License-Identifier: BSD-3-Clause */
/* What the main thread asks of a worker. */
#include <stdio.h>
#include <unistd.h>

#include "mail.h"
#include "mapping/session.h"

static enum nat_mail_state state_of(const struct nat_mail *mail)
{
	return (enum nat_mail_state)__atomic_load_n(&mail->state,
						    __ATOMIC_ACQUIRE);
}

static void set_state(struct nat_mail *mail, enum nat_mail_state state)
{
	__atomic_store_n(&mail->state, state, __ATOMIC_RELEASE);
}

void nat_mail_ask(struct nat_mail *mail)
{
	set_state(mail, NAT_MAIL_ASKED);
}

bool nat_mail_is_answered(struct nat_mail *mail)
{
	return state_of(mail) == NAT_MAIL_ANSWERED;
}

bool nat_mail_is_free(const struct nat_mail *mail)
{
	return state_of(mail) == NAT_MAIL_FREE;
}

void nat_mail_done(struct nat_mail *mail)
{
	set_state(mail, NAT_MAIL_FREE);
}

static void list(struct nat_mail *mail, const struct nat_mail_to *to)
{
	const uint32_t n_seen = nat_maps_list(
		to->maps, &mail->cursor, to->now_s, mail->sessions,
		mail->question == NAT_ASK_SAVE ? NAT_MAIL_SAVED :
						 NAT_MAIL_SESSIONS);

	mail->is_end = n_seen == 0;
	mail->n = 0;
	for (uint32_t i = 0; i < n_seen; i++)
		if (nat_filter_has(&mail->filter, &mail->sessions[i]))
			mail->sessions[mail->n++] = mail->sessions[i];
}

/* Static mappings stay, so one without sessions has nothing to end. */
static bool has_sessions(const struct nat_map *map)
{
	return (map->flags & NAT_MAP_STATIC) == 0 || map->remote.addr != 0 ||
	       map->n_sessions > 0;
}

/* A mapping with several sessions is ended by the first of them. */
static void clear(struct nat_mail *mail, const struct nat_mail_to *to)
{
	uint32_t n_ended = 0;

	list(mail, to);
	for (uint32_t i = 0; i < mail->n; i++) {
		uint32_t id;

		nat_maps_find_out(to->maps, &mail->sessions[i].inside, 1, &id);
		if (id == MR_FLOW_NONE ||
		    !has_sessions(nat_map_at(to->maps, id)))
			continue;
		nat_maps_close(to->maps, id, to->now_s);
		n_ended++;
	}
	mail->n = n_ended;
	if (mail->is_end && mail->is_now)
		mail->is_end =
			nat_ports_release_all(to->maps->ports, to->now_s,
					      NAT_MAIL_PORTS) < NAT_MAIL_PORTS;
}

static void reload(struct nat_mail *mail, const struct nat_mail_to *to)
{
	mail->err =
		nat_maps_reload(to->maps, mail->config, to->now_s, &mail->why);
	if (mail->err < 0)
		return;
	nat_path_reload(to->path, mail->config);
	if (to->steer != NULL)
		nat_steer_follow(to->steer, mail->routes);
}

void nat_mail_answer(struct nat_mail *mail, const struct nat_mail_to *to)
{
	const uint64_t one = 1;

	if (state_of(mail) != NAT_MAIL_ASKED)
		return;
	switch (mail->question) {
	case NAT_ASK_LIST:
	case NAT_ASK_SAVE:
		list(mail, to);
		break;
	case NAT_ASK_CLEAR:
		clear(mail, to);
		break;
	case NAT_ASK_RELOAD:
		reload(mail, to);
		break;
	}
	set_state(mail, NAT_MAIL_ANSWERED);
	/* Fails only if it is readable already, which is all we want. */
	if (write(mail->answered_fd, &one, sizeof(one)) < 0)
		return;
}

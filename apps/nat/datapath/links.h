/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's view of its two ports. */
#ifndef NAT_LINKS_H
#define NAT_LINKS_H

#include "state.h"

/* Set up the links for path->config. */
void nat_links_init(struct nat_path *path);
/* Follow changes of the ports. */
void nat_links_follow(struct nat_path *path);

#endif

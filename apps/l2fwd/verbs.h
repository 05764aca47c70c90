/* SPDX-License-Identifier: BSD-3-Clause */
/* What mr-l2fwd can be asked on its control socket; the app is the session. */
#ifndef L2FWD_VERBS_H
#define L2FWD_VERBS_H

#include "support/control.h"

/* l2 fdb: an object per address, then their number as "listed". */
enum { N_L2FWD_VERBS = 1 };
extern const struct control_verb l2fwd_verbs[N_L2FWD_VERBS];

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and values of the rules in the configuration file. */
#ifndef NAT_RULES_H
#define NAT_RULES_H

#include "config.h"
#include "support/yaml_keys.h"

/* Values that other keys have, too. */
yaml_read_fn read_addr;   /* uint32_t */
yaml_read_fn read_prefix; /* struct nat_prefix */
yaml_read_fn read_ports;  /* uint16_t [2]: first and last */

/* One item of a list. */
yaml_take_fn take_forward;    /* struct nat_forward */
yaml_take_fn take_one_to_one; /* struct nat_one_to_one */
yaml_take_fn take_exclude;    /* struct nat_exclude */

#endif

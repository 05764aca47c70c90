/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that pass frames on; argv[1] is the command. */
#ifndef NET_COMMANDS_H
#define NET_COMMANDS_H

int reflect_main(int argc, char **argv);
int replay_main(int argc, char **argv);

#endif

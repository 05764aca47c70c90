/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands that search, as main() calls them: the exit status. */
#ifndef SEARCH_COMMANDS_H
#define SEARCH_COMMANDS_H

int throughput_main(int argc, char **argv);
int frameloss_main(int argc, char **argv);
int back2back_main(int argc, char **argv);
int latency_main(int argc, char **argv);
int imix_main(int argc, char **argv);
int soak_main(int argc, char **argv);
int nat_main(int argc, char **argv);
int selftest_main(int argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench tx, rx and loop: send, receive, or both. Exit statuses. */
#ifndef NET_TRAFFIC_H
#define NET_TRAFFIC_H

int tx_main(int argc, char **argv);
int rx_main(int argc, char **argv);
int loop_main(int argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench plan FILE. */
#ifndef PLAN_PLAN_MAIN_H
#define PLAN_PLAN_MAIN_H

int plan_main(int argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESULT_REPORT_H
#define RESULT_REPORT_H

/* mr-bench report: a page of documents. argv[1] is the command. */
int report_main(int argc, char **argv);

#endif

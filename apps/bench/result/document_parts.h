/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a document share. */
#ifndef RESULT_DOCUMENT_PARTS_H
#define RESULT_DOCUMENT_PARTS_H

#include "result/document.h"
#include "support/json_text.h"

#define DOCUMENT_VERSION 1

json_t *document_count(uint64_t n);

/* JSON has no infinity; what is none, of 0 seconds or frames, is 0. */
json_t *document_real(double value);

#endif

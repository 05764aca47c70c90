/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "net/trial.h"

void trial_result_free(struct trial_result *result)
{
	free(result->streams);
	free(result->directions);
	free(result->drops);
	result->streams = NULL;
	result->directions = NULL;
	result->drops = NULL;
	result->n_streams = result->n_directions = result->n_drops = 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums are taken about the means so far (Welford), so that none cancels. */
#include <math.h>

#include "search/drift.h"

void drift_add(struct drift *d, double t, double value)
{
	const double dt = t - d->mean_t, dv = value - d->mean_v;

	d->n++;
	d->mean_t += dt / d->n;
	d->mean_v += dv / d->n;
	d->sum_tt += dt * (t - d->mean_t);
	d->sum_tv += dt * (value - d->mean_v);
	d->sum_vv += dv * (value - d->mean_v);
	if (d->n == 1)
		d->first = d->min = d->max = value;
	d->last = value;
	d->min = fmin(d->min, value);
	d->max = fmax(d->max, value);
}

double drift_slope(const struct drift *d)
{
	return d->n < 3 || d->sum_tt <= 0 ? 0 : d->sum_tv / d->sum_tt;
}

int drift_is_real(const struct drift *d)
{
	const double slope = drift_slope(d);
	const double residue = fmax(0, d->sum_vv - slope * d->sum_tv);

	if (d->n < 5)
		return 0;
	return fabs(slope) > 3 * sqrt(residue / (d->n - 2) / d->sum_tt);
}

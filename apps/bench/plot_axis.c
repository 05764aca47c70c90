/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "plot_axis.h"
#include "result/units.h"

/* 90 is at 1, 99 at 2: a step for each nine. */
static double nines(double percentile)
{
	return log10(100 / (100 - fmin(percentile, 99.9999999)));
}

double axis_place(const struct axis *axis, double value)
{
	switch (axis->scale) {
	case PLOT_LOG:
		return log(value / axis->min) / log(axis->max / axis->min);
	case PLOT_PERCENTILE:
		return nines(value) / nines(axis->max);
	case PLOT_EVEN:
		for (uint32_t i = 0; i < axis->n_values; i++)
			if (axis->values[i] >= value)
				return (i + 0.5) / axis->n_values;
		return 1;
	default:
		return (value - axis->min) / (axis->max - axis->min);
	}
}

bool axis_shows(const struct axis *axis, double y)
{
	return y > 0 || (y == 0 && axis->has_zero);
}

static void add_value(struct axis *axis, double value)
{
	uint32_t i = 0;

	while (i < axis->n_values && axis->values[i] < value)
		i++;
	if (axis->n_values == PLOT_MAX_VALUES ||
	    (i < axis->n_values && axis->values[i] == value))
		return;
	memmove(&axis->values[i + 1], &axis->values[i],
		(axis->n_values - i) * sizeof(*axis->values));
	axis->values[i] = value;
	axis->n_values++;
}

static void look_at_series(const struct plot_series *s, bool is_x,
			   struct axis *axis)
{
	for (uint32_t k = 0; k < s->n; k++) {
		const double value = is_x ? s->x[k] : s->y[k];
		const double end = !is_x && s->high != NULL ?
					   fmax(value, s->high[k]) :
				   is_x && s->x_to != NULL ? s->x_to[k] :
							     value;

		if (!axis_shows(axis, s->y[k]))
			continue;
		axis->min = fmin(axis->min, value);
		axis->max = fmax(axis->max, end);
		if (axis->scale == PLOT_EVEN)
			add_value(axis, value);
	}
}

static void make_room(struct axis *axis, bool is_x)
{
	if (!(axis->min <= axis->max)) {
		axis->min = 0;
		axis->max = 1;
	}
	if (axis->scale == PLOT_AUTO)
		axis->scale = axis->min > 0 && axis->max / axis->min >=
						       (is_x ? 8 : 20) ?
				      PLOT_LOG :
				      PLOT_LINEAR;
	else if (axis->scale == PLOT_LOG && axis->min <= 0)
		axis->min = fmin(axis->max / 10, 1);
	if (axis->scale == PLOT_LOG && !is_x) {
		axis->min /= 1.15;
		axis->max *= 1.15;
	} else if (axis->scale == PLOT_LINEAR && !is_x) {
		axis->min = 0;
		axis->max *= 1.08;
	}
	if (axis->max <= axis->min)
		axis->max = axis->min + 1;
}

void axis_of(const struct plot *plot, bool is_x, struct axis *axis)
{
	const enum plot_scale y = plot->y_scale;

	*axis = (struct axis){ .min = INFINITY, .max = 0 };
	axis->scale = is_x ? plot->x_scale : y;
	axis->unit = is_x ? plot->x_unit : plot->y_unit;
	axis->has_zero = y == PLOT_LINEAR;
	for (uint32_t i = 0; i < plot->n_series; i++)
		look_at_series(&plot->series[i], is_x, axis);
	make_room(axis, is_x);
}

static uint32_t add(const struct axis *axis, double value, struct tick *ticks,
		    uint32_t n)
{
	const double at = axis_place(axis, value);

	if (n == PLOT_MAX_TICKS || !(at >= -0.001 && at <= 1.001))
		return n;
	ticks[n].value = value;
	if (axis->unit != NULL)
		unit_print_short(value, axis->unit, ticks[n].text,
				 sizeof(ticks[n].text));
	else
		snprintf(ticks[n].text, sizeof(ticks[n].text), "%.5g", value);
	return n + 1;
}

static uint32_t linear_ticks(const struct axis *axis, struct tick *ticks)
{
	const double span = axis->max - axis->min;
	double step = pow(10, floor(log10(span)));
	uint32_t n = 0;

	if (span / step < 2)
		step /= 5;
	else if (span / step < 5)
		step /= 2;
	/* By index: a small step may be lost in a large value. */
	for (uint32_t i = 0; i < PLOT_MAX_TICKS; i++)
		n = add(axis, (ceil(axis->min / step) + i) * step, ticks, n);
	return n;
}

/* Powers of two along x; 1-2-5 along y, or powers of ten where they are many
 * and where there is a unit. */
static uint32_t log_ticks(const struct axis *axis, bool is_x,
			  struct tick *ticks)
{
	static const double digits[] = { 1, 2, 5 };
	const double octaves = log2(axis->max / axis->min);
	const uint32_t n_digits = octaves > 14 ? 1 : 3;
	uint32_t n = 0;

	if (is_x && axis->unit == NULL) {
		const double step = octaves > 12 ? 4 : 2;

		for (double v = exp2(floor(log2(axis->min)));
		     v <= axis->max * 1.001; v *= step)
			n = add(axis, v, ticks, n);
		return n;
	}
	for (double decade = pow(10, floor(log10(axis->min)));
	     decade <= axis->max; decade *= 10)
		for (uint32_t i = 0; i < n_digits; i++)
			n = add(axis, decade * digits[i], ticks, n);
	return n;
}

static uint32_t percentile_ticks(const struct axis *axis, struct tick *ticks)
{
	double rest = 10;
	uint32_t n = 0;

	/* Of many nines the first two stand close together. */
	if (axis_place(axis, 50) > 0.08)
		n = add(axis, 0, ticks, n);
	n = add(axis, 50, ticks, n);
	for (; rest > 1e-7 && 100 - rest <= axis->max; rest /= 10)
		n = add(axis, 100 - rest, ticks, n);
	for (uint32_t i = 0; i < n; i++)
		snprintf(ticks[i].text, sizeof(ticks[i].text), "%.9g %%",
			 ticks[i].value);
	return n;
}

uint32_t axis_ticks(const struct axis *axis, bool is_x, struct tick *ticks)
{
	uint32_t n = 0;

	switch (axis->scale) {
	case PLOT_LOG:
		n = log_ticks(axis, is_x, ticks);
		/* Between two powers of ten there may be next to none. */
		return n < 3 ? linear_ticks(axis, ticks) : n;
	case PLOT_PERCENTILE:
		return percentile_ticks(axis, ticks);
	case PLOT_EVEN:
		for (uint32_t i = 0; i < axis->n_values; i++)
			n = add(axis, axis->values[i], ticks, n);
		return n;
	default:
		return linear_ticks(axis, ticks);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-nat: translate addresses between two ports. */
#include <stdio.h>
#include <unistd.h>

#include "support/run.h"
#include "support/signals.h"

#include "config/keys.h"
#include "control/app.h"
#include "control/check.h"
#include "control/hand_over.h"
#include "control/keep.h"
#include "control/reload.h"
#include "control/verbs.h"
#include "support/text.h"
#include "support/upgrade.h"

static int print_why(const char *text)
{
	print_error("mr-nat: %s", text);
	return 1;
}

static void print_advice(const struct nat_config *config)
{
	struct mr_reason advice;

	for (uint32_t i = 0; nat_config_advice(config, i, &advice); i++)
		print_error("mr-nat: note: %s", advice.text);
}

static int translate_packets(struct app *app, int signal_fd)
{
	const struct run_config config = {
		.control = app->control,
		.capture = app->capture,
		.plane = &app->plane,
		.counters = app_counters(app),
		.options = app->options->run,
		.signal_fd = signal_fd,
		.work = nat_work,
		.drop = app_drop,
		.workers = app->workers,
		.app = app,
		.each_second = app_each_second,
		.port_event = app_port_event,
		.polled = nat_offload_polled,
		.port_closing = app_port_closing,
		.port_opened = app_port_opened,
		.hang_up = nat_reload_hang_up,
		.give_up = app_give_up,
		.expect_state = nat_expect_state,
		.put_state = nat_put_state,
		.take_state = nat_take_state,
		.own = nat_offload_own,
		.leave = nat_leave_state,
		.fds = app->fds,
		.n_fds = 2,
	};

	app->fds[0] = (struct run_fd){ app->answered_fd, nat_answers_ready };
	app->fds[1] =
		(struct run_fd){ app->rules != NULL ? mr_rules_fd(app->rules) :
						      -1,
				 nat_offload_ready };

	if (!app->options->run.is_quiet)
		app_print_steering(app);
	return run(&config);
}

static int serve_config(struct options *options)
{
	const struct control_config at = {
		.options = &options->run.control,
		.program = "mr-nat",
		.name = "nat",
		.verbs = nat_verbs,
		.n_verbs = N_NAT_VERBS,
		.settings = &nat_settings_ops,
	};
	struct nat_config config;
	struct control *control;
	struct yaml_errors errors;
	struct mr_reason error;
	struct app app;
	int signal_fd, status;

	status = options_config(options, &config, &errors);
	for (uint32_t i = 0; status != 0 && i < errors.n; i++)
		print_why(errors.list[i].text);
	if (status != 0)
		return status;
	print_advice(&config);
	if (options->run.is_check) {
		status = nat_check(&config, &error);
		if (status == 0 &&
		    nat_keep_check(config.state_path, &error) < 0)
			status = 1;
		nat_config_free(&config);
		if (status != 0) {
			print_why(error.text);
			return status;
		}
		printf("the configuration is good\n");
		return fflush(stdout) == 0 ? 0 : print_why("cannot write");
	}
	/* First, or a port in use would hide the error. */
	if (control_open(&at, &control, &error) < 0) {
		nat_config_free(&config);
		return print_why(error.text);
	}
	signal_fd = signals_open(&error);
	if (signal_fd < 0) {
		control_close(control);
		return print_why(error.text);
	}
	status = app_open(&app, options, &config, &error);
	if (status != 0) {
		print_why(error.text);
		upgrade_refuse(error.text);
	} else {
		app.control = control;
		status = translate_packets(&app, signal_fd);
		app_close(&app);
	}
	control_close(control);
	close(signal_fd);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	struct mr_reason error;

	switch (options_parse(argc, argv, &options, &error)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : print_why("cannot write");
	case PARSE_WRONG:
		print_why(error.text);
		return 2;
	default:
		break;
	}
	if (options.run.is_schema)
		return settings_print_schema(nat_keys, "mr-nat");
	return serve_config(&options);
}

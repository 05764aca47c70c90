/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-nat: translate addresses between two ports. */
#include <stdio.h>
#include <unistd.h>

#include "support/run.h"
#include "support/signals.h"

#include "control/app.h"
#include "control/control.h"
#include "control/keep.h"
#include "support/text.h"

static int complain(const char *text)
{
	print_error("mr-nat: %s", text);
	return 1;
}

static void advise(const struct nat_config *config)
{
	struct mr_reason advice;

	for (uint32_t i = 0; nat_config_advice(config, i, &advice); i++)
		print_error("mr-nat: note: %s", advice.text);
}

static int translate(struct app *app, int signal_fd, struct mr_reason *error)
{
	struct nat_control *control;
	struct run_fd fds[2] = { { .ready = nat_control_ready },
				 { .ready = nat_offload_ready } };
	struct run_config config = {
		.plane = &app->plane,
		.counters = app_counters(app),
		.options = app->options->run,
		.signal_fd = signal_fd,
		.work = nat_work,
		.drop = app_drop,
		.workers = app->workers,
		.app = app,
		.each_second = app_each_second,
		.port_event = nat_offload_event,
		.hang_up = app_hang_up,
		.give_up = app_give_up,
		.fds = fds,
		.n_fds = 2,
	};
	int status;

	if (nat_control_create(app, app->options->instance, &control, error) <
	    0)
		return complain(error->text);
	app->control = control;
	fds[0].fd = nat_control_fd(control);
	fds[1].fd = app->rules != NULL ? mr_rules_fd(app->rules) : -1;
	if (!app->options->run.is_quiet)
		app_print_steering(app);
	status = run(&config);
	nat_control_destroy(control);
	return status;
}

static int serve(const struct options *options)
{
	struct nat_config config;
	struct mr_reason error;
	struct app app;
	int lock_fd, signal_fd, status;

	status = options_config(options, &config, &error);
	if (status != 0) {
		complain(error.text);
		return status;
	}
	advise(&config);
	if (options->command == NAT_CHECK) {
		status = nat_keep_check(config.state_path, &error);
		nat_config_free(&config);
		if (status < 0)
			return complain(error.text);
		printf("the configuration is good\n");
		return fflush(stdout) == 0 ? 0 : complain("cannot write");
	}
	/* First, or a port in use would hide the reason. */
	lock_fd = nat_control_lock(options->instance, &error);
	if (lock_fd < 0) {
		nat_config_free(&config);
		return complain(error.text);
	}
	signal_fd = signals_open();
	if (signal_fd < 0)
		return complain("no signalfd");
	status = app_open(&app, options, &config, &error);
	if (status != 0) {
		complain(error.text);
		return status;
	}
	status = translate(&app, signal_fd, &error);
	app_close(&app);
	close(signal_fd);
	close(lock_fd);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	struct mr_reason error;

	switch (options_parse(argc, argv, &options, &error)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : complain("cannot write");
	case PARSE_WRONG:
		complain(error.text);
		return 2;
	default:
		break;
	}
	if (options.command >= NAT_SESSIONS)
		return nat_client_ask(&options);
	return serve(&options);
}

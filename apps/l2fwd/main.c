/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-l2fwd: forward Ethernet frames between ports. */
#include <stdio.h>
#include <unistd.h>

#include "support/run.h"
#include "support/settings.h"
#include "support/signals.h"

#include "session.h"
#include "support/text.h"
#include "verbs.h"

static int print_why(const char *text)
{
	print_error("mr-l2fwd: %s", text);
	return 1;
}

/* --count frames were received. */
static bool end_at_count(void *app)
{
	(void)app;
	return true;
}

static int forward_frames(struct session *session, struct control *control,
			  int signal_fd)
{
	const struct options *options = session->options;
	const struct run_config config = {
		.plane = &session->plane,
		.control = control,
		.capture = session->capture,
		.counters = session_counters(session),
		.options = options->run,
		.signal_fd = signal_fd,
		.work = forward_run,
		.drop = session_drop_at_end,
		.workers = session->forwarders,
		.app = session,
		.each_second = session_each_second,
		.hang_up = options->run.config_path != NULL ? session_reload :
							      NULL,
		.port_event = session_port_event,
		.polled = session_polled,
		.port_closing = session_port_closing,
		.port_opened = session_port_opened,
		.give_up = session_end_offload,
		.put_state = session_put_state,
		.take_state = session_take_state,
		.fds = session->fds,
		.n_fds = 2,
	};

	session->fds[0] = (struct run_fd){ session->done_fd, end_at_count };
	session->fds[1] = (struct run_fd){
		session->offload != NULL ? offload_fd(session->offload) : -1,
		session_offload_event
	};
	return run(&config);
}

/* False: stderr says why not. */
static bool read_config(struct options *options)
{
	struct yaml_errors errors;
	struct mr_reason why;

	if (options_read_text(options->run.config_path, NULL, 0, options,
			      &errors) < 0) {
		for (uint32_t i = 0; i < errors.n; i++)
			print_why(errors.list[i].text);
		return false;
	}
	if (run_complete_file(&options->run, &options->plane, &why) !=
	    PARSE_RUN) {
		print_why(why.text);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct control_config at = {
		.program = "mr-l2fwd",
		.name = "l2fwd",
		.is_optional = true,
		.verbs = l2fwd_verbs,
		.n_verbs = N_L2FWD_VERBS,
		.settings = &session_settings_ops,
	};
	struct control *control;
	struct session session;
	struct options options;
	struct mr_reason error;
	int signal_fd, status;

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
		return settings_print_schema(l2fwd_keys, "mr-l2fwd");
	if (options.run.config_path != NULL && !read_config(&options))
		return 2;
	if (options.run.is_check) {
		printf("the configuration is good\n");
		return fflush(stdout) == 0 ? 0 : print_why("cannot write");
	}
	at.options = &options.run.control;
	signal_fd = signals_open(&error);
	if (signal_fd < 0)
		return print_why(error.text);
	status = session_open(&session, &options, &error);
	if (status != 0) {
		print_why(error.text);
		close(signal_fd);
		return status;
	}
	/* After the ports: it is optional, and they need the files. */
	if (control_open(&at, &control, &error) == 0)
		status = forward_frames(&session, control, signal_fd);
	else
		status = print_why(error.text);
	session_close(&session);
	control_close(control);
	close(signal_fd);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_REPORT_H
#define AGENT_CLI_SEND_REPORT_H
/* send_report: what was sent, exactly, as text or as JSON. Threads: one. */
#include "cli/send_ask.h"
#include "cli/send_run.h"

struct send_report {
    const struct send_run *run;
    const char *env;
    const struct send_check_result *check; /* NULL: there was none */
    bool passed;
};

void cli_send_report_text(const struct send_report *report, FILE *to);
void cli_send_report_json(const struct send_report *report, FILE *to);
#endif

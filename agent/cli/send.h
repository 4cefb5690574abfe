/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_H
#define AGENT_CLI_SEND_H
/*
 * send: the verb "weir send", a load generator that knows what it sent, and with --check holds the
 * agent's answers against it. Manual page weir-send(1).
 *
 * argv[0] is "send". The exit status: 0 all was taken (and, with --check, all answers agree),
 * 1 not so, 2 the command line is wrong.
 */
int cli_send(int argc, char **argv);
#endif

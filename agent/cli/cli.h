/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_CLI_H
#define AGENT_CLI_CLI_H
/*
 * cli: the verbs of weir. Each verb is int cli_<verb>(argc, argv) with argv[0] the verb; what it
 * returns is the exit status: 0 done, 1 it failed, 2 the arguments are wrong.
 * Threads: main.
 */
int cli_main(int argc, char **argv);
#endif

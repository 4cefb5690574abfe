/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_AGENT_H
#define AGENT_CLI_AGENT_H
/* agent: the verb "weir agent"; weir-agent(8). Threads: main. */
int cli_agent(int argc, char **argv);
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_QUERY_H
#define AGENT_CLI_QUERY_H
/* weir query: the table of what went through, or the answer to an expression. */

/* argv[0] is the verb. 0; 1 when there is no answer; 2 when the line is wrong. */
int cli_query(int argc, char **argv);
#endif

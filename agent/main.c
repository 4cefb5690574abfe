/* SPDX-License-Identifier: Apache-2.0 */
/* main: see cli/cli.h. Everything else is in a library, so that tests can link it. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}

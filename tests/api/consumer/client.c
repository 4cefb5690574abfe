/* SPDX-License-Identifier: Apache-2.0 */
/* client: the least a stranger's program does with the installed link to an agent. */
#include <weir/client.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    struct weir_client_opts opts;
    struct weir_client *client;
    struct weir_client_health health;
    memset(&opts, 0, sizeof opts);
    opts.struct_size = sizeof opts;
    opts.url = "unix:///nowhere/agent.socket";
    opts.drain_for_ns = -1;
    if (weir_client_new(&opts, &client) != WEIR_OK)
        return 1;
    (void)weir_client_poll(client, 1, 1);
    weir_client_get_health(client, &health);
    weir_client_free(client);
    printf("%u request, %u unreached\n", (unsigned)health.requests, (unsigned)health.unreached);
    return health.requests == 1 && health.unreached == 1 ? 0 : 1;
}

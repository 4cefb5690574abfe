/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_SHOP_H
#define AGENT_CLI_SEND_SHOP_H
/* send_shop: the tables of --preset shop: the endpoints of a web shop, and what visitors do. */
#include "cli/send_workload.h"

struct send_step {
    uint16_t endpoint;
    uint16_t parent; /* an earlier step; of step 0 itself */
};
struct send_journey {
    const struct send_step *steps;
    size_t count;
    uint32_t weight;
};

extern const struct send_endpoint cli_send_shop_endpoints[];
extern const size_t cli_send_shop_endpoint_count;
extern const struct send_journey cli_send_shop_journeys[];
extern const size_t cli_send_shop_journey_count;
#endif

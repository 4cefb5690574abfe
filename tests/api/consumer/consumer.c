/* SPDX-License-Identifier: Apache-2.0 */
/* consumer: the least a stranger's program does with the installed library. */
#include <weir/weir.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    if (strcmp(weir_version(), WEIR_VERSION_STRING) != 0) {
        printf("the header is %s, the library %s\n", WEIR_VERSION_STRING, weir_version());
        return 1;
    }
    struct weir_sketch_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.struct_size = sizeof opts;
    struct weir_sketch *sketch;
    double median = 0;
    if (weir_sketch_new(&opts, &sketch) != WEIR_OK)
        return 1;
    for (int i = 1; i <= 3; i++)
        if (weir_sketch_add(sketch, i, 0) != WEIR_OK)
            return 1;
    const int got = weir_sketch_quantile(sketch, 0.5, &median);
    weir_sketch_free(sketch);
    printf("%s: median %g\n", weir_version(), median);
    return got == WEIR_OK && median > 1.98 && median < 2.02 ? 0 : 1;
}

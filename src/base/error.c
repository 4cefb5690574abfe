/* SPDX-License-Identifier: Apache-2.0 */
/* error: texts of codes, and the version. */
#include <weir/base.h>

const char *weir_strerror(int err)
{
    switch (err) {
    case WEIR_OK:
        return "success";
#define ERR_TEXT(name, num, text)                                                                  \
    case (num):                                                                                    \
        return text;
        WEIR_ERR_MAP(ERR_TEXT)
#undef ERR_TEXT
    default: /* any int may be asked for */
        return "unknown error";
    }
}

const char *weir_version(void)
{
    return WEIR_VERSION_STRING;
}

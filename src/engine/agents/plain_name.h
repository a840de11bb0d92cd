/* Names that come from others and go to programs: of languages, rules, files. A name is a name: it is not an option, not a
 * way out of a folder, not a file of arguments ("@file"), and it steers no terminal. Whoever runs a program with something
 * that a caller chose asks here first. */
#ifndef WEFT_PLAIN_NAME_H
#define WEFT_PLAIN_NAME_H

#include <weft/base.h>

typedef enum weft_name_kind {
    WEFT_NAME_WORD, /* a language, a checker: begins with a letter or digit; letters, digits and . _ - + #; at most 128 */
    WEFT_NAME_RULE, /* the same, in parts with / and : between them, and perhaps an @ in front: "@scope/rule", "E501" */
    WEFT_NAME_FILE, /* one file's name, without its folder: at most 255 bytes of visible text */
    WEFT_NAME_ARGUMENT, /* any text that may be an argument: valid UTF-8, no control characters but line ends and tabs */
} weft_name_kind;

/* NULL: it is one. Otherwise what is wrong, to go behind "NAME ": "begins with a dash". */
const char *weft__name_wrong(weft_bytes text, weft_name_kind kind);

#endif

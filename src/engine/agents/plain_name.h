/* Names that come from others and go to programs, prompts and terminals: of languages, rules, types of tasks, entries of the
 * context. A name is a name: it is not an option, not a way out of a folder, not a file of arguments ("@file"), and it
 * steers no terminal. Whoever uses a name that a caller chose asks here first. */
#ifndef WEFT_PLAIN_NAME_H
#define WEFT_PLAIN_NAME_H

#include <weft/base.h>

typedef enum weft_name_kind {
    WEFT_NAME_WORD, /* a type of task: begins with a letter or digit; letters, digits and . _ - + #; at most 128 */
    WEFT_NAME_RULE, /* the same, in parts with / and : between them, and perhaps an @ in front: "@scope/rule", "E501" */
    WEFT_NAME_LINE, /* a language, a path, a dependency: one line of text, without what a terminal would obey */
} weft_name_kind;

/* NULL: it is one. Otherwise what is wrong, to go behind "NAME ": "begins with a dash". */
const char *weft__name_wrong(weft_bytes text, weft_name_kind kind);

#endif

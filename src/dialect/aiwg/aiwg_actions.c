/* The actions of AIWG's jobs. They are about its own commands. */
#include "aiwg_actions.h"

#include <string.h>

static const struct {
    const char *name, *prompt;
} actions[] = {
    {"doctor", "Run \"aiwg doctor\". Say what is wrong with this project's setup, and how to mend it."},
    {"validate-metadata", "Run \"aiwg validate-metadata\". Say which metadata of extensions is wrong."},
    {"doc-sync", "Run \"aiwg doc-sync code-to-docs --dry-run\". Say where documentation and code have parted."},
    {"test-sync", "Run \"npm test\". Say what came of it, and for each failure what causes it."},
};

const char *weft__aiwg_action_prompt(const char *action) {
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, action) == 0)
            return actions[i].prompt;
    return NULL;
}

const char *weft__aiwg_action_name(size_t i) {
    return i < sizeof actions / sizeof actions[0] ? actions[i].name : NULL;
}

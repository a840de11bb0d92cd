/* Choosing an option. Words are matched against the options' kinds, because an agent chooses its ids and names itself: one
 * that calls its "allow_always" option "allow" would otherwise be given more than was meant. */
#include "option.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static const struct word {
    const char *said, *kind;
    bool allows, denies; /* short for it, and not the kind itself */
} words[] = {
    {"allow", "allow_once", true, false},
    {"yes", "allow_once", true, false},
    {"y", "allow_once", true, false},
    {"deny", "reject_once", false, true},
    {"no", "reject_once", false, true},
    {"n", "reject_once", false, true},
    {"reject", "reject_once", false, true},
    {"allow_once", "allow_once", false, false},
    {"allow_always", "allow_always", false, false},
    {"reject_once", "reject_once", false, false},
    {"reject_always", "reject_always", false, false},
};

static const struct word *find_word(const char *said, size_t len) {
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].said) == len && strncasecmp(words[i].said, said, len) == 0)
            return &words[i];
    return NULL;
}

/* The first option of this kind, and how many there are. */
static size_t count_kind(const weft_json *options, const char *kind, const char **ret) {
    size_t count = 0;
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        const char *id = weft_get_str(&it.value, "id", "");
        if (*id && strcmp(weft_get_str(&it.value, "kind", ""), kind) == 0 && count++ == 0)
            *ret = id;
    }
    return count;
}

static bool is_known_kind(const char *kind) {
    return strncmp(kind, "allow", 5) == 0 || strncmp(kind, "reject", 6) == 0;
}

/* The option with this id. With any false, only one whose kind says nothing that could be taken for its opposite. */
static const char *find_id(const weft_json *options, const char *said, size_t len, bool any) {
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        const char *id = weft_get_str(&it.value, "id", "");
        if (*id && strlen(id) == len && memcmp(id, said, len) == 0 &&
            (any || !is_known_kind(weft_get_str(&it.value, "kind", ""))))
            return id;
    }
    return NULL;
}

static int find_by_word(const weft_json *options, const struct word *word, const char **ret) {
    const char *id = NULL, *other = NULL;
    size_t count = count_kind(options, word->kind, &id);
    if (count > 1 && strncmp(word->kind, "allow", 5) == 0)
        return -ENOTUNIQ;
    if (count == 0 && word->allows && count_kind(options, "allow_always", &other))
        return -EPERM;
    if (count == 0 && !word->denies)
        return 0;
    *ret = count ? id : WEFT_OPTION_DENIED;
    return 1;
}

int weft__option_meant(const weft_json *options, const char *said, size_t len, const char **ret) {
    const struct word *word = find_word(said, len);
    const char *id = find_id(options, said, len, !word);
    if (word && !id)
        return find_by_word(options, word, ret);
    if (!id)
        return 0;
    *ret = id;
    return 1;
}

static bool kind_begins(const weft_json *options, const char *id, const char *with) {
    for (weft_iter it = weft_iterate(options); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "id", ""), id) == 0)
            return strncmp(weft_get_str(&it.value, "kind", ""), with, strlen(with)) == 0;
    return false;
}

bool weft__option_allows(const weft_json *options, const char *id) {
    return kind_begins(options, id, "allow");
}

bool weft__option_rejects(const weft_json *options, const char *id) {
    return kind_begins(options, id, "reject");
}

const char *weft__option_why(int r) {
    return r == -EPERM      ? "can only be allowed permanently; to do that, say allow_always or the option's id"
           : r == -ENOTUNIQ ? "has several options of that kind; say the id of one"
                            : "has no such option";
}

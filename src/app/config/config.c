/* Putting a configuration together: defaults, then the user's file, the project's, the environment and what was typed, each
 * over those before it. A source with a mistake fails the whole, after all mistakes of all sources were said. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agents.h"
#include "aiwg_config.h"
#include "doc.h"
#include "trust.h"

/* Longer than every path of a key, so what does not fit is none. */
#define MAX_NAME 96

const char *const weft__source_names[] = {
    [WEFT_FROM_default] = "default",         [WEFT_FROM_user] = "user", [WEFT_FROM_project] = "project",
    [WEFT_FROM_environment] = "environment", [WEFT_FROM_flag] = "flag",
};

/* One source being taken in. */
typedef struct loading {
    weft_config *config;
    const weft_remarks *to;
    const weft_trust *trust;
    const weft_config_file *file; /* NULL: not from one */
    weft_source source;
    int result; /* -EBADMSG once something was wrong */
} loading;

/* Remember a mistake and go on; only memory ends the walk at once. */
static int note_mistake(loading *self, int r) {
    if (r == -EBADMSG)
        self->result = r;
    return r == -EBADMSG ? 0 : r;
}

static void set_setting(loading *self, size_t index, weft_json value, weft_doc *doc) {
    weft_setting *setting = &self->config->settings[index];
    weft_doc_free(setting->doc);
    *setting = (weft_setting){value, self->source, doc};
}

/* ---- files ---- */

static int find_config_key(const char *path) {
    for (int i = 0; weft__keys[i].path; i++)
        if (strcmp(weft__keys[i].path, path) == 0)
            return i;
    return -1;
}

/* Is this the path of an object that has keys in it? */
static bool is_group(const char *path) {
    size_t len = strlen(path);
    for (const weft_key *key = weft__keys; key->path; key++)
        if (strncmp(key->path, path, len) == 0 && key->path[len] == '.')
            return true;
    return false;
}

/* Something spelled like it, or the same name in another object. */
static const char *meant_key(const char *path) {
    weft_suggestion suggestion = {.typed = path};
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
    for (const weft_key *key = weft__keys; key->path; key++) {
        const char *last = strrchr(key->path, '.');
        if (strcmp(last ? last + 1 : key->path, name) == 0)
            return key->path;
        weft__suggest(&suggestion, key->path);
    }
    return suggestion.best;
}

static void warn_unknown_key(const loading *self, const weft_json *name, const char *path) {
    weft_checking checking = {.to = self->to, .file = self->file, .where = self->file->path};
    const char *best = meant_key(path), *dot = strchr(path, '.');
    if (best && dot && strcmp(best, path) == 0) {
        weft__config_say(&checking, name, false, "unknown key \"%s\"; did you mean \"%.*s\": {\"%s\": ...}?", path,
                         (int) (dot - path), path, dot + 1);
        return;
    }
    weft__config_say(&checking, name, false, "unknown key \"%s\"%s%s%s", path, best ? "; did you mean \"" : "",
                     best ? best : "", best ? "\"?" : "");
}

/* A project can bring a .weft along, and who clones it has not opened any door yet. */
static void hold_back(loading *self, const weft_key *key, const weft_json *at) {
    weft_checking checking = {self->to, self->file->foreign ? NULL : self->file, self->file->path, self->config->alloc};
    self->config->held++;
    weft__config_say(&checking, self->file->foreign ? NULL : at, true,
                     "%s decides %s, but you have not trusted this file; \"weft trust\" shows it and asks", key->path,
                     key->door);
}

/* Serving with AIWG's files, said in words, allows the rules in them that start the configured agent or tell people. */
static bool calls_urls(const weft_json *rules) {
    for (weft_iter it = weft_iterate(rules); weft_next(&it);) {
        weft_json action = weft_get(&it.value, "action");
        if (strcmp(weft_get_str(&action, "type", ""), "webhook") == 0)
            return true;
    }
    return false;
}

/* A web interface for this user alone, on this machine, opens nothing that the daemon's socket does not (aiwg_web.h). */
static bool is_loopback_url(const weft_json *value) {
    static const char *const hosts[] = {"http://127.0.0.1:", "http://localhost:", "http://[::1]:"};
    const char *url = weft_str_of(value, "");
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (strncmp(url, hosts[i], strlen(hosts[i])) == 0)
            return true;
    return false;
}

static int take_foreign(loading *self, size_t index, const weft_iter *member) {
    const weft_key *key = &weft__keys[index];
    bool rules = strcmp(key->path, "automation.rules") == 0, web = strcmp(key->path, "aiwg.web") == 0;
    bool token = strcmp(key->path, "aiwg.web_token") == 0; /* whoever sent the file knows it */
    if (self->file->strange && (token || (rules && calls_urls(&member->value)) || (web && !is_loopback_url(&member->value))))
        hold_back(self, key, NULL);
    set_setting(self, index, member->value, NULL); /* whoever would act on it looks at held first */
    return 0;
}

static int take_config_value(loading *self, size_t index, const weft_iter *member) {
    const weft_key *key = &weft__keys[index];
    if (self->file->foreign) /* translated as it should be; rules are checked by those who run them, and reported */
        return take_foreign(self, index, member);
    weft_checking checking = {self->to, self->file, self->file->path, self->config->alloc};
    if (self->config->settings[index].source == self->source)
        weft__config_say(&checking, &member->name, false, "%s is there twice; this one counts", key->path);
    int r = weft__config_check(&checking, key, &member->value);
    if (r >= 0 && key->door && self->file->strange)
        hold_back(self, key, &member->name);
    else if (r >= 0)
        set_setting(self, index, member->value, NULL);
    return note_mistake(self, r);
}

static int take_config_object(loading *self, const weft_json *object, const char *group);

static int take_group(loading *self, const weft_json *value, const char *path) {
    if (weft_typeof(value) == WEFT_OBJECT)
        return take_config_object(self, value, path);
    weft__config_say(&(weft_checking){.to = self->to, .file = self->file, .where = self->file->path}, value, true,
                     "%s must be an object", path);
    return note_mistake(self, -EBADMSG);
}

static int take_config_member(loading *self, const weft_iter *member, const char *group) {
    char path[MAX_NAME];
    weft_bytes name;
    int r = weft_bytes_of(&member->name, &name);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s%s%.*s", group, *group ? "." : "", (int) name.len, name.data);
    int index = find_config_key(path);
    if (index >= 0 && !memchr(name.data, '.', name.len))
        return take_config_value(self, (size_t) index, member);
    if (!*group && is_group(path))
        return take_group(self, &member->value, path);
    if (strcmp(path, "$schema") != 0) /* which editors look for */
        warn_unknown_key(self, &member->name, path);
    return 0;
}

static int take_config_object(loading *self, const weft_json *object, const char *group) {
    int r = 0;
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);)
        r = take_config_member(self, &it, group);
    return r;
}

static int load_file(loading *self, weft_config_file *file, const char *path, weft_source source) {
    self->source = source;
    self->file = file;
    if (!path || !*path)
        return 0;
    int r = note_mistake(self, weft__config_read(file, path, source == WEFT_FROM_project, self->to, self->config->alloc));
    if (r > 0 && source == WEFT_FROM_project)
        file->strange = self->trust && !weft__trust_has_config(self->trust, file->text, file->len);
    return r > 0 ? take_config_object(self, weft_doc_root(file->doc), "") : r;
}

static int default_foreign(const weft_alloc *alloc, weft_doc **ret) {
    weft_doc *usual;
    int r = weft_doc_parse(weft__aiwg_default_config, strlen(weft__aiwg_default_config), alloc, &usual);
    if (r < 0)
        return r;
    r = weft__aiwg_config(weft_doc_root(usual), alloc, ret);
    weft_doc_free(usual);
    return r;
}

/* To watch some of them would be to miss what happens in the others. */
static int refuse_paths(loading *self, const weft_config_file *file) {
    weft_json paths = weft_pointer(weft_doc_root(file->doc), "/watch/paths");
    weft__config_say(&(weft_checking){.to = self->to, .file = file, .where = file->path}, &paths, true,
                     "watch.paths names %zu paths, and %d can be watched; name a folder that has several of them",
                     weft__aiwg_paths(weft_doc_root(file->doc)), WEFT_AIWG_PATHS);
    return note_mistake(self, -EBADMSG);
}

/* A file that is not there, or is no JSON, says what AIWG would do without one. */
static int load_foreign(loading *self, weft_config_file *file, const char *path) {
    weft_doc *doc;
    const weft_alloc *alloc = self->config->alloc;
    self->source = WEFT_FROM_project;
    self->file = file;
    int r = weft__config_read(file, path, true, self->to, alloc);
    if (r < 0 && r != -EBADMSG)
        return note_mistake(self, r);
    if (r > 0 && weft__aiwg_paths(weft_doc_root(file->doc)) > WEFT_AIWG_PATHS)
        return refuse_paths(self, file);
    bool broken = r < 0; /* that was said; AIWG goes on with its defaults, too */
    file->strange = r > 0 && self->trust && !weft__trust_has_config(self->trust, file->text, file->len);
    r = r > 0 ? weft__aiwg_config(weft_doc_root(file->doc), alloc, &doc) : default_foreign(alloc, &doc);
    if (r < 0)
        return r;
    if (broken)
        weft__config_say(&(weft_checking){.to = self->to, .where = path}, NULL, false, "AIWG's defaults are used instead");
    weft_doc_free(file->doc);
    file->doc = doc;
    file->foreign = true;
    return take_config_object(self, weft_doc_root(doc), "");
}

/* ---- values that are not in a file ---- */

/* A value of ours as a document of its own. */
static int new_value(const loading *self, weft_val value, weft_doc **ret) {
    const weft_alloc *alloc = self->config->alloc;
    char *text;
    size_t len;
    int r = weft_to_text(value, alloc, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, alloc, ret);
    weft_text_free(text, alloc);
    return r;
}

/* The document is taken, also when its value is wrong. */
static int take_new(loading *self, size_t index, const char *where, weft_doc *doc) {
    weft_checking checking = {.to = self->to, .where = where, .alloc = self->config->alloc};
    const weft_json *value = weft_doc_root(doc);
    int r = weft__config_check(&checking, &weft__keys[index], value);
    if (r >= 0)
        set_setting(self, index, *value, doc);
    else
        weft_doc_free(doc);
    return note_mistake(self, r);
}

static int load_defaults(loading *self) {
    self->source = WEFT_FROM_default;
    for (size_t i = 0; weft__keys[i].path; i++) {
        weft_doc *doc;
        const char *text = weft__keys[i].fallback;
        if (!text)
            continue;
        int r = weft_doc_parse(text, strlen(text), self->config->alloc, &doc);
        if (r < 0)
            return r;
        set_setting(self, i, *weft_doc_root(doc), doc);
    }
    return 0;
}

/* ---- the environment ---- */

/* Blanks separate; a text that begins with a bracket is JSON. One more than is allowed is kept, to be refused. */
static size_t split_items(const char *text, weft_val items[WEFT_MAX_TEXTS + 1]) {
    size_t count = 0;
    for (text += strspn(text, " \t\n"); *text && count <= WEFT_MAX_TEXTS; text += strspn(text, " \t\n")) {
        size_t len = strcspn(text, " \t\n");
        items[count++] = weft_strn(text, len);
        text += len;
    }
    return count;
}

static const char *flag_word(const char *text) {
    static const char *const words[][2] = {{"1", "true"},  {"yes", "true"}, {"on", "true"},
                                           {"0", "false"}, {"no", "false"}, {"off", "false"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i][0]) == 0)
            return words[i][1];
    return text;
}

/* What a variable says as JSON; what is no JSON is a string, which the check refuses where it wants none. */
static int value_of_variable(const loading *self, const weft_key *key, const char *text, weft_doc **ret) {
    weft_val items[WEFT_MAX_TEXTS + 1];
    bool list = key->kind == WEFT_KEY_texts || key->kind == WEFT_KEY_urls;
    if (list && *text != '[')
        return new_value(self, weft_arr(items, split_items(text, items)), ret);
    if (key->kind == WEFT_KEY_flag)
        text = flag_word(text);
    bool plain = key->kind == WEFT_KEY_text || key->kind == WEFT_KEY_money;
    int r = plain ? -EBADMSG : weft_doc_parse(text, strlen(text), self->config->alloc, ret);
    return r == -EBADMSG ? new_value(self, weft_str(text), ret) : r;
}

static int load_environment(loading *self, char *(*variable)(const char *name)) {
    self->source = WEFT_FROM_environment;
    self->file = NULL;
    for (size_t i = 0; variable && weft__keys[i].path; i++) {
        char name[WEFT_KEY_TEXT];
        weft_doc *doc;
        weft__key_variable(&weft__keys[i], name);
        const char *text = variable(name);
        if (!text || !*text)
            continue;
        int r = value_of_variable(self, &weft__keys[i], text, &doc);
        if (r >= 0)
            r = take_new(self, i, name, doc);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- what was typed ---- */

static weft_val value_of_flag(const weft_key *key, const void *field, weft_val items[WEFT_MAX_TEXTS]) {
    const weft_texts *texts = field;
    int64_t number = key->kind == WEFT_KEY_number ? *(const int64_t *) field : 0;
    switch (key->kind) {
    case WEFT_KEY_text:
        return *(const char *const *) field ? weft_str(*(const char *const *) field) : weft_none();
    case WEFT_KEY_flag:
        return *(const bool *) field ? weft_bool(true) : weft_none();
    case WEFT_KEY_number:
        return number > 0 ? weft_int(number) : number < 0 ? weft_int(0) : weft_none();
    case WEFT_KEY_texts:
    case WEFT_KEY_urls:
        for (size_t i = 0; i < texts->count; i++)
            items[i] = weft_str(texts->items[i]);
        return texts->count ? weft_arr(items, texts->count) : weft_none();
    default:
        return weft_none();
    }
}

static int load_flags(loading *self, const weft_serve_settings *flags) {
    self->source = WEFT_FROM_flag;
    for (size_t i = 0; flags && weft__keys[i].path; i++) {
        weft_val items[WEFT_MAX_TEXTS];
        char where[WEFT_KEY_TEXT];
        weft_doc *doc;
        if (!weft__keys[i].option)
            continue;
        weft_val value = value_of_flag(&weft__keys[i], (const char *) flags + weft__keys[i].offset, items);
        if (value.kind == WEFT_VAL_NONE)
            continue;
        snprintf(where, sizeof where, "--%s", weft__keys[i].option);
        int r = new_value(self, value, &doc);
        /* Whoever read the options has checked all but ranges, and says more about a URL than we would. */
        if (r >= 0 && weft__keys[i].kind == WEFT_KEY_number)
            r = take_new(self, i, where, doc);
        else if (r >= 0)
            set_setting(self, i, *weft_doc_root(doc), doc);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- the whole ---- */

static const weft_setting *setting_of(const weft_config *config, const char *path) {
    return &config->settings[find_config_key(path)];
}

static int refuse_together(loading *self, const weft_setting *given, const char *text) {
    self->to->say(self->to->ctx, &(weft_remark){true, weft__config_where(self->config, given),
                                                weft__config_place(self->config, given), text});
    return note_mistake(self, -EBADMSG);
}

static int check_out(loading *self) {
    const weft_setting *soft = setting_of(self->config, "limits.out_soft"),
                       *hard = setting_of(self->config, "limits.out_hard");
    if (weft_int_of(&soft->value, 0) <= weft_int_of(&hard->value, 0))
        return 0;
    return refuse_together(self, soft->source > hard->source ? soft : hard, "limits.out_soft is more than limits.out_hard");
}

/* For this key. */
static int check_agent_named(loading *self, const weft_setting *chosen, const char *key, const char *name) {
    char text[256];
    const weft_setting *agents = setting_of(self->config, "agents");
    if (weft__agent_preset(name) || weft_get(&agents->value, name).text)
        return 0;
    weft_suggestion suggestion = {.typed = name};
    weft__agent_suggest(&suggestion, &agents->value);
    const char *best = suggestion.best;
    snprintf(text, sizeof text, "there is no agent \"%.64s\" for %s%s%.64s%s", name, key, best ? "; did you mean \"" : "",
             best ? best : "", best ? "\"?" : "");
    return refuse_together(self, chosen, text);
}

static int check_default_agent(loading *self) {
    const weft_setting *chosen = setting_of(self->config, "default_agent");
    const char *name = weft_str_of(&chosen->value, NULL);
    return name ? check_agent_named(self, chosen, "default_agent", name) : -ENOMEM;
}

static int refuse_address(loading *self, const weft_setting *chosen, const char *key, const char *why) {
    char text[256];
    snprintf(text, sizeof text, "%s: %.200s", key, why);
    return refuse_together(self, chosen, text);
}

static int check_role(loading *self, const char *key) {
    const weft_setting *chosen = setting_of(self->config, key);
    for (weft_iter it = weft_iterate(&chosen->value); weft_next(&it);) {
        const char *name = weft_str_of(&it.value, ""), *why = "";
        int r = weft__agent_address(name, &why);
        if (r == -EINVAL)
            return refuse_address(self, chosen, key, why);
        if (r == 0)
            r = check_agent_named(self, chosen, key, name);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What is right by itself and wrong together. */
static int check_together(loading *self) {
    int r = check_out(self);
    if (r >= 0)
        r = check_default_agent(self);
    if (r >= 0)
        r = check_role(self, "roles.planner");
    return r < 0 ? r : check_role(self, "roles.executor");
}

int weft__config_load(weft_config *config, const weft_config_from *from, const weft_remarks *to, const weft_alloc *alloc) {
    loading self = {.config = config, .to = to, .trust = from->trust};
    *config = (weft_config){.alloc = alloc};
    int r = load_defaults(&self);
    if (r >= 0)
        r = load_file(&self, &config->user, from->user, WEFT_FROM_user);
    if (r >= 0)
        r = from->aiwg ? load_foreign(&self, &config->project, from->project)
                       : load_file(&self, &config->project, from->project, WEFT_FROM_project);
    if (r >= 0)
        r = load_environment(&self, from->variable);
    if (r >= 0)
        r = load_flags(&self, from->flags);
    if (r >= 0)
        r = check_together(&self);
    return r < 0 ? r : self.result;
}

void weft__config_done(weft_config *config) {
    for (size_t i = 0; i < WEFT_MAX_KEYS; i++)
        weft_doc_free(config->settings[i].doc);
    weft__config_file_done(&config->user, config->alloc);
    weft__config_file_done(&config->project, config->alloc);
    *config = (weft_config){0};
}

/* ---- using it ---- */

static int fill_texts(const weft_json *value, weft_texts *ret) {
    for (weft_iter it = weft_iterate(value); ret->count < WEFT_MAX_TEXTS && weft_next(&it); ret->count++)
        if (!(ret->items[ret->count] = weft_str_of(&it.value, NULL)))
            return -ENOMEM;
    return 0;
}

static int fill_field(const weft_key *key, const weft_json *value, void *field) {
    const char *text;
    switch (key->kind) {
    case WEFT_KEY_text:
        text = weft_str_of(value, NULL);
        *(const char **) field = text;
        return text ? 0 : -ENOMEM;
    case WEFT_KEY_money:
        text = weft_str_of(value, NULL);
        return text && weft__money_parse(text, field) ? 0 : -ENOMEM;
    case WEFT_KEY_flag:
        *(bool *) field = weft_bool_of(value, false);
        return 0;
    case WEFT_KEY_number:
        *(int64_t *) field = weft_int_of(value, 0);
        return 0;
    case WEFT_KEY_size:
        *(size_t *) field = (size_t) weft_int_of(value, 0);
        return 0;
    case WEFT_KEY_named:
    case WEFT_KEY_list:
    case WEFT_KEY_argvs:
        *(weft_json *) field = *value;
        return 0;
    default:
        return fill_texts(value, field);
    }
}

/* Does a rule wait for something that only the watcher tells? A type may end with a star; a pattern alone means files. */
static bool wants_files(const weft_json *rule) {
    weft_json trigger = weft_get(rule, "trigger");
    const char *type = weft_get_str(&trigger, "type", NULL), *source = weft_get_str(&trigger, "source", NULL);
    if (source)
        return strcmp(source, "watcher") == 0;
    if (!type)
        return weft_get(&trigger, "pattern").text;
    size_t len = strlen(type);
    bool star = len && type[len - 1] == '*';
    return strncmp(type, "file.", star && len < 6 ? len - 1 : 5) == 0;
}

static bool any_wants_files(const weft_json *rules) {
    for (weft_iter it = weft_iterate(rules); weft_next(&it);)
        if (wants_files(&it.value))
            return true;
    return false;
}

/* What a file says in other words than those who use it. */
static void finish_settings(const weft_config *config, weft_serve_settings *settings) {
    weft_engine_limits *engine = &settings->engine;
    settings->limits.rate_per_minute = settings->rate;
    if (settings->paused)
        engine->max_running = SIZE_MAX;
    if (engine->timeout_ms == 0)
        engine->timeout_ms = -1;
    if (engine->idle_ms == 0)
        engine->idle_ms = -1;
    engine->drain_ms = settings->server.grace_ms;
    engine->keep_ms = settings->retention_days * 24 * 3600 * 1000;
    settings->requeue = strcmp(settings->on_restart, "requeue") == 0;
    settings->resume = strcmp(settings->on_restart, "resume") == 0;
    settings->quarantine = strcmp(settings->on_damage, "quarantine") == 0;
    if (!setting_of(config, "automation.watch")->value.text)
        settings->watch = any_wants_files(&settings->rules);
}

int weft__config_fill(const weft_config *config, weft_serve_settings *ret) {
    weft_serve_settings settings = {0};
    for (size_t i = 0; weft__keys[i].path; i++) {
        const weft_json *value = &config->settings[i].value;
        int r = value->text ? fill_field(&weft__keys[i], value, (char *) &settings + weft__keys[i].offset) : 0;
        if (r < 0)
            return r;
    }
    finish_settings(config, &settings);
    *ret = settings;
    return 0;
}

static const weft_config_file *file_of(const weft_config *config, const weft_setting *setting) {
    return setting->source == WEFT_FROM_user      ? &config->user
           : setting->source == WEFT_FROM_project ? &config->project
                                                  : NULL;
}

weft_place weft__config_place(const weft_config *config, const weft_setting *setting) {
    const weft_config_file *file = file_of(config, setting);
    return file && !file->foreign ? weft__config_file_place(file, &setting->value) : (weft_place){0};
}

const char *weft__config_where(const weft_config *config, const weft_setting *setting) {
    const weft_config_file *file = file_of(config, setting);
    return file ? file->path : weft__source_names[setting->source];
}

bool weft__config_same(const weft_setting *a, const weft_setting *b) {
    char *left = NULL, *right = NULL;
    size_t left_len = 0, right_len = 0;
    if (!a->value.text || !b->value.text)
        return !a->value.text && !b->value.text;
    bool same = weft_to_canonical(&a->value, NULL, &left, &left_len) == 0 &&
                weft_to_canonical(&b->value, NULL, &right, &right_len) == 0 && left_len == right_len &&
                memcmp(left, right, left_len) == 0;
    weft_text_free(left, NULL);
    weft_text_free(right, NULL);
    return same;
}

/* weft doctor: everything that has to be right, looked at; what is not, with what to do about it. The checks are rows of
 * doctor.c; this is how they are told. */
#include <string.h>

#include "doctor.h"
#include "failure.h"

static const char *const words[] = {"ok", "warning", "problem"};

static void put_finding(const weft_doctor *doctor, const char *name, weft_finding finding, const char *text,
                        const char *next) {
    static const char *const inks[] = {WEFT_INK_STRING, WEFT_INK_WARN, WEFT_INK_BAD};
    const weft_screen *out = &doctor->app->out;
    weft__ink(out, inks[finding]);
    fprintf(out->file, "%-9s", words[finding]);
    weft__plain(out);
    weft__ink(out, WEFT_INK_BOLD);
    fprintf(out->file, "%-14s", name);
    weft__plain(out);
    weft__put_text(out, text, strlen(text));
    fputc('\n', out->file);
    for (const char *end; next && *next; next = *end ? end + 1 : end) {
        end = strchrnul(next, '\n');
        fprintf(out->file, "%-23s", "");
        weft__put_text(out, next, (size_t) (end - next));
        fputc('\n', out->file);
    }
    fflush(out->file);
}

void weft__doctor_say(weft_doctor *doctor, weft_finding finding, const char *next, const char *text) {
    doctor->counts[finding]++;
    if (!doctor->app->common.json) {
        put_finding(doctor, doctor->check->name, finding, text, next);
        return;
    }
    char *json;
    size_t len;
    weft_val value = WEFT_OBJ({"check", weft_str(doctor->check->name)}, {"result", weft_str(words[finding])},
                              {"message", weft_str(text)}, {"next", weft_str_or_none(next)});
    if (weft_to_text(value, NULL, &json, &len) < 0)
        return;
    if (weft__buf_len(&doctor->json))
        weft__buf_put(&doctor->json, NULL, ",", 1);
    weft__buf_put(&doctor->json, NULL, json, len);
    weft_text_free(json, NULL);
}

static void put_findings_json(weft_doctor *doctor, bool ok) {
    weft_buf list = {0};
    int r = weft__buf_put(&list, NULL, "[", 1);
    if (r >= 0)
        r = weft__buf_put(&list, NULL, weft__buf_head(&doctor->json), weft__buf_len(&doctor->json));
    if (r >= 0)
        r = weft__buf_put(&list, NULL, "]", 1);
    if (r >= 0)
        weft__put_line(&doctor->app->out,
                       WEFT_OBJ({"ok", weft_bool(ok)}, {"warnings", weft_uint(doctor->counts[WEFT_FINDING_WARNING])},
                                {"problems", weft_uint(doctor->counts[WEFT_FINDING_PROBLEM])},
                                {"checks", weft_raw(weft__buf_head(&list), weft__buf_len(&list))}));
    weft__buf_done(&list, NULL);
}

static void sum_up(const weft_doctor *doctor) {
    size_t warnings = doctor->counts[WEFT_FINDING_WARNING], problems = doctor->counts[WEFT_FINDING_PROBLEM];
    if (problems + warnings == 0)
        fputs("all is well\n", doctor->app->err.file);
    else
        fprintf(doctor->app->err.file, "%zu problem%s, %zu warning%s\n", problems, problems == 1 ? "" : "s", warnings,
                warnings == 1 ? "" : "s");
}

static weft_exit run_doctor(weft_app *app) {
    weft_doctor doctor = {.app = app};
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    weft__doctor_begin(&doctor);
    for (doctor.check = weft__doctor_checks; doctor.check->name; doctor.check++)
        doctor.check->look(&doctor);
    bool ok = doctor.counts[WEFT_FINDING_PROBLEM] == 0;
    if (app->common.json)
        put_findings_json(&doctor, ok);
    else
        sum_up(&doctor);
    weft__doctor_end(&doctor);
    return ok ? WEFT_DONE : WEFT_FAILED;
}

static const char *const examples[] = {
    "weft doctor",
    "look at everything; exit status 0: no problems, 1: some",
    "weft doctor --json | jq '.checks[] | select(.result != \"ok\")'",
    "what is not well, for programs",
    NULL,
};

const weft_verb weft__doctor_verb = {
    .name = "doctor",
    .help = "look for what is wrong here, and say what to do",
    .usage = "",
    .examples = examples,
    .about = "The journal is checked in full when no hub runs; a running one has it to itself.\n",
    .run = run_doctor,
};

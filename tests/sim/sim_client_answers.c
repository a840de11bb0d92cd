/* What clients are answered, each checked against the disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_client.h"

static const char *reason_of(const weft_json *message) {
    weft_json reason = weft_pointer(message, "/error/data/reason");
    return weft_str_of(&reason, "");
}

static void hear_submitted(client *c, const request *asked, const weft_json *result) {
    char key[128];
    const char *id = weft_get_str(result, "taskId", NULL);
    const truth_task *task = id ? truth_find(id) : NULL;
    if (!id)
        return;
    snprintf(key, sizeof key, "%s: %s", c->name, asked->subject);
    if (*asked->subject && asked->repeats)
        sim_saw(SAW_REPEAT);
    if (!task)
        sim_broken("acknowledged too soon: %s was told of %s, which is not on the disk", c->name, id);
    else if (*asked->subject && strcmp(task->key, key) != 0)
        sim_broken("wrong task: %s was given %s for the key %s", c->name, id, key);
    else if (strncmp(task->prompt, c->name, strlen(c->name)) != 0)
        sim_broken("wrong task: %s was given %s, which is somebody else's", c->name, id);
}

static void hear_cancelled(const client *c, const request *asked, const weft_json *message, bool ok) {
    const truth_task *task = truth_find(asked->subject);
    const char *reason = reason_of(message);
    if (!task)
        return; /* the disk was lost */
    sim_saw(ok ? SAW_CANCEL : SAW_CANCEL_LATE);
    if (ok && task->state != TRUTH_CANCELLED)
        sim_broken("acknowledged too soon: %s was told that %s is cancelled", c->name, task->id);
    if (strcmp(reason, "taskNotCancellable") == 0 && task->state <= TRUTH_RUNNING)
        sim_broken("wrong answer: %s was told that %s is over", c->name, task->id);
    if (strcmp(reason, "taskNotFound") == 0 && task->state <= TRUTH_RUNNING)
        sim_broken("lost task: %s was told that %s does not exist", c->name, task->id);
}

static void hear_answered(const client *c, const request *asked, const weft_json *message, bool ok) {
    const truth_question *question = truth_question_find(asked->subject);
    weft_json said = weft_pointer(message, "/error/data/answer/option");
    const char *option = weft_str_of(&said, NULL);
    if (!question)
        return; /* the disk was lost */
    sim_saw(ok ? SAW_ANSWER : SAW_ANSWER_LATE);
    if (ok && (strcmp(question->option, asked->option) != 0 || strcmp(question->by, c->name) != 0))
        sim_broken("two winners: %s was told it answered %s, which was %s by %s", c->name, question->id, question->end,
                   question->by);
    if (strcmp(reason_of(message), "questionResolved") == 0 && !*question->end)
        sim_broken("wrong answer: %s was told that %s is over", c->name, question->id);
    if (option && strcmp(question->option, option) != 0)
        sim_broken("two winners: %s was told that %s was answered %s, it was %s", c->name, question->id, option,
                   question->option);
}

/* Where a session was trimmed is not remembered exactly: who follows it alone and stands between the last event that went
 * and the first that is kept is refused, too (decision 32). */
static bool may_be_trimmed(const subscription *sub) {
    const truth_task *task = *sub->task ? truth_find(sub->task) : NULL;
    const char *session = task ? task->session : sub->session;
    return truth_trimmed_after(sub->last) || (*session && truth_session_trimmed(session));
}

static void check_refusal(const client *c, const request *asked, const char *reason) {
    sim_saw(strcmp(reason, "trimmed") == 0 ? SAW_TRIMMED_GAP : SAW_EPOCH_GAP);
    bool same = strcmp(asked->next.epoch, truth_epoch()) == 0 || !asked->next.last;
    if (strcmp(reason, "epochChanged") == 0 ? same
        : strcmp(reason, "trimmed") == 0    ? !same || !may_be_trimmed(&asked->next)
                                            : true)
        sim_broken("untrue gap: %s was refused %llu because of %s", c->name, (unsigned long long) asked->next.last, reason);
}

/* It is subscribed in any case: from its position, or anew after startSeq. */
static void hear_stream(client *c, const request *asked, const weft_json *result) {
    subscription *sub = &c->follows[STREAM].sub;
    const char *reason = weft_get_str(result, "reason", NULL), *journal = weft_get_str(result, "journal", "");
    bool resumed = weft_get_bool(result, "resumed", false);
    if (reason)
        check_refusal(c, asked, reason);
    if (resumed && asked->next.last && strcmp(asked->next.epoch, truth_epoch()) != 0)
        sim_broken("untrue resume: %s went on with another epoch", c->name);
    if (resumed == (asked->live || reason))
        sim_broken("wrong answer: %s was told %s", c->name, resumed ? "that it was resumed" : "that it was not");
    if (resumed && asked->next.last)
        sim_saw(SAW_STREAM_RESUMED);
    if (reason)
        sim_saw(SAW_STREAM_ANEW);
    *sub = asked->next;
    sub->on = true;
    sub->floor = (uint64_t) weft_get_int(result, "startSeq", 0);
    sub->last = resumed ? asked->next.last : 0;
    snprintf(sub->epoch, sizeof sub->epoch, "%s", journal);
}

/* With a position of this epoch it is resumed, and told nothing if it has the value. */
static void hear_viewed(client *c, const request *asked, const weft_json *result) {
    view *of = &c->views[asked->which];
    bool resumed = weft_get_bool(result, "resumed", false);
    const char *journal = weft_get_str(result, "journal", "");
    if (strncmp(journal, truth_epoch(), strlen(truth_epoch())) != 0)
        sim_broken("wrong answer: %s was told of another epoch", c->name);
    of->on = resumed && of->value;
    of->seq = resumed ? (uint64_t) weft_get_int(result, "startSeq", 0) : of->seq;
    if (resumed && strchr(journal, '.'))
        sim_saw(SAW_VIEW_KEPT);
}

static void hear_subscribed(client *c, const request *asked, const weft_json *result) {
    subscription *sub = &c->follows[asked->which].sub;
    if (asked->which == STREAM) {
        hear_stream(c, asked, result);
        return;
    }
    if (!weft_get_bool(result, "resumed", false)) {
        check_refusal(c, asked, weft_get_str(result, "reason", ""));
        *sub = asked->next;
        sub->on = false;
        sub->last = sub->floor = 0; /* it will begin anew */
        c->follows[asked->which].refused = true;
        return;
    }
    if (asked->next.last && strcmp(asked->next.epoch, truth_epoch()) != 0)
        sim_broken("untrue resume: %s went on with another epoch", c->name);
    if (asked->next.last)
        sim_saw(SAW_RESUMED);
    *sub = asked->next;
    sub->on = true;
    sub->floor = asked->live ? (uint64_t) weft_get_int(result, "head", 0) : asked->next.last;
    snprintf(sub->epoch, sizeof sub->epoch, "%s", weft_get_str(result, "epoch", ""));
}

/* What is refused at once leaves the subscription there was; what fails later has replaced it. */
static void hear_unsubscribed(client *c, const request *asked, const weft_json *message) {
    const char *reason = reason_of(message);
    if (strcmp(reason, "superseded") == 0 || strcmp(reason, "storageFailed") == 0)
        c->follows[asked->which].sub.on = false;
}

static void hear_changed(const client *c, const request *asked, const weft_json *result) {
    weft_json value = weft_get(result, "value");
    uint64_t told = (uint64_t) weft_get_int(&value, "version", 0), version = 0;
    if (!truth_request(c->name, asked->subject, &version))
        sim_broken("acknowledged too soon: %s was told of %s, which is not on the disk", c->name, asked->subject);
    else if (told != version)
        sim_broken("another answer: %s was told version %llu of %s, which has %llu", c->name, (unsigned long long) told,
                   asked->subject, (unsigned long long) version);
    sim_saw(asked->repeats ? SAW_MUTATION_AGAIN : SAW_MUTATION);
}

static void hear_created(const client *c, const weft_json *result) {
    weft_json session = weft_get(result, "session");
    const char *id = weft_get_str(&session, "id", "");
    if (!truth_session_find(id))
        sim_broken("acknowledged too soon: %s was told of %s, which is not on the disk", c->name, id);
}

/* ok: it was done. */
static void hear_session(const client *c, const request *asked) {
    const truth_session *session = truth_session_find(asked->subject);
    if (!session)
        return; /* the disk was lost */
    if (asked->busy && asked->want == WANT_CLOSE)
        sim_saw(SAW_SESSION_CLOSED);
    if (asked->busy && asked->want == WANT_DELETE)
        sim_saw(SAW_SESSION_DELETED);
    if ((asked->want == WANT_SET && !session->sets) || (asked->want == WANT_CLOSE && !session->closes) ||
        (asked->want == WANT_DELETE && !session->deleted))
        sim_broken("acknowledged too soon: %s was told of %s, and the disk says otherwise", c->name, session->id);
}

void client_hear_answer(client *c, const weft_json *message) {
    uint64_t id = (uint64_t) weft_get_int(message, "id", 0);
    weft_json result = weft_get(message, "result");
    bool ok = result.text != NULL;
    size_t i = 0;
    while (i < c->pending_count && c->pending[i].id != id)
        i++;
    sim_say("%-7s < %.*s", c->name, (int) (message->len < 300 ? message->len : 300), message->text);
    if (i == c->pending_count) {
        sim_broken("double answer: %s was answered %llu", c->name, (unsigned long long) id);
        return;
    }
    request asked = c->pending[i];
    memmove(&c->pending[i], &c->pending[i + 1], (--c->pending_count - i) * sizeof asked);
    if (asked.want == WANT_SUBMIT && ok)
        hear_submitted(c, &asked, &result);
    else if (asked.want == WANT_CREATE && ok)
        hear_created(c, &result);
    else if (asked.want > WANT_CREATE && ok)
        hear_session(c, &asked);
    else if (asked.want == WANT_CANCEL)
        hear_cancelled(c, &asked, message, ok);
    else if (asked.want == WANT_ANSWER)
        hear_answered(c, &asked, message, ok);
    else if (asked.want == WANT_SUBSCRIBE && ok)
        hear_subscribed(c, &asked, &result);
    else if (asked.want == WANT_SUBSCRIBE)
        hear_unsubscribed(c, &asked, message);
    else if (asked.want == WANT_VIEW && ok)
        hear_viewed(c, &asked, &result);
    else if (asked.want == WANT_CHANGE && ok)
        hear_changed(c, &asked, &result);
    else if (asked.want == WANT_UNSUBSCRIBE && ok)
        c->follows[asked.which].sub.on = false;
}

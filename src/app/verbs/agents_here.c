/* The agents of this folder without a daemon: what one would offer that is started now. In the form of agent.list, so that
 * there is one way to show them. */
#include "agents_here.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "agents.h"
#include "buf.h"
#include "daemon.h"
#include "failure.h"
#include "hub_methods.h"
#include "serve.h"
#include "write.h"

static int write_agent(weft_buf *out, const weft_agent *agent, const char *fallback) {
    char folder[PATH_MAX];
    int r = weft__buf_len(out) > 1 ? weft__buf_put(out, NULL, ",", 1) : 0;
    return r < 0 ? r
                 : weft__hub_agent_write(out, NULL, agent, getcwd(folder, sizeof folder),
                                         fallback && strcmp(fallback, agent->name) == 0);
}

static int to_doc(const weft_agents *agents, weft_doc **ret) {
    weft_buf list = {0};
    char *text = NULL;
    size_t len;
    int r = weft__buf_put(&list, NULL, "[", 1);
    for (size_t i = 0; i < agents->count && r >= 0; i++)
        r = write_agent(&list, &agents->list[i], agents->fallback);
    if (r >= 0)
        r = weft__buf_put(&list, NULL, "]", 1);
    if (r >= 0)
        r = weft_to_text(WEFT_OBJ({"default", weft_str(agents->fallback)},
                                  {"agents", weft_raw(weft__buf_head(&list), weft__buf_len(&list))}),
                         NULL, &text, &len);
    if (r >= 0)
        r = weft_doc_parse(text, len, NULL, ret);
    weft_text_free(text, NULL);
    weft__buf_done(&list, NULL);
    return r;
}

weft_exit weft__agents_here(weft_app *app, weft_doc **ret) {
    weft_serve_settings none = {0};
    weft_app serve = *app;
    weft_serve_config *config;
    serve.settings = &none;
    weft_exit status = weft__serve_config_new(&serve, &config);
    if (status)
        return status;
    int r = to_doc(&weft__serve_config_settings(config)->agents, ret);
    weft__serve_config_free(config);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

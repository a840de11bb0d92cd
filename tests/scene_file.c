/* Reading files of scenes; see scene_file.h. */
#include "scene_file.h"

#include <dirent.h>
#include <stdlib.h>

static void play_file(const char *path, void (*play)(const scene *scene)) {
    size_t len;
    char *text = test_file(path, &len);
    REQUIRE(text != NULL);
    scene s = {0};
    bool in_title = false;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (*line == '#') {
            if (!in_title) {
                if (s.count)
                    play(&s);
                s.count = 0;
                snprintf(s.title, sizeof s.title, "%s", line + 1 + (line[1] == ' '));
            }
            in_title = true;
            continue;
        }
        in_title = false;
        REQUIRE(s.count < SCENE_STEPS);
        s.steps[s.count++] = line;
    }
    if (s.count)
        play(&s);
    free(text);
}

static int is_scene(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".scene") == 0;
}

void scene_files(const char *folder, void (*play)(const scene *scene)) {
    const char *only = getenv("SCENES");
    struct dirent **files;
    int count = scandir(folder, &files, is_scene, alphasort);
    REQUIRE(count > 0);
    for (int i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        if (!only || strstr(path, only))
            play_file(path, play);
        free(files[i]);
    }
    free(files);
}

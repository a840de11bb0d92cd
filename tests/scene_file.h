/* Files of scenes: a title of lines that begin with #, then the steps of the scene, up to the next title. What a step means
 * is the business of whoever plays it. */
#ifndef SCENE_FILE_H
#define SCENE_FILE_H

#include "harness.h"

#define SCENE_STEPS 256

typedef struct scene {
    char title[200]; /* the first line of it */
    char *steps[SCENE_STEPS];
    size_t count;
} scene;

/* Play every scene of every file NAME.scene in a folder; with SCENES in the environment, of those whose path contains it. */
void scene_files(const char *folder, void (*play)(const scene *scene));

#endif

/* What changes in the project, told to cdev's clients while it happens: file_changed, git_status_changed, git_diff. These
 * are no events of the journal. Who does not listen at the moment, or reads too slowly, asks git/status when it wants to
 * know. */
#ifndef WEFT_CDEV_CHANGES_H
#define WEFT_CDEV_CHANGES_H

#include "hub.h"

typedef struct weft_cdev_changes weft_cdev_changes;

/* Nothing is watched yet. hub is borrowed; on_note may be NULL. */
int weft__cdev_changes_new(weft_hub *hub, void (*on_note)(void *ctx, const char *line), void *ctx, weft_cdev_changes **ret);
/* Before git and the clients go. Returns NULL. */
weft_cdev_changes *weft__cdev_changes_free(weft_cdev_changes *changes);
/* Somebody shows the project: watch it from now on. Again is fine. */
void weft__cdev_changes_start(weft_cdev_changes *changes);

#endif

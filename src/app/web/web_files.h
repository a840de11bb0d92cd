/* The dashboard's files as the build put them into the program (tools/embed_web.c): those of web/dashboard and web/weft. */
#ifndef WEFT_WEB_FILES_H
#define WEFT_WEB_FILES_H

#include <stddef.h>

typedef struct weft_web_file {
    const char *name; /* below web/; NULL ends the table */
    const unsigned char *packed;
    size_t packed_len; /* gzip */
    size_t size;       /* of the file itself */
} weft_web_file;

extern const weft_web_file weft__web_files[];
/* Another one whenever a file is: part of their address, so that browsers may keep them for ever. */
extern const char weft__web_version[];

#endif

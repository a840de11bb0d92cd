/* See wrap.h. */
#include "wrap.h"

#include <string.h>

#include "text_width.h"

/* The next word and its columns. Texts are ours, so no word is longer than this. */
static size_t next_word(const char *text, char word[128]) {
    size_t len = strcspn(text, " \n");
    snprintf(word, 128, "%.*s", (int) len, text);
    return len;
}

/* Columns behind it; *column is where it stood before. */
static void put_word_wrapped(FILE *to, const char *word, size_t *column, size_t indent, size_t *words) {
    size_t width = weft__text_width(word);
    if (*words && *column + 1 + width > WEFT_WRAP_COLUMNS) {
        fprintf(to, "\n%*s", (int) indent, "");
        *column = indent;
    } else if (*words) {
        fputc(' ', to);
        *column += 1;
    }
    fputs(word, to);
    *column += width;
    *words += 1;
}

void weft__put_wrapped(FILE *to, const char *text, size_t column, size_t indent) {
    char word[128];
    size_t words = 0;
    while (*(text += strspn(text, " \n"))) {
        text += next_word(text, word);
        put_word_wrapped(to, word, &column, indent, &words);
    }
}

void weft__put_paragraphs(FILE *to, const char *text) {
    char word[128];
    size_t column = 0, words = 0;
    while (*text) {
        if (*text == ' ' || *text == '\n') { /* as it is */
            size_t len = strcspn(text, "\n");
            fprintf(to, "%s%.*s\n", words ? "\n" : "", (int) len, text);
            column = words = 0;
            text += len + (text[len] == '\n');
            continue;
        }
        size_t line = strcspn(text, "\n");
        const char *end = text + line;
        while (text < end) {
            text += next_word(text, word);
            put_word_wrapped(to, word, &column, 0, &words);
            while (text < end && *text == ' ')
                text++;
        }
        text += *text == '\n';
    }
    if (words)
        fputc('\n', to);
}

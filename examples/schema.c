/* Does a value fit a schema? schema SCHEMA.json VALUE.json; without arguments, a plan that does not. */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

static const char plan_schema[] =
    "{\"type\":\"object\",\"required\":[\"tasks\"],\"properties\":{\"tasks\":{\"type\":\"array\",\"maxItems\":100,"
    "\"items\":{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":\"string\",\"pattern\":\"^[a-z-]+"
    "$\"},"
    "\"priority\":{\"type\":\"integer\",\"minimum\":0}}}}}}";
static const char plan[] = "{\"tasks\":[{\"id\":\"read\",\"priority\":1},{\"id\":\"Write it\"},{\"priority\":-1}]}";

static char *read_file(const char *path, size_t *ret_len) {
    static const size_t most = 1 << 20;
    FILE *file = fopen(path, "r");
    char *text = file ? malloc(most) : NULL;
    *ret_len = text ? fread(text, 1, most, file) : 0;
    if (file)
        fclose(file);
    return text;
}

static int check(const char *schema_text, size_t schema_len, const char *text, size_t len) {
    WEFT_AUTO(weft_schema) schema = NULL; /* compiled once, checked as often as you like, from any thread */
    WEFT_AUTO(weft_doc) value = NULL;
    WEFT_SCHEMA_REPORT report = {0};

    int r = weft_schema_compile(schema_text, schema_len, NULL, &schema, &report);
    if (r >= 0)
        r = weft_doc_parse(text, len, NULL, &value);
    if (r >= 0)
        r = weft_schema_check(schema, weft_doc_root(value), &report);
    for (size_t i = 0; i < report.count; i++)
        printf("%s: %s (%s)\n", report.errors[i].instance, report.errors[i].message, report.errors[i].keyword);
    if (r < 0 && !report.count)
        fprintf(stderr, "schema: %s\n", weft_strerror(r));
    return r < 0;
}

int main(int argc, char **argv) {
    size_t schema_len, len;
    if (argc < 3)
        return check(plan_schema, sizeof plan_schema - 1, plan, sizeof plan - 1);
    char *schema = read_file(argv[1], &schema_len), *value = read_file(argv[2], &len);
    int r = schema && value ? check(schema, schema_len, value, len) : (perror("schema"), 2);
    free(schema);
    free(value);
    return r;
}

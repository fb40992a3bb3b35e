// The component model's binary interface for the contract of wit/, without generated code.
// Handles and memory are not released: the instance ends with the run.
#include "kitbag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

#define HTTP "wasi:http/types@0.2.12"

IMPORT(HTTP, "[constructor]fields") int32_t new_fields(void);
IMPORT(HTTP, "[constructor]outgoing-request") int32_t new_request(int32_t headers);
IMPORT(HTTP, "[method]outgoing-request.set-scheme")
int32_t set_scheme(int32_t request, int32_t some, int32_t scheme, const char *other, size_t length);
IMPORT(HTTP, "[method]outgoing-request.set-authority")
int32_t set_authority(int32_t request, int32_t some, const char *authority, size_t length);
IMPORT(HTTP, "[method]outgoing-request.set-path-with-query")
int32_t set_path(int32_t request, int32_t some, const char *path, size_t length);
IMPORT(HTTP, "[method]future-incoming-response.subscribe") int32_t subscribe(int32_t future);
IMPORT(HTTP, "[method]future-incoming-response.get") void get_response(int32_t future, void *area);
IMPORT(HTTP, "[method]incoming-response.status") int32_t response_status(int32_t response);
IMPORT(HTTP, "[method]incoming-response.consume") void consume(int32_t response, void *area);
IMPORT(HTTP, "[method]incoming-body.stream") void body_stream(int32_t body, void *area);
IMPORT("wasi:http/outgoing-handler@0.2.12", "handle")
void handle(int32_t request, int32_t some, int32_t options, void *area);
IMPORT("wasi:io/poll@0.2.12", "[method]pollable.block") void block(int32_t pollable);
IMPORT("wasi:io/streams@0.2.12", "[method]input-stream.blocking-read")
void blocking_read(int32_t stream, uint64_t length, void *area);

static void *checked(void *memory) {
    if (!memory) abort();
    return memory;
}

static char *copy(const char *text, size_t length) {
    char *copied = checked(malloc(length + 1));
    memcpy(copied, text, length);
    copied[length] = 0;
    return copied;
}

// Gives the host memory for its values.
EXPORT("cabi_realloc")
void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
    (void)old_size;
    // An empty list still has an address, which must be aligned.
    return size == 0 ? (void *)align : checked(realloc(old, size));
}

EXPORT("describe")
void *export_describe(void) {
    static struct { const char *text; size_t length; } area;
    area.text = description;
    area.length = strlen(description);
    return &area;
}

EXPORT("run")
void *export_run(const char *root, size_t root_length, int32_t action, const char *name, size_t name_length,
                 const char *arguments, size_t arguments_length, const char *answers, size_t answers_length) {
    call_t call = {
        .root = copy(root, root_length),
        .name = copy(name, name_length),
        .arguments = copy(arguments, arguments_length),
        .answers = copy(answers, answers_length),
    };
    // `format-arguments`: one line for the person who approves the call.
    outcome_t outcome = action == 1 ? success(format("%s %s", call.name, call.arguments)) : run(call);
    // The fields of `outcome` in words of four bytes, as the canonical ABI has them.
    static uint32_t area[10];
    area[0] = (uint32_t)outcome.kind;
    const char *texts[3] = {outcome.text};
    if (outcome.kind == QUESTION) {
        texts[0] = outcome.id;
        texts[1] = outcome.text;
        texts[2] = outcome.answer_type;
    }
    for (int i = 0; i < 3 && texts[i]; i++) {
        area[1 + 2 * i] = (uint32_t)(uintptr_t)texts[i];
        area[2 + 2 * i] = strlen(texts[i]);
    }
    if (outcome.kind == FAILURE) area[5] = outcome.transient;
    return area;
}

outcome_t success(const char *text) { return (outcome_t){.kind = SUCCESS, .text = text}; }

outcome_t failure(const char *message) { return (outcome_t){.kind = FAILURE, .text = message}; }

outcome_t question(const char *id, const char *text, const char *answer_type) {
    return (outcome_t){.kind = QUESTION, .text = text, .id = id, .answer_type = answer_type};
}

char *format(const char *template, ...) {
    char *text;
    va_list values;
    va_start(values, template);
    int length = vasprintf(&text, template, values);
    va_end(values);
    return checked(length < 0 ? NULL : text);
}

char *resolve(const char *root, const char *path) {
    return path[0] == '/' ? copy(path, strlen(path)) : format("%s/%s", root, path);
}

char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = NULL;
    size_t length = 0, count = 0;
    do {
        length += count;
        text = checked(realloc(text, length + 65537));
        count = fread(text + length, 1, 65536, file);
    } while (count > 0);
    text[length] = 0;
    bool failed = ferror(file);
    int error = errno;
    fclose(file);
    errno = error;
    return failed ? NULL : text;
}

int http_get(const char *url, char **body) {
    *body = NULL;
    bool https = strncmp(url, "https://", 8) == 0;
    if (!https && strncmp(url, "http://", 7) != 0) return 0;
    const char *host = url + (https ? 8 : 7);
    size_t host_length = strcspn(host, "/?#");
    const char *path = host + host_length;
    size_t path_length = strcspn(path, "#");
    if (path_length == 0 || path[0] == '?') {
        path = format("/%.*s", (int)path_length, path);
        path_length = strlen(path);
    }
    int32_t request = new_request(new_fields());
    if (set_scheme(request, 1, https, NULL, 0) || set_authority(request, 1, host, host_length) ||
        set_path(request, 1, path, path_length)) {
        return 0;
    }
    // The largest result has 56 bytes, and payloads that are aligned to 8.
    _Alignas(8) uint32_t area[16] = {0};
#define TAG(word) (area[word] & 0xff)
    // `result<future-incoming-response, error-code>`
    handle(request, 0, 0, area);
    if (TAG(0) != 0) return 0;
    int32_t future = area[2];
    block(subscribe(future));
    // `option<result<result<incoming-response, error-code>>>`
    get_response(future, area);
    if (TAG(0) != 1 || TAG(2) != 0 || TAG(4) != 0) return 0;
    int32_t response = area[6];
    int status = response_status(response);
    consume(response, area);
    if (TAG(0) != 0) return 0;
    body_stream(area[1], area);
    if (TAG(0) != 0) return 0;
    int32_t stream = area[1];
    size_t length = 0;
    for (;;) {
        // `result<list<u8>, stream-error>`, whose error `closed` is 1.
        blocking_read(stream, 65536, area);
        if (TAG(0) != 0) break;
        *body = checked(realloc(*body, length + area[2] + 1));
        memcpy(*body + length, (void *)(uintptr_t)area[1], area[2]);
        length += area[2];
    }
    bool complete = TAG(1) == 1;
    if (!*body) *body = copy("", 0);
    (*body)[length] = 0;
    return complete ? status : 0;
}

static const char *skip_space(const char *at) { return at + strspn(at, " \t\r\n"); }

// Appends a code point in UTF-8.
static char *append(char *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

// Reads four hexadecimal digits.
static bool read_unit(const char *at, uint32_t *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!digit) return false;
        *unit = *unit << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

// Reads a string, which begins with a quotation mark, and returns the place after it, or NULL.
static const char *read_string(const char *at, char **text) {
    // A string is never longer than its JSON.
    char *out = *text = checked(malloc(strlen(at) + 1));
    for (at++; *at != '"'; at++) {
        if (*at == 0) return NULL;
        if (*at != '\\') {
            *out++ = *at;
            continue;
        }
        at++;
        const char *escapes = "\"\\/bfnrt", *values = "\"\\/\b\f\n\r\t";
        const char *escape = *at ? strchr(escapes, *at) : NULL;
        uint32_t code, low;
        if (escape) {
            *out++ = values[escape - escapes];
        } else if (*at == 'u' && read_unit(at + 1, &code)) {
            at += 4;
            bool high = code >= 0xd800 && code < 0xdc00;
            if (high && at[1] == '\\' && at[2] == 'u' && read_unit(at + 3, &low) && low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                at += 6;
            } else if (code >= 0xd800 && code < 0xe000) {
                code = 0xfffd;
            }
            out = append(out, code);
        } else {
            return NULL;
        }
    }
    *out = 0;
    return at + 1;
}

// Returns the place after a value, or NULL.
static const char *skip_value(const char *at) {
    if (*at == '"') {
        char *ignored;
        return read_string(at, &ignored);
    }
    if (*at != '{' && *at != '[') return at + strcspn(at, ",]} \t\r\n");
    for (int depth = 0; *at;) {
        if (*at == '"') {
            if (!(at = skip_value(at))) return NULL;
            continue;
        }
        if (*at == '{' || *at == '[') depth++;
        if ((*at == '}' || *at == ']') && --depth == 0) return at + 1;
        at++;
    }
    return NULL;
}

char *json_string(const char *object, const char *key) {
    const char *at = skip_space(object);
    if (*at++ != '{') return NULL;
    while (*(at = skip_space(at)) == '"') {
        char *name, *value;
        if (!(at = read_string(at, &name))) return NULL;
        at = skip_space(at);
        if (*at++ != ':') return NULL;
        at = skip_space(at);
        if (strcmp(name, key) == 0) return *at == '"' && read_string(at, &value) ? value : NULL;
        if (!(at = skip_value(at))) return NULL;
        at = skip_space(at);
        if (*at++ != ',') return NULL;
    }
    return NULL;
}

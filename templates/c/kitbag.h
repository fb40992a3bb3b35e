// The contract of wit/: calls, outcomes and requests.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The description of the tool, as JSON. Define it in the tool.
extern const char description[];

// One call. All strings end with a zero byte.
typedef struct {
    // The directory for relative paths.
    const char *root;
    // The name of the called tool.
    const char *name;
    // A JSON object that matches the schema of the description.
    const char *arguments;
    // A JSON object with all previous answers, by the question's id.
    const char *answers;
} call_t;

// The outcome of a call: make it with one of the functions below.
typedef struct {
    enum { SUCCESS, FAILURE, QUESTION } kind;
    // The result, the message, or the question.
    const char *text;
    // FAILURE: the same call may succeed later.
    bool transient;
    // QUESTION: the key of the answer, and its type as in the contract.
    const char *id;
    const char *answer_type;
} outcome_t;

// Runs one call. Define it in the tool.
outcome_t run(call_t call);

// The result for the model.
outcome_t success(const char *text);

// The failure: one sentence that the model can act on.
outcome_t failure(const char *message);

// A question for a person. The tool runs again from the start with the answer, so ask before you
// change something.
outcome_t question(const char *id, const char *text, const char *answer_type);

// Formats text in new memory. Memory is never freed: the instance ends with the run.
__attribute__((format(printf, 1, 2))) char *format(const char *format, ...);

// Returns the string at a key of a JSON object, or NULL.
char *json_string(const char *object, const char *key);

// Returns the path below the root, unless it is absolute.
char *resolve(const char *root, const char *path);

// Reads a file. Returns NULL, and sets `errno`, if it cannot be read.
char *read_file(const char *path);

// Makes a GET request and returns the status, or 0 if there is no response.
int http_get(const char *url, char **body);

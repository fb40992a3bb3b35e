// The tool my_tool. Replace the description and `run` by your own.
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "kitbag.h"

const char description[] =
    "{"
    "  \"name\": \"my_tool\","
    "  \"description\": \"Count the words of a text file, with the title of a JSON document of the web.\","
    "  \"inputSchema\": {"
    "    \"type\": \"object\","
    "    \"properties\": {"
    "      \"path\": { \"type\": \"string\", \"description\": \"File, relative to the workspace\" },"
    "      \"url\": { \"type\": \"string\", \"description\": \"JSON document that has a title\" }"
    "    },"
    "    \"additionalProperties\": false"
    "  },"
    "  \"grants\": { \"http\": [\"https://example.com/**\"] }"
    "}";

static int count_words(const char *text) {
    int words = 0;
    bool inside = false;
    for (; *text; text++) {
        bool space = isspace((unsigned char)*text);
        if (!space && !inside) words++;
        inside = !space;
    }
    return words;
}

outcome_t run(call_t call) {
    char *path = json_string(call.arguments, "path");
    if (!path) path = json_string(call.answers, "path");
    // The run ends here, and starts again with the answer.
    if (!path) return question("path", "Which file?", "text");

    char *text = read_file(resolve(call.root, path));
    if (!text) return failure(format("`%s` cannot be read: %s", path, strerror(errno)));
    char *count = format("%s has %d words", path, count_words(text));

    char *url = json_string(call.arguments, "url");
    if (!url) return success(count);
    char *body;
    int status = http_get(url, &body);
    if (status == 0) {
        return failure(format("`%s` cannot be requested: it is not granted, or the server cannot be reached", url));
    }
    if (status != 200) return failure(format("`%s` has status %d", url, status));
    char *title = json_string(body, "title");
    if (!title) return failure(format("`%s` has no title", url));
    return success(format("%s: %s", title, count));
}

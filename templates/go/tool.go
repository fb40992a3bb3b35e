// The tool my_tool. Replace Describe and Run by your own.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
)

const description = `{
  "name": "my_tool",
  "description": "Count the words of a text file, with the title of a JSON document of the web.",
  "inputSchema": {
    "type": "object",
    "properties": {
      "path": { "type": "string", "description": "File, relative to the workspace" },
      "url": { "type": "string", "description": "JSON document that has a title" }
    },
    "additionalProperties": false
  },
  "grants": { "http": ["https://example.com/**"] }
}`

// Run runs one call.
func Run(call Call) Outcome {
	var arguments struct{ Path, URL string }
	if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
		return Failure{Message: err.Error()}
	}
	if arguments.Path == "" {
		var answered bool
		// Without an answer the run ends here. It starts again with the answer.
		if arguments.Path, answered = call.Answer("path"); !answered {
			return Question{ID: "path", Text: "Which file?", AnswerType: "text"}
		}
	}
	text, err := os.ReadFile(resolve(call.Root, arguments.Path))
	if err != nil {
		var cause *os.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return Failure{Message: fmt.Sprintf("`%s` cannot be read: %v", arguments.Path, err)}
	}
	count := fmt.Sprintf("%s has %d words", arguments.Path, len(strings.Fields(string(text))))
	if arguments.URL == "" {
		return Success(count)
	}
	status, body, err := Get(arguments.URL)
	if err != nil {
		return Failure{Message: err.Error()}
	}
	if status != 200 {
		return Failure{Message: fmt.Sprintf("`%s` has status %d", arguments.URL, status)}
	}
	var document struct{ Title string }
	if err := json.Unmarshal(body, &document); err != nil {
		return Failure{Message: fmt.Sprintf("`%s` is not JSON: %v", arguments.URL, err)}
	}
	return Success(document.Title + ": " + count)
}

func resolve(root, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(root, name)
}

// Get makes a GET request to a server that the grant of `http` names.
func Get(address string) (status int, body []byte, err error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return 0, nil, fmt.Errorf("`%s` is not a URL that begins with `https://`", address)
	}
	status, body, ok := get(parsed.Scheme == "https", parsed.Host, parsed.RequestURI())
	if !ok {
		return 0, nil, fmt.Errorf("`%s` cannot be requested: it is not granted, or the server cannot be reached", address)
	}
	return status, body, nil
}

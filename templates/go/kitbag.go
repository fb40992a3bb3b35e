// The contract of wit/, without generated code: types of calls and outcomes, and the
// component model's binary interface for them.
package main

import (
	"encoding/json"
	"unsafe"
)

// Call is one call of the tool.
type Call struct {
	// Root is the directory for relative paths.
	Root string
	// Name is the name of the called tool.
	Name string
	// Arguments is a JSON object that matches the schema of the description.
	Arguments string
	// Answers is a JSON object with all previous answers, by the question's ID.
	Answers string
}

// Answer returns the answer to a question, if it is text.
func (call Call) Answer(id string) (answer string, answered bool) {
	var answers map[string]any
	if json.Unmarshal([]byte(call.Answers), &answers) != nil {
		return "", false
	}
	answer, answered = answers[id].(string)
	return answer, answered
}

// Outcome is Success, Failure or Question.
type Outcome interface{ lower(area *[10]uint32) }

// Success is the result for the model.
type Success string

// Failure is the failure of a tool.
type Failure struct {
	// Message is one sentence that the model can act on.
	Message string
	// Trace has further lines for the maintainer of the tool; the model does not see them.
	Trace []string
	// Transient means that the same call may succeed later.
	Transient bool
}

// Question is a question for a person. The tool runs again from the start with the answer, so ask
// before you change something.
type Question struct {
	// ID is the key of the answer.
	ID string
	// Text is the question.
	Text string
	// AnswerType is `text`, `boolean`, `integer`, `number` or a JSON object as in the contract.
	AnswerType string
	// Default is the suggested answer; none if it is empty.
	Default string
}

// The offsets of the fields of `outcome`, in words of four bytes, as the canonical ABI has them.

func (outcome Success) lower(area *[10]uint32) {
	area[0] = 0
	area[1], area[2] = lowerString(string(outcome))
}

func (outcome Failure) lower(area *[10]uint32) {
	area[0] = 1
	area[1], area[2] = lowerString(outcome.Message)
	lines := make([]uint32, 0, 2*len(outcome.Trace))
	for _, line := range outcome.Trace {
		start, length := lowerString(line)
		lines = append(lines, start, length)
	}
	area[3], area[4] = address(unsafe.Pointer(unsafe.SliceData(lines))), uint32(len(outcome.Trace))
	if outcome.Transient {
		area[5] = 1
	}
}

func (outcome Question) lower(area *[10]uint32) {
	area[0] = 2
	area[1], area[2] = lowerString(outcome.ID)
	area[3], area[4] = lowerString(outcome.Text)
	area[5], area[6] = lowerString(outcome.AnswerType)
	if outcome.Default != "" {
		area[7] = 1
		area[8], area[9] = lowerString(outcome.Default)
	}
}

// held keeps memory that the host reads or has written. The instance ends with the run.
var held []unsafe.Pointer

func address(pointer unsafe.Pointer) uint32 {
	held = append(held, pointer)
	return uint32(uintptr(pointer))
}

func lowerString(text string) (start, length uint32) {
	return address(unsafe.Pointer(unsafe.StringData(text))), uint32(len(text))
}

func liftString(start unsafe.Pointer, length uint32) string {
	return unsafe.String((*byte)(start), length)
}

//go:wasmexport describe
func describe() unsafe.Pointer {
	area := new([2]uint32)
	area[0], area[1] = lowerString(description)
	held = append(held, unsafe.Pointer(area))
	return unsafe.Pointer(area)
}

//go:wasmexport run
func run(
	root unsafe.Pointer, rootLength uint32, action int32, name unsafe.Pointer, nameLength uint32,
	arguments unsafe.Pointer, argumentsLength uint32, answers unsafe.Pointer, answersLength uint32,
) unsafe.Pointer {
	call := Call{
		Root:      liftString(root, rootLength),
		Name:      liftString(name, nameLength),
		Arguments: liftString(arguments, argumentsLength),
		Answers:   liftString(answers, answersLength),
	}
	var outcome Outcome
	if action == 1 {
		// `format-arguments`: one line for the person who approves the call.
		outcome = Success(call.Name + " " + call.Arguments)
	} else {
		outcome = Run(call)
	}
	area := new([10]uint32)
	outcome.lower(area)
	held = append(held, unsafe.Pointer(area))
	return unsafe.Pointer(area)
}

// initialized is true when the runtime of Go can allocate memory.
var initialized bool

func init() { initialized = true }

//go:linkname sbrk runtime.sbrk
func sbrk(size uintptr) unsafe.Pointer

// reallocate gives the host memory for its values.
//
//go:wasmexport cabi_realloc
func reallocate(old unsafe.Pointer, oldSize, _ uint32, size uint32) unsafe.Pointer {
	if !initialized {
		// The adapter for WASI needs memory while the runtime of Go starts.
		return sbrk(uintptr(size))
	}
	// Words of eight bytes have the largest alignment.
	memory := unsafe.Pointer(unsafe.SliceData(make([]uint64, size/8+1)))
	held = append(held, memory)
	if old != nil {
		copy(unsafe.Slice((*byte)(memory), size), unsafe.Slice((*byte)(old), oldSize))
	}
	return memory
}

func main() {}

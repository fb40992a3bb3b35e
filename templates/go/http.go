// Requests by `wasi:http`. Handles are not dropped: the instance ends with the run.
package main

import "unsafe"

//go:wasmimport wasi:http/types@0.2.12 [constructor]fields
func newFields() int32

//go:wasmimport wasi:http/types@0.2.12 [constructor]outgoing-request
func newRequest(headers int32) int32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-scheme
func setScheme(request, some, scheme int32, other unsafe.Pointer, otherLength uint32) int32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-authority
func setAuthority(request, some int32, authority unsafe.Pointer, length uint32) int32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-path-with-query
func setPath(request, some int32, path unsafe.Pointer, length uint32) int32

//go:wasmimport wasi:http/outgoing-handler@0.2.12 handle
func handle(request, some, options int32, area unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]future-incoming-response.subscribe
func subscribe(future int32) int32

//go:wasmimport wasi:io/poll@0.2.12 [method]pollable.block
func block(pollable int32)

//go:wasmimport wasi:http/types@0.2.12 [method]future-incoming-response.get
func getResponse(future int32, area unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.status
func responseStatus(response int32) int32

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.consume
func consume(response int32, area unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-body.stream
func bodyStream(body int32, area unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.12 [method]input-stream.blocking-read
func blockingRead(stream int32, length uint64, area unsafe.Pointer)

// get makes a GET request. A failed request is not ok.
func get(https bool, host, path string) (status int, body []byte, ok bool) {
	// The largest result has 56 bytes, and payloads that are aligned to 8.
	area := unsafe.Pointer(new([8]uint64))
	words := (*[16]uint32)(area)
	request := newRequest(newFields())
	scheme := int32(0)
	if https {
		scheme = 1
	}
	failed := setScheme(request, 1, scheme, nil, 0)
	failed |= setAuthority(request, 1, unsafe.Pointer(unsafe.StringData(host)), uint32(len(host)))
	failed |= setPath(request, 1, unsafe.Pointer(unsafe.StringData(path)), uint32(len(path)))
	if failed != 0 {
		return 0, nil, false
	}
	// `result<future-incoming-response, error-code>`
	if handle(request, 0, 0, area); words[0]&0xff != 0 {
		return 0, nil, false
	}
	future := int32(words[2])
	block(subscribe(future))
	// `option<result<result<incoming-response, error-code>>>`
	getResponse(future, area)
	if words[0]&0xff != 1 || words[2]&0xff != 0 || words[4]&0xff != 0 {
		return 0, nil, false
	}
	response := int32(words[6])
	if consume(response, area); words[0]&0xff != 0 {
		return 0, nil, false
	}
	if bodyStream(int32(words[1]), area); words[0]&0xff != 0 {
		return 0, nil, false
	}
	stream := int32(words[1])
	for {
		// `result<list<u8>, stream-error>`, whose error `closed` is 1.
		if blockingRead(stream, 65536, area); words[0]&0xff != 0 {
			return int(responseStatus(response)), body, words[1]&0xff == 1
		}
		part := unsafe.Slice((*byte)(unsafe.Add(nil, words[1])), words[2])
		body = append(body, part...)
	}
}

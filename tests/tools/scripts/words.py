#!/usr/bin/env -S kitbag script
# /// kitbag
# title = "Words"
# description = "Count the words of a file."
#
# [parameters.path]
# type = "string"
# description = "File, relative to the workspace"
# required = true
#
# [parameters.least]
# type = "integer"
# default = 1
#
# [parameters.like]
# type = "string"
#
# [output]
# type = "object"
# properties.words = { type = "integer" }
# ///
words = [word for word in open(path).read().split() if len(word) >= least]
if like is not None:
    words = [word for word in words if like in word]
{'words': len(words)}

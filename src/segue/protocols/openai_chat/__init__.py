"""OpenAI chat completions: the wire that most vendors speak, each in its own way.

The protocol is OpenAI's; what a vendor spells differently is in its dialect, what it refuses in its rules, and no
vendor is named in the code of this folder.

    content, media          parts of messages              request, options, tools, thinking, cache    requests
    assistant, calls        what the model said            response, usage, errors                     replies
    reasoning, think_tags   its reasoning                  stream, stream_calls                        streams
    rules, check            what is refused                codec                                       all of it
"""

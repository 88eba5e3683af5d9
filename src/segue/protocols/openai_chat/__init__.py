"""OpenAI chat completions, the protocol of most vendors.

The protocol is OpenAI's. The format of a vendor is its dialect, what it refuses is its rules. No code of this folder
names a vendor.

    content, media, native    parts of messages           request, turns, options, tools, thinking, cache    requests
    assistant, calls          assistant messages          response, usage, errors                            replies
    reasoning, think_tags     their reasoning             stream, stream_choice, stream_calls                streams
    rules, check              what a provider refuses     fast_encode, fast_decode                           fast paths
"""

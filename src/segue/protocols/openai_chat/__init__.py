"""OpenAI chat completions, the protocol of most vendors.

The protocol is OpenAI's. The format of a vendor is its dialect, what it refuses is its rules. No code of this folder
names a vendor.

    content, turns, options, request    requests        response, stream, stream_choice    replies, whole and streamed
    assistant, reasoning                both            fast_decode                        the fast path of streams
    rules, limits, check                what a provider refuses; what OpenAI's two wires share is in `families/`
"""

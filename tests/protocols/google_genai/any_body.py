"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.any_bodies import one, some
from protocols.google_genai.endpoints import NEWER, OLDER, VERTEX, endpoint_of

ENDPOINTS = (OLDER, NEWER, VERTEX, endpoint_of("m", "somebody"))


BLOB = some(mimeType=one("image/png", "audio/wav"), mime_type=one("image/png"), data=one("AAAA", "_-8", "+/8="))
FILE = some(
    fileUri=one("gs://b/o", "https://x.org/i.png", "files/a"), file_uri=one("https://x.org/f"), mimeType=one("image/x")
)
CALL = some(id=one("c1"), name=one("f", "g"), args=one({}, {"a": 1}, '{"a": 1}'), willContinue=st.booleans())
RESULT = some(
    id=one("c1"),
    name=one("f", "g"),
    response=one(
        {}, {"output": "x"}, {"output": ["a", "b"]}, {"error": {"a": 1}}, {"result": 5}, {"a": 1, "b": 2}, "x"
    ),
    parts=st.lists(some(inlineData=BLOB, inline_data=BLOB), max_size=2),
    scheduling=one("SILENT"),
)
PART = some(
    text=one("hi", ""),
    thought=st.booleans(),
    thoughtSignature=one("c2VhbA=="),
    thought_signature=one("c2Vhbg=="),
    inlineData=BLOB,
    inline_data=BLOB,
    fileData=FILE,
    functionCall=CALL,
    function_call=CALL,
    functionResponse=RESULT,
    function_response=RESULT,
    executableCode=one({"code": "1"}),
    videoMetadata=one({"fps": 1}),
    type=one("text"),
)
CONTENT = some(role=one("user", "model", "function", "system"), parts=st.lists(PART, max_size=3), name=one("bob"))
FUNCTION = some(
    name=one("f", "a.b", "1"),
    description=one("d", ""),
    parameters=one({"type": "OBJECT", "min_items": "3"}, {"type": "object"}),
    parametersJsonSchema=one({"type": "object"}),
    parameters_json_schema=one({"type": "array"}),
)
TOOL = some(
    functionDeclarations=st.lists(FUNCTION, max_size=2),
    function_declarations=st.lists(FUNCTION, max_size=2),
    googleSearch=one({}),
)
THINKING = some(
    thinkingBudget=one(0, -1, 500, 10**6), thinkingLevel=one("LOW", "high", "HEROIC"), includeThoughts=st.booleans()
)
GENERATION = some(
    temperature=one(0, 1, 0.5, 3),
    topP=one(0.9),
    top_p=one(0.8),
    maxOutputTokens=one(0, 100),
    max_output_tokens=one(7),
    stopSequences=one(["x"], []),
    thinkingConfig=THINKING,
    thinking_config=THINKING,
    responseMimeType=one("application/json", "text/plain"),
    responseSchema=one({"type": "OBJECT"}),
    responseJsonSchema=one({"type": "object"}),
)
CALLING = some(mode=one("AUTO", "any", "NONE", "VALIDATED"), allowedFunctionNames=one(["f"], ["f", "g"], []))
BODY = some(
    model=one("models/m"),
    contents=st.lists(CONTENT, max_size=4),
    systemInstruction=st.one_of(CONTENT, PART, st.lists(PART, max_size=2), one("Be kind.")),
    system_instruction=CONTENT,
    tools=st.one_of(st.lists(TOOL, max_size=3), TOOL),
    toolConfig=some(functionCallingConfig=CALLING, function_calling_config=CALLING, retrievalConfig=one({"a": 1})),
    generationConfig=GENERATION,
    generation_config=GENERATION,
    safetySettings=one([{"category": "x"}]),
    cachedContent=one("cachedContents/a"),
)
CANDIDATE = some(
    content=CONTENT,
    finishReason=one("STOP", "MAX_TOKENS", "SAFETY", "NEW"),
    finish_reason=one("STOP"),
    index=one(0, 1),
    groundingMetadata=one({"a": 1}),
)
REPLY = some(
    candidates=st.lists(CANDIDATE, max_size=2),
    usageMetadata=some(promptTokenCount=one(1), cachedContentTokenCount=one(5), thoughts_token_count=one(2)),
    usage_metadata=some(prompt_token_count=one(1)),
    promptFeedback=some(blockReason=one("SAFETY")),
    responseId=one("r"),
    modelVersion=one("m-1"),
    error=one({"code": 429, "message": "No."}),
)
FRAME = REPLY

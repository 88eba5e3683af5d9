/**
 * The JSON of segue's protocol `vscode-lm`: what `prepare(...)` writes, and what its stream decoder reads.
 * `$` names the class of a part; bytes are base64.
 */

export interface TextPart { $: "text"; value: string }
export interface DataPart { $: "data"; data: string; mimeType: string }
export interface ToolCallPart { $: "toolCall"; callId: string; name: string; input: object }
export interface ToolResultPart { $: "toolResult"; callId: string; content: readonly ResultContent[] }
export interface ErrorLine { $: "error"; code: string; message: string; cause?: string }

export type ResultContent = TextPart | DataPart;
export type Part = TextPart | DataPart | ToolCallPart | ToolResultPart;
export type Line = TextPart | DataPart | ToolCallPart | ErrorLine;

export interface Message {
    role: "user" | "assistant";
    content: string | readonly Part[];
    name?: string;
}

export interface Tool { name: string; description: string; inputSchema?: object }

export interface Body {
    messages: readonly Message[];
    options?: {
        tools?: readonly Tool[];
        toolMode?: 1 | 2;
        justification?: string;
        modelOptions?: Record<string, unknown>;
    };
}

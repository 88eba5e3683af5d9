/**
 * Converts between segue's JSON and VS Code's classes: requests from JSON, responses to JSON.
 *
 *     const [model] = await vscode.lm.selectChatModels({ family: "gpt-5" });
 *     await send(model, JSON.parse(requestBody), line => socket.write(line + "\n"), token);
 */

import * as vscode from "vscode";
import type { Body, Line, Message, Part, ResultContent } from "./form";

/** Make the messages of a request. */
export function toMessages(body: Body): vscode.LanguageModelChatMessage[] {
    return body.messages.map(toMessage);
}

/** Make the options of a request. */
export function toOptions(body: Body): vscode.LanguageModelChatRequestOptions {
    const { tools, toolMode, justification, modelOptions } = body.options ?? {};
    return {
        ...(tools && { tools: tools.map(tool => ({ ...tool })) }),
        ...(toolMode && { toolMode: toolMode as vscode.LanguageModelChatToolMode }),
        ...(justification && { justification }),
        ...(modelOptions && { modelOptions }),
    };
}

/** Send a request and write the response as lines of JSON; an error is the last line. */
export async function send(
    model: vscode.LanguageModelChat,
    body: Body,
    write: (line: string) => void,
    token?: vscode.CancellationToken,
): Promise<void> {
    try {
        const response = await model.sendRequest(toMessages(body), toOptions(body), token);
        for await (const part of response.stream) {
            const line = toLine(part);
            if (line) { write(JSON.stringify(line)); }
        }
    } catch (error) {
        write(JSON.stringify(toErrorLine(error)));
    }
}

/** Convert a part of a response; undefined for unknown kinds, which the API says to ignore. */
export function toLine(part: unknown): Line | undefined {
    if (part instanceof vscode.LanguageModelTextPart) {
        return { $: "text", value: part.value };
    }
    if (part instanceof vscode.LanguageModelToolCallPart) {
        return { $: "toolCall", callId: part.callId, name: part.name, input: part.input };
    }
    if (part instanceof vscode.LanguageModelDataPart) {
        return { $: "data", data: toBase64(part.data), mimeType: part.mimeType };
    }
    return undefined;
}

function toMessage(message: Message): vscode.LanguageModelChatMessage {
    const role = message.role === "user"
        ? vscode.LanguageModelChatMessageRole.User
        : vscode.LanguageModelChatMessageRole.Assistant;
    const content = typeof message.content === "string" ? message.content : message.content.map(toPart);
    return new vscode.LanguageModelChatMessage(role, content, message.name);
}

function toPart(part: Part): vscode.LanguageModelInputPart {
    switch (part.$) {
        case "toolCall":
            return new vscode.LanguageModelToolCallPart(part.callId, part.name, part.input);
        case "toolResult":
            return new vscode.LanguageModelToolResultPart(part.callId, part.content.map(toResultContent));
        default:
            return toResultContent(part);
    }
}

function toResultContent(part: ResultContent): vscode.LanguageModelTextPart | vscode.LanguageModelDataPart {
    switch (part.$) {
        case "text":
            return new vscode.LanguageModelTextPart(part.value);
        case "data":
            return new vscode.LanguageModelDataPart(toBytes(part.data), part.mimeType);
        default:
            throw new Error(`there is no class for ${JSON.stringify(part satisfies never)}`);
    }
}

function toErrorLine(error: unknown): Line {
    const message = error instanceof Error ? error.message : String(error);
    if (!(error instanceof vscode.LanguageModelError)) {
        return { $: "error", code: "Unknown", message };
    }
    const cause = error.cause === undefined ? {} : { cause: String(error.cause) };
    return { $: "error", code: error.code, message, ...cause };
}

function toBytes(base64: string): Uint8Array {
    return Uint8Array.from(atob(base64), character => character.charCodeAt(0));
}

function toBase64(bytes: Uint8Array): string {
    let text = "";
    for (const byte of bytes) { text += String.fromCharCode(byte); }
    return btoa(text);
}

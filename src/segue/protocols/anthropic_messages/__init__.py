"""The Anthropic messages wire: `POST /v1/messages`, spoken by Anthropic and, with other models, by many others."""

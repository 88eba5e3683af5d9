"""The Anthropic Messages protocol: `POST /v1/messages`, of Anthropic and of many other providers."""

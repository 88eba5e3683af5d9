"""OpenAI Responses: `POST /responses`, spoken by OpenAI, Azure, xAI and others."""

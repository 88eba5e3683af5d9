"""OpenAI Responses: `POST /responses`, served by OpenAI, Azure, xAI and others."""

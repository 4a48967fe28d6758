"""Models behind OpenAI-compatible endpoints; knows no tenant and no database."""

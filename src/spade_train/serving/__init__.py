"""An OpenAI-compatible chat endpoint for a model or an adapter: ``spade serve``."""

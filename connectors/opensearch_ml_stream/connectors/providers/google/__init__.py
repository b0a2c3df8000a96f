"""Google's interfaces: Gemini's `generateContent`, at Google AI and Vertex AI, and Interactions."""

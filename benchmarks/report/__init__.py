"""A finished run as text, Markdown, HTML and pictures."""

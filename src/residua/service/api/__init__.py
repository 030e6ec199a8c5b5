"""HTTP: routes, the schema of requests and answers, and what they mean."""

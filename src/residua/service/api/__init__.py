"""HTTP: routes, and the schema and meaning of requests and answers."""

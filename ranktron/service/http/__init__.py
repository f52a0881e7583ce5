"""HTTP: connections, routes, endpoints, and the server."""

"""OpenAPI and AsyncAPI documents."""

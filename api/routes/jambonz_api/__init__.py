"""Endpoints for jambonz's own clients, in its paths and shapes."""

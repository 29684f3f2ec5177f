"""Bodies and shapes of jambonz's interface."""

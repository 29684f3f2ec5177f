"""The messaging services, over the database and a messaging network."""

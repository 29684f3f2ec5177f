"""Request and response models of the messaging service, in camelCase."""

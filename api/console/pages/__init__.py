"""The pages of the console. A module here that has `pages` is found by its being here."""

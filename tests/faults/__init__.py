"""What goes wrong, and what is owed then: each test proves the sentence of its docstring."""

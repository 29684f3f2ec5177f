"""Steps of a plan, one module per verb."""

"""HTTP application and its request pipeline."""
